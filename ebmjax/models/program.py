"""Writes a model to one file that predicts with JAX alone, without ebmjax.

The file is an npz with the exported program, for inputs x [N, ...] float32 in the range
of the training images, and the labels in the order of its outputs:

  stored = np.load("model.npz")
  program = jax.export.deserialize(stored["program"].tobytes())
  labels = stored["classes"][np.argmin(program.call(x), axis=1)]
"""

import io
from pathlib import Path

import jax
import numpy as np
from jax import export

from ebmjax.models.model import Model
from ebmjax.runtime import atomic, failures

PLATFORMS = ("cpu", "cuda", "tpu")


def write_program(model: Model, path: Path, *, task: int | None = None) -> None:
  """Writes the program of `model` for any number of inputs, with its weights.

  `task` is for runs that permute pixels: the task in whose order inputs are shown.
  """
  (size,) = export.symbolic_shape("n")
  inputs = jax.ShapeDtypeStruct((size, *model.form.shape), np.float32)
  function = jax.jit(model.function(task=task))
  program = export.export(function, platforms=PLATFORMS)(inputs).serialize()
  packed = io.BytesIO()
  np.savez(packed, program=np.frombuffer(program, np.uint8), classes=model.classes)
  with failures.explain_write_errors(path, "or give another file"):
    atomic.write(path, packed.getvalue())
