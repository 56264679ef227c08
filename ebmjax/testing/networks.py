"""Tests of a network: what losses, methods and evaluation rely on.

`check_network` runs all checks. Each takes a `Trial`, so that a test can also run one
check of one network; programs are compiled once for all of them.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from ebmjax import networks
from ebmjax.errors import ConfigError
from ebmjax.networks import Inputs, NetworkSpec
from ebmjax.networks.functions import no_features
from ebmjax.networks.own import build as build_own
from ebmjax.testing import trees
from ebmjax.testing.keys import require_documented, require_valid, reuses_key
from ebmjax.types import Network

CLASSES, SIZE = 4, 3
# Rows, grey images and colour images; a trial is of the first that a network accepts.
SHAPES = ((12,), (8, 8, 3), (8, 8, 1), (32, 32, 3), (13, 9, 3), (12, 20), (3, 3, 3))


class Trial(NamedTuple):
  """A network for small inputs; hashable, so that it is built once."""

  make: Callable[..., Network]
  shape: tuple[int, ...]  # of one input
  settings: tuple[tuple[str, Any], ...]  # of the network's keys


class Built(NamedTuple):
  """A network, its first variables and a few images."""

  network: Network
  params: Any
  model_state: Any
  x: jax.Array  # [B, ...] uint8

  def energies(self, labels: Any, x: Any = None) -> jax.Array:
    """Returns energies as at test time."""
    x = self.x if x is None else x
    return _compiled(self.network)(self.params, self.model_state, x, labels)[0]


def make_trial(spec: NetworkSpec, **keys: Any) -> Trial:
  """Returns a network for the first shape that it accepts."""
  accepted = [shape for shape in SHAPES if spec.accepts(shape)]
  assert accepted, f"`accepts` refuses all of {SHAPES}"
  return Trial(spec.make, accepted[0], tuple(sorted({**spec.small, **keys}.items())))


@functools.cache  # returns the same functions, so that nothing is compiled twice
def build(trial: Trial) -> Built:
  """Returns the trial's network with variables and images."""
  inputs = Inputs(trial.shape, CLASSES, num_tasks=2)
  network = trial.make(inputs, **dict(trial.settings))
  params, model_state = jax.jit(network.init)(jax.random.key(0))
  rng = np.random.default_rng(0)
  images = rng.integers(0, 256, (SIZE, *trial.shape))
  return Built(network, params, model_state, jnp.asarray(images, jnp.uint8))


@functools.cache
def _compiled(network: Network) -> Any:
  return jax.jit(network.energies, static_argnames="train")


def check_network(spec: NetworkSpec, **keys: Any) -> None:
  """Raises AssertionError, with a sentence, if a network breaks a contract."""
  check_spec(spec)
  require_valid(keys, spec.keys, "the test")
  trial = make_trial(spec, **keys)
  check_features(trial, spec)
  for check in CHECKS.values():
    check(trial)


def check_spec(spec: NetworkSpec) -> None:
  """Checks what a spec declares: help, defaults, small keys, shapes, its classifier."""
  require_documented(spec.keys)
  require_valid(spec.small, spec.keys, "small")
  check_accepts(spec)
  if spec.classifier:
    named = networks.find(spec.classifier)
    assert not named.energy, f"{spec.classifier!r} is not a classifier"


def check_accepts(spec: NetworkSpec) -> None:
  """The network works with each shape that it accepts, and says why it refuses others.

  If it takes rows, it also works with each grey image as a row.
  """
  for shape in SHAPES:
    if not spec.accepts(shape):
      explained = spec.wants != NetworkSpec._field_defaults["wants"]
      assert explained, f"`accepts` refuses {shape}; say in `wants` what it takes"
      continue
    _require_built(spec, shape)
    if spec.takes_rows and len(shape) > 1:
      _require_built(spec, (math.prod(shape),))


def _require_built(spec: NetworkSpec, shape: tuple[int, ...]) -> None:
  """Requires energies of inputs of a shape, or raises with the remedy."""
  try:
    build_own(spec.title, spec, Inputs(shape, CLASSES, num_tasks=2), **spec.small)
  except ConfigError as error:
    raise AssertionError(str(error)) from error


def check_features(trial: Trial, spec: NetworkSpec) -> None:
  """Features are [B, F], with the F that the spec declares, if any."""
  network, params, state, x = build(trial)
  if network.features is no_features:
    return
  found = jax.eval_shape(network.features, params, state, x)
  assert found.ndim == 2 and len(found) == SIZE, f"features have shape {found.shape}"
  defaults = {name: key.default for name, key in spec.keys.items()}
  declared = spec.num_features(ConfigDict(defaults | dict(trial.settings)))
  right = declared in (None, found.shape[1])
  assert right, f"num_features says {declared}, but there are {found.shape[1]}"


