"""Trained models: finished runs that predict, and a classifier that keeps learning."""

from ebmjax.models.estimator import EnergyClassifier
from ebmjax.models.loading import load
from ebmjax.models.model import Model

__all__ = ["EnergyClassifier", "Model", "load"]
