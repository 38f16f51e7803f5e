"""The paper's separable parts: process, parameterisation, grid, solver; and ``Diffusion`` that binds them."""
