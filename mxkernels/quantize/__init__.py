"""Quantization: x -> (payload, scale). README.md beside this file is the contract."""
