"""Measurements of the kernels and of the reference; `results/` holds what was measured where."""
