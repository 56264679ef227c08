"""The mean and the standard deviation of a set's inputs, for normalisation."""

import math

import numpy as np

from ebmjax.data.pixels import blocks


def statistics(
  x: np.ndarray, *, by_feature: bool = True
) -> tuple[tuple[float, ...], tuple[float, ...]]:
  """Computes the mean and std of each channel of inputs x [N, ...].

  Images are taken as values from 0 to 1; grey ones have one channel, colour ones three.
  Each feature of rows is a channel; without `by_feature`, as for streams that permute
  features, all of them are one channel. Constant channels have std 1.
  """
  channels = x.shape[-1] if x.ndim == 4 or (x.ndim == 2 and by_feature) else 1
  count = len(x) * math.prod(x.shape[1:]) // channels
  mean = sum(_table(b, channels).sum(axis=0) for b in blocks(x)) / count
  squares = sum(((_table(b, channels) - mean) ** 2).sum(axis=0) for b in blocks(x))
  std = np.sqrt(squares / count)
  return tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist())


def _table(block: np.ndarray, channels: int) -> np.ndarray:
  """Reshapes inputs to float64 [values, channels]."""
  values = block.reshape(-1, channels).astype(np.float64)
  return values / 255 if block.dtype == np.uint8 else values
