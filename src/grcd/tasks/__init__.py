"""What a trained diffusion does with z-scored rows: sample, fill, vary, likelihood."""
