"""Continual learning with energy-based models in JAX."""

__version__ = "0.1.0"
