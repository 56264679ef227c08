"""What a run costs, in numbers that do not depend on the machine.

Training FLOPs are those of all steps of a seed, and at the end of each task those of
consolidating and of making the state ready to answer. Inference FLOPs are those of the
energies of all labels, an image. Both are counted by `flops`.

Bytes kept between tasks are what a method carries beside the network that it was given:

    bytes of the state - bytes of its optimisers - bytes of the network's parameters
    and other variables

So fine-tuning keeps nothing; buffers, importances, anchors, old networks, generators,
class means and models of single classes count in full.
"""

from typing import Any

import jax
import jax.numpy as jnp

from ebmjax.runtime import flops, memory
from ebmjax.runtime.trainer import RunSpec, describe_parts
from ebmjax.types import Batch, PyTree, TaskView


def measure(spec: RunSpec) -> dict[str, int]:
  """Returns the budget of one seed, as results.json has it."""
  key, learner = spec.tables.key[0], spec.learner
  state = jax.eval_shape(learner.init, key)
  ready = jax.eval_shape(learner.ready, state)
  classes = spec.stream.classes[0]  # [T, C]
  setting = spec.config.stream.setting
  # The length of loops over the labels of a batch; tasks may share labels.
  in_batch = classes.any(axis=0) if setting == "joint" else classes
  passes = int(in_batch.sum(axis=-1).max())
  parts = describe_parts(spec)
  step = flops.count(learner.step, state, key, batch_shapes(spec), passes=passes)
  at_end = flops.count(learner.ready, state, passes=passes)
  if learner.consolidate and setting == "boundary_aware":
    view = _finished_task(spec)
    at_end += flops.count(learner.consolidate, state, key, view, passes=passes)
  images = spec.config.eval.batch_size
  answer = flops.count(learner.energies, ready, _rows(spec, images), passes=passes)
  return {
    "parameters": parts["parameters"],
    "training_flops": parts["steps"] * step + len(classes) * at_end,
    "bytes_kept": bytes_kept(state, jax.eval_shape(spec.network.init, key)),
    "inference_flops": round(answer / images),
  }


def bytes_kept(state: PyTree, network: PyTree) -> int:
  """Returns the bytes of a state beside its network's variables and its optimisers."""
  rest = jax.tree.leaves(state, is_leaf=_is_optimiser)
  kept = memory.num_bytes([leaf for leaf in rest if not _is_optimiser(leaf)])
  return max(kept - memory.num_bytes(network), 0)


def _is_optimiser(node: Any) -> bool:
  """Returns whether a node of a state is what a transformation of optax keeps."""
  return isinstance(node, tuple) and type(node).__module__.startswith("optax")


def _rows(spec: RunSpec, number: int) -> Any:
  """Returns the shape of a number of inputs."""
  x = spec.train_images.x
  return jax.ShapeDtypeStruct((number, *x.shape[1:]), x.dtype)


def batch_shapes(spec: RunSpec) -> Batch:
  """Returns the shapes of a step's batch."""
  size, seen = spec.stream.rows.shape[-1], _mask(spec.stream.classes.shape[-1])
  y = _integers(size)
  return Batch(_rows(spec, size), y, y, seen, seen, _integers())


def _finished_task(spec: RunSpec) -> TaskView:
  """Returns the shapes of a finished task."""
  images, rows = len(spec.train_images.y), spec.tables.train_rows.shape[-1]
  return TaskView(
    x=_rows(spec, images),
    y=_integers(images),
    permutation=_integers(spec.tables.permutation.shape[-1]),
    rows=_integers(rows),
    valid=_mask(rows),
    task=_integers(),
    seen=_mask(spec.stream.classes.shape[-1]),
  )


def _integers(*shape: int) -> Any:
  return jax.ShapeDtypeStruct(shape, jnp.int32)


def _mask(size: int) -> Any:
  return jax.ShapeDtypeStruct((size,), bool)
