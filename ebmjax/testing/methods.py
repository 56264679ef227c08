"""Tests of a method: what the runner, evaluation and checkpoints rely on.

`check_method` runs all checks. Each takes a `Trial`, so that a test can also run one
check of one method; programs are compiled once for all of them.
"""

import functools
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ebmjax import networks, objectives
from ebmjax.methods import MethodSpec
from ebmjax.runtime.checkpoints import Checkpoints
from ebmjax.testing import trees
from ebmjax.testing.keys import require_documented, require_valid, reuses_key
from ebmjax.testing.tasks import (
  CLASSES,
  NUM_TASKS,
  PIXELS,
  SIZE,
  batch_at,
  later_batch,
  view_of,
)
from ebmjax.types import Learner, Problem

# Shared by all checks: another would be compiled again. SGD leaves alone what has no
# gradient and does not amplify rounding; its momentum is state for checkpoints.
SGD = optax.sgd(0.05, momentum=0.9)
ADAM = optax.adam(3e-3)
_NETWORK: dict[str, Any] = {"hidden": 24, "context": 3}  # if it has these keys


class Trial(NamedTuple):
  """A method on a small problem; hashable, so that its learner is built once."""

  make: Callable[..., Learner]
  boundaries: bool  # whether it has to consolidate at them
  network: str
  objective: str
  negatives: str
  settings: tuple[tuple[str, Any], ...]  # of the method's keys


def make_trial(
  spec: MethodSpec,
  network: str = "",
  objective: str = "",
  negatives: str = "",
  **keys: Any,
) -> Trial:
  """Returns a method on a network, with that network's usual objective.

  Without a `network` it is the method's own, or the softmax classifier.
  """
  network = network or spec.network or "sbc"
  energy = networks.find(network).energy
  settings = {**spec.small, **keys}
  return Trial(
    spec.make,
    spec.boundaries and not settings.get("consolidate_every"),
    network,
    objective or ("contrastive" if energy else "ce"),
    negatives or ("one_of_task" if energy else "all_seen"),
    tuple(sorted(settings.items())),
  )


def make_problem(trial: Trial, tx: optax.GradientTransformation) -> Problem:
  """Returns two tasks of two classes; images are rows of 12 pixels."""
  known = networks.find(trial.network).keys
  network = networks.make(
    trial.network,
    input_shape=(PIXELS,),
    num_classes=CLASSES,
    num_tasks=NUM_TASKS,
    **{name: value for name, value in _NETWORK.items() if name in known},
  )
  objective = objectives.make(trial.objective, trial.negatives)
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)
  return Problem(network, objective, tx, row, NUM_TASKS)


@functools.cache  # returns the same functions, so that nothing is compiled twice
def make_learner(trial: Trial, tx: optax.GradientTransformation = ADAM) -> Learner:
  """Returns the method's learner of the small problem."""
  return trial.make(make_problem(trial, tx), **dict(trial.settings))


def check_method(
  spec: MethodSpec,
  network: str = "",
  exempt: Mapping[str, str] | None = None,
  **keys: Any,
) -> None:
  """Raises AssertionError, with a sentence, if a method breaks a contract.

  `keys` are the method's; `exempt` names checks that do not apply, with the reason, as
  the spec's own `exempt` does.
  """
  check_spec(spec)
  require_valid(keys, spec.keys, "the test")
  excused = {**spec.exempt, **(exempt or {})}
  unknown = set(excused) - set(CHECKS)
  assert not unknown, f"exempt names {unknown}; the checks are {', '.join(CHECKS)}"
  trial = make_trial(spec, network, **keys)
  for name, check in CHECKS.items():
    if name not in excused:
      check(trial)


def check_spec(spec: MethodSpec) -> None:
  """Checks what a spec declares: help, defaults, published and small settings."""
  require_documented(spec.keys)
  require_valid(spec.small, spec.keys, "small")
  for place, published in spec.published.items():
    require_valid(published.values, spec.keys, f"published[{place!r}]")
    assert published.source, f"published[{place!r}] names no source"
  if spec.network:
    networks.find(spec.network)


