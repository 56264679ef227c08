"""Trained models: finished runs to predict with, a classifier that learns on."""

from ebmjax.models.estimator import EnergyClassifier
from ebmjax.models.loading import load
from ebmjax.models.model import Model

__all__ = ["EnergyClassifier", "Model", "load"]