def check_energies(trial: Trial) -> None:
  """Energies are finite float32: [B, K] for labels [B, K], [B, L] for labels [L]."""
  built = build(trial)
  for labels, shape in (
    (jnp.zeros((SIZE, 2), jnp.int32), (SIZE, 2)),
    (jnp.arange(CLASSES), (SIZE, CLASSES)),
  ):
    found = built.energies(labels)
    asked = f"energies of labels {labels.shape}"
    assert found.shape == shape, f"{asked} are {found.shape}, not {shape}"
    assert found.dtype == jnp.float32, f"{asked} are {found.dtype}, not float32"
    trees.require_finite(found, asked)
  assert built.network.num_classes == CLASSES, "num_classes is not the inputs'"


def check_shared_labels_equal_own_labels(trial: Trial) -> None:
  """Labels [L] have the energies of the same labels given to each row, in any order."""
  built, labels = build(trial), jnp.array([2, 0, 3, 1])
  everything = built.energies(jnp.arange(CLASSES))
  trees.require_close(
    built.energies(labels), everything[:, labels], "labels in another order"
  )
  own = built.energies(jnp.tile(labels[None, :2], (SIZE, 1)))
  trees.require_close(own, everything[:, labels[:2]], "labels [B, K] and labels [L]")


def check_rows_are_independent(trial: Trial) -> None:
  """At test time an image has the same energies whatever else is in its batch."""
  built, labels = build(trial), jnp.arange(CLASSES)
  other = built.x.at[1:].set(255 - built.x[1:])
  one, two = (built.energies(labels, x)[0] for x in (built.x, other))
  trees.require_close(one, two, "an image in two batches")


def check_gradients_reach_every_label(trial: Trial) -> None:
  """Each label's energy has a gradient of its own, unlike those of other labels."""
  network, params, state, x = build(trial)

  def total(params: Any, label: Any) -> Any:
    return jnp.sum(network.energies(params, state, x, label[None], train=True)[0])

  gradient = jax.jit(jax.grad(total))
  found = [jax.tree.leaves(gradient(params, jnp.int32(i))) for i in range(CLASSES)]
  for label, leaves in enumerate(found):
    moves = any(np.asarray(leaf).any() for leaf in leaves)
    assert moves, f"no parameter has a gradient of label {label}'s energy"
    for other in range(label):
      pairs = zip(leaves, found[other], strict=True)
      differ = any((np.asarray(a) != np.asarray(b)).any() for a, b in pairs)
      assert differ, f"labels {other} and {label} have the same gradient"


def check_compiled_equals_eager(trial: Trial) -> None:
  """Energies are the same with and without jit."""
  built, labels = build(trial), jnp.arange(CLASSES)
  given = built.params, built.model_state, built.x, labels
  eager = built.network.energies(*given)[0]
  trees.require_close(built.energies(labels), eager, "compiled and eager energies")


def check_seeds_are_independent(trial: Trial) -> None:
  """Under vmap, networks start and answer as they do one after the other."""
  network, _, _, x = build(trial)
  keys, labels = jax.random.split(jax.random.key(1), 2), jnp.arange(CLASSES)

  def answer(params: Any, state: Any) -> Any:
    return network.energies(params, state, x, labels)[0]

  together = jax.jit(jax.vmap(network.init))(keys)
  energies = jax.jit(jax.vmap(answer))(*together)
  for i, key in enumerate(keys):
    alone = jax.jit(network.init)(key)
    mine = jax.tree.map(lambda leaf, i=i: leaf[i], together)
    trees.require_close(mine, alone, f"variables of key {i} under vmap and alone")
    found = _compiled(network)(*alone, x, labels)[0]
    trees.require_close(energies[i], found, f"energies of key {i} under vmap and alone")


def check_state_moves_in_training_alone(trial: Trial) -> None:
  """A pass keeps the types in `model_state`, and at test time the values."""
  built, labels = build(trial), jnp.arange(CLASSES)
  given = built.params, built.model_state, built.x, labels
  run = _compiled(built.network)
  trees.require_same(built.model_state, run(*given)[1], "model_state after a test pass")
  after = jax.eval_shape(functools.partial(run, train=True), *given)[1]
  trees.require_alike(built.model_state, after, "model_state after a training pass")


def check_uses_each_key_once(trial: Trial) -> None:
  """No random key is used twice."""
  reused = reuses_key(build(trial).network.init, jax.random.key(0))
  assert not reused, "init uses a random key twice; split it or fold a number in"


CHECKS: dict[str, Callable[[Trial], None]] = {
  check.__name__.removeprefix("check_"): check
  for check in (
    check_energies,
    check_shared_labels_equal_own_labels,
    check_rows_are_independent,
    check_gradients_reach_every_label,
    check_compiled_equals_eager,
    check_seeds_are_independent,
    check_state_moves_in_training_alone,
    check_uses_each_key_once,
  )
}