def train(learner: Learner, state: Any, steps: int, compiled: bool = True) -> Any:
  """Returns the state after some steps of the first task."""
  step = jax.jit(learner.step) if compiled else learner.step
  for i in range(steps):
    state, metrics = step(state, jax.random.key(i), batch_at(i))
    assert np.isfinite(metrics["loss"]), f"the loss is not finite at step {i}"
  return state


def _start(learner: Learner) -> Any:
  return jax.jit(learner.init)(jax.random.key(0))


def _end_task(learner: Learner) -> Callable[..., Any]:
  """Returns the compiled `consolidate`, or the identity if there is none."""
  if learner.consolidate is None:
    return lambda state, key, view: state
  return jax.jit(learner.consolidate)


def check_compiled_equals_eager(trial: Trial) -> None:
  """A step has the same result with and without jit."""
  learner = make_learner(trial, SGD)
  state = _start(learner)
  one, two = (train(learner, state, 1, compiled) for compiled in (True, False))
  trees.require_close(one, two, "a compiled and an eager step")


def check_seeds_are_independent(trial: Trial) -> None:
  """Seeds under vmap have the results of seeds one after the other."""
  learner = make_learner(trial, SGD)
  keys = jax.random.split(jax.random.key(0), 3)
  later = jax.random.split(jax.random.key(1), 3)
  batches, view = (batch_at(0), later_batch(1, task=1)), view_of(0)

  def run(init, step, consolidate, key, other):
    """Runs a step, the end of the task, and a step after it."""
    state, _ = step(init(key), key, batches[0])
    return step(consolidate(state, other, view), other, batches[1])

  # Compiled one by one: the programs of one seed are those of the other checks.
  alone = jax.jit(learner.init), jax.jit(learner.step), _end_task(learner)
  seeds = (0, 0, None)
  together = run(
    jax.jit(jax.vmap(learner.init)),
    jax.jit(jax.vmap(learner.step, seeds)),
    _end_task(learner.wrapped(lambda function: jax.vmap(function, seeds))),
    keys,
    later,
  )
  for i in range(3):
    mine = jax.tree.map(lambda leaf, i=i: leaf[i], together)
    found = run(*alone, keys[i], later[i])
    trees.require_close(mine, found, f"seed {i} under vmap and alone")


def check_step_keeps_types(trial: Trial) -> None:
  """A step keeps the state's structure, shapes and types, as a scan needs."""
  learner = make_learner(trial, SGD)
  state = jax.jit(learner.init).eval_shape(jax.random.key(0))
  after, metrics = jax.jit(learner.step).eval_shape(
    state, jax.random.key(0), batch_at(0)
  )
  trees.require_alike(state, after, "the state after a step")
  assert "loss" in metrics, 'a step\'s metrics need a "loss"'
  shape = metrics["loss"].shape
  assert shape == (), f"the loss of a step must be one number, not of shape {shape}"


def check_consolidating_keeps_types(trial: Trial) -> None:
  """Consolidating keeps the state's structure, shapes and types."""
  learner = make_learner(trial, SGD)
  state = jax.jit(learner.init).eval_shape(jax.random.key(0))
  after = jax.eval_shape(_end_task(learner), state, jax.random.key(0), view_of(0))
  trees.require_alike(state, after, "the state after consolidating")


def check_consolidates_as_declared(trial: Trial) -> None:
  """The learner has a `consolidate` if and only if its spec has `boundaries`."""
  found = make_learner(trial, SGD).consolidates
  assert found == trial.boundaries, (
    f"the learner has consolidates={found}, but its spec boundaries={trial.boundaries}"
  )


