"""From signals to a diffusion: configuration, the table of methods, the loop, when to stop."""
