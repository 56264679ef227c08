"""The CIFAR-100 trunk: five convolutions, pre-trained on CIFAR-10, and its weights.

The package has weights of its own, `PACKAGED`. They are made by

    python -m ebmjax.main --config=configs/pretrain_cifar10.py --workdir=RUN
    ebmjax export --trunk --half RUN ebmjax/networks/trunk_cifar10.npz

and the file records the run that they are from.
"""

import hashlib
import io
import json
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import Array

from ebmjax.errors import DataError
from ebmjax.networks.conv import Conv, flatten_channels_first
from ebmjax.paths import expand

PACKAGED = "packaged"  # in place of a file's name
_PACKAGED_FILE = Path(__file__).with_name("trunk_cifar10.npz")
CHANNELS = (16, 32, 64, 128, 256)
_ORIGIN = "origin"  # an array of the file: the run of its weights, as JSON
STRIDES = (1, 2, 2, 2, 2)


class NormTrunk(nn.Module):
  """Maps images [B, H, W, C] to features, 1024 for a 32 x 32 image.

  BatchNorm and ReLU follow the first four convolutions, but not the last. With
  `batch_statistics` the norms use those of the batch and update their running ones.
  """

  conv_form: str = "auto"
  init_style: str = "pytorch"

  @nn.compact
  def __call__(self, x: Array, batch_statistics: bool = False) -> Array:
    inputs = (x.shape[-1], *CHANNELS[:-1])
    for i, (n, channels, stride) in enumerate(
      zip(inputs, CHANNELS, STRIDES, strict=True)
    ):
      form, style = self.conv_form, self.init_style
      x = Conv(n, channels, stride, 1, form, style, name=f"conv{i + 1}")(x)
      if i < len(CHANNELS) - 1:
        # PyTorch's momentum 0.1 is 0.9 here.
        norm = nn.BatchNorm(
          not batch_statistics, momentum=0.9, epsilon=1e-5, name=f"bn{i + 1}"
        )
        x = jax.nn.relu(norm(x))
    return flatten_channels_first(x)


def num_features(shape: tuple[int, ...]) -> int:
  """Returns the number of features of an image [H, W, C]."""
  height, width = (-(-side // math.prod(STRIDES)) for side in shape[:2])
  return CHANNELS[-1] * height * width


def load_trunk(path: str | Path) -> dict[str, Any]:
  """Returns {"params", "batch_stats"} of a NormTrunk from an npz file.

  Its arrays have PyTorch's names and layout, convLayer{1..5}.conv.{weight,bias} and
  convLayer{1..4}.bn.{weight,bias,running_mean,running_var}: the form of the
  published weights, and of `trunk_file`.
  """
  place = _existing(path)
  try:
    with place.open("rb") as content, np.load(content) as file:
      # Half precision only saves space in the file.
      arrays = {n: file[n].astype(np.float32) for n in file.files if n != _ORIGIN}
    params, stats = {}, {}
    for i in range(1, len(CHANNELS) + 1):
      params[f"conv{i}"] = {
        "kernel": arrays[f"convLayer{i}.conv.weight"].transpose(2, 3, 1, 0),
        "bias": arrays[f"convLayer{i}.conv.bias"],
      }
    for i in range(1, len(CHANNELS)):
      norm = f"convLayer{i}.bn."
      params[f"bn{i}"] = {
        "scale": arrays[norm + "weight"],
        "bias": arrays[norm + "bias"],
      }
      stats[f"bn{i}"] = {
        "mean": arrays[norm + "running_mean"],
        "var": arrays[norm + "running_var"],
      }
    _require_shapes(params, stats)
  except Exception as error:  # a zip file of arrays can be damaged in many ways
    raise DataError(
      f"{path} holds no weights of the CIFAR-100 trunk ({type(error).__name__}: "
      f"{error}); give the npz file of the published weights as "
      "config.network.pretrained."
    ) from error
  return jax.tree.map(jnp.asarray, {"params": params, "batch_stats": stats})


def trunk_digest(path: str | Path) -> str:
  """Returns a hash that identifies the content of a file of weights."""
  try:
    with _existing(path).open("rb") as file:
      return hashlib.file_digest(file, "blake2b").hexdigest()[:16]
  except OSError as error:
    raise DataError(
      f"{path} cannot be read ({error.strerror}); make it readable, or give another "
      "file as config.network.pretrained."
    ) from error


def _existing(path: str | Path) -> Path:
  if str(path) == PACKAGED:
    return _PACKAGED_FILE
  place = expand(path)
  if not place.is_file():
    raise DataError(
      f"there is no file {path}; give the npz file of the trunk's weights as "
      "config.network.pretrained (configs/pretrain_cifar10.py makes one)."
    )
  return place


def _require_shapes(params: dict[str, Any], stats: dict[str, Any]) -> None:
  """Raises ValueError where an array does not fit the trunk."""
  images = jax.ShapeDtypeStruct((1, 32, 32, 3), jnp.float32)
  expected = jax.eval_shape(NormTrunk().init, jax.random.key(0), images)
  for part, given in (("params", params), ("batch_stats", stats)):
    for layer, arrays in expected[part].items():
      for name, like in arrays.items():
        if given[layer][name].shape != like.shape:
          raise ValueError(f"{layer} has a {name} of shape {given[layer][name].shape}")


def trunk_origin(path: str | Path = PACKAGED) -> dict[str, Any]:
  """Returns what a file records of its weights' run: command, commit and so on."""
  with _existing(path).open("rb") as content, np.load(content) as file:
    found: dict[str, Any] = json.loads(str(file[_ORIGIN])) if _ORIGIN in file else {}
  return found


def trunk_file(
  variables: dict[str, Any],
  origin: dict[str, Any] | None = None,
  *,
  half: bool = False,
) -> bytes:
  """Returns the content of an npz file with a trunk's variables, for `load_trunk`.

  With `half` the convolutions are in half precision.
  """
  host = jax.tree.map(np.asarray, variables)
  params, stats, arrays = host["params"], host["batch_stats"], {}
  for i in range(1, len(CHANNELS) + 1):
    conv = params[f"conv{i}"]
    kernel = conv["kernel"].astype(np.float16 if half else np.float32)
    arrays[f"convLayer{i}.conv.weight"] = kernel.transpose(3, 2, 0, 1)
    arrays[f"convLayer{i}.conv.bias"] = conv["bias"]
  for i in range(1, len(CHANNELS)):
    norm = f"convLayer{i}.bn."
    arrays[norm + "weight"] = params[f"bn{i}"]["scale"]
    arrays[norm + "bias"] = params[f"bn{i}"]["bias"]
    arrays[norm + "running_mean"] = stats[f"bn{i}"]["mean"]
    arrays[norm + "running_var"] = stats[f"bn{i}"]["var"]
  if origin:
    arrays[_ORIGIN] = np.array(json.dumps(origin))
  content = io.BytesIO()
  np.savez(content, **arrays)
  return content.getvalue()