def check_trains_after_boundaries(trial: Trial) -> None:
  """Two boundaries, with steps between them, leave everything finite."""
  learner = make_learner(trial, SGD)
  state = train(learner, _start(learner), 3)
  for task in range(NUM_TASKS):
    key = jax.random.key(50 + task)
    state = _end_task(learner)(state, key, view_of(task))
    state, metrics = jax.jit(learner.step)(state, key, later_batch(task, task + 1))
    assert np.isfinite(metrics["loss"]), f"the loss after boundary {task} is not finite"
  trees.require_finite(state, "the state after two boundaries")


def check_learns_with_one_program(trial: Trial) -> None:
  """150 steps separate two classes, and no step is compiled twice."""
  learner = make_learner(trial, SGD)
  state = train(learner, _start(learner), 1)
  step: Any = jax.jit(learner.step)
  programs = step._cache_size()
  state = train(learner, state, 150)
  assert step._cache_size() == programs, "a later step was compiled again"
  batch = batch_at(999)
  energies = learner.energies(state, batch.x)
  shape = energies.shape
  assert shape == (SIZE, CLASSES), f"energies have the shape {shape}, not [B, C]"
  right = float((jnp.argmin(energies[:, :2], axis=1) == batch.y).mean())
  assert right > 0.9, f"after 150 steps only {right:.0%} of two classes are right"


def _step_on_one_class(trial: Trial) -> tuple[Learner, Any, Any, float]:
  learner = make_learner(trial, SGD)
  only = jnp.arange(CLASSES) == 1
  batch = batch_at(0, labels=(1,))
  if trial.negatives in ("one_of_task", "all_seen"):
    batch = batch._replace(seen=only, negatives=only)
  state = _start(learner)
  after, metrics = jax.jit(learner.step)(state, jax.random.key(1), batch)
  return learner, state, after, float(metrics["loss"])


def check_one_class_keeps_energies(trial: Trial) -> None:
  """Without a negative there is no loss, and SGD changes no energy."""
  learner, state, after, loss = _step_on_one_class(trial)
  assert loss == 0, f"a batch of one class has no negative, but a loss of {loss}"
  x = batch_at(1).x
  before, now = (learner.energies(each, x) for each in (state, after))
  trees.require_same(before, now, "energies after a single class")


def check_one_class_keeps_state(trial: Trial) -> None:
  """Nothing else changes either, unless a method stores or generates data."""
  _, state, after, _ = _step_on_one_class(trial)
  trees.require_same(state, after, "the state after a single class")


def check_resumes_from_a_checkpoint(trial: Trial) -> None:
  """A saved state is restored to the bit, so a run continues as if uninterrupted."""
  learner = make_learner(trial, SGD)
  state = train(learner, _start(learner), 2)
  with (
    tempfile.TemporaryDirectory() as folder,
    Checkpoints(Path(folder), keep=1) as keeper,
  ):
    keeper.save(2, state)
    restored = keeper.restore(state)
  assert restored is not None and restored[0] == 2, "the checkpoint was not found"
  trees.require_same(state, restored[1], "the state in a checkpoint")


def check_uses_each_key_once(trial: Trial) -> None:
  """No random key is used twice."""
  learner, key = make_learner(trial, SGD), jax.random.key(0)
  state = jax.jit(learner.init).eval_shape(key)
  for name, given in (
    ("init", (key,)),
    ("step", (state, key, batch_at(0))),
    ("consolidate", (state, key, view_of(0))),
  ):
    function = getattr(learner, name)
    reused = function is not None and reuses_key(function, *given)
    assert not reused, f"{name} uses a random key twice; split it or fold a number in"


# By the names that `exempt` takes.
CHECKS: dict[str, Callable[[Trial], None]] = {
  check.__name__.removeprefix("check_"): check
  for check in (
    check_compiled_equals_eager,
    check_seeds_are_independent,
    check_step_keeps_types,
    check_consolidating_keeps_types,
    check_consolidates_as_declared,
    check_trains_after_boundaries,
    check_learns_with_one_program,
    check_one_class_keeps_energies,
    check_one_class_keeps_state,
    check_resumes_from_a_checkpoint,
    check_uses_each_key_once,
  )
}
