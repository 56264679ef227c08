"""What is said to have no effect is what nothing reads."""

import logging
from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax
import pytest

from ebmjax import networks, objectives
from ebmjax.config import default, loading
from ebmjax.effects import without_effect
from ebmjax.errors import ConfigError
from ebmjax.methods import METHODS
from ebmjax.tools.sweep import settings
from ebmjax.traits import TRAITS
from ebmjax.types import Problem
from tests.helpers import SPLIT
from tests.two_tasks import CLASSES, PIXELS, batch_of, end_of


class Reading:
  """A part of a configuration that notes which of its keys are read."""

  def __init__(self, part: Any):
    self._part, self.read = part, set[str]()

  def __getattr__(self, key: str) -> Any:
    self.read.add(key)
    return self._part[key]

  __getitem__ = __getattr__


def periods(method: str) -> tuple[int, ...]:
  return (0, 2) if TRAITS[method].periodic else (0,)


def keys_read_by(method: str, consolidate_every: int) -> set[str]:
  """Returns the keys of config.method that all functions of the learner read."""
  config = default()
  config.network.update({"name": "sbc", "hidden": 3})
  config.network.context = 3 if method == "ctn" else 0
  config.method.update({"name": method, "budget": 8, "latent": 2, "adapted": 2})
  config.method.update({"generator_hidden": 3, "consolidate_every": consolidate_every})
  network = networks.make(
    config.network, input_shape=(PIXELS,), num_classes=CLASSES, num_tasks=2
  )
  row = jax.ShapeDtypeStruct((PIXELS,), jnp.uint8)
  objective = objectives.make("ce", "all_seen")
  problem = Problem(network, objective, optax.sgd(0.1), row, 2)
  given, key = Reading(config.method), jax.random.key(0)
  learner = METHODS[method](problem, given)
  state = jax.eval_shape(learner.init, key)
  jax.eval_shape(learner.step, state, key, batch_of(0))
  jax.eval_shape(learner.consolidate, state, key, end_of(0))
  jax.eval_shape(learner.energies, state, batch_of(0).x)
  return given.read


@pytest.mark.parametrize(
  ("method", "consolidate_every"),
  [(method, every) for method in METHODS for every in periods(method)],
)
def test_the_keys_of_a_method_are_those_it_reads(method, consolidate_every):
  config = default()
  config.method.update({"name": method, "consolidate_every": consolidate_every})
  unread = {key for key in config.method if f"method.{key}" in without_effect(config)}
  always = {"name", "consolidate_every"}
  read = keys_read_by(method, consolidate_every)
  assert unread == set(config.method) - read - always


@pytest.mark.parametrize(
  ("trunk", "name"),
  [
    *((trunk, name) for trunk in ("none", "conv4", "conv5") for name in ("ebm", "sbc")),
    ("resnet18", "sbc"),
  ],
)
def test_the_keys_of_a_network_are_those_it_reads(trunk, name):
  config = default()
  # Masks switched on: with them `mask_off` counts, too.
  config.network.update({"trunk": trunk, "name": name, "embedding": "mask"})
  given = Reading(config.network)
  shape = (PIXELS,) if trunk == "none" else (32, 32, 3)
  networks.make(given, input_shape=shape, num_classes=CLASSES)
  unread = {key for key in config.network if f"network.{key}" in without_effect(config)}
  # A mask is told of a gate, and leaves it at that.
  read = given.read - {"gate", "skip"}
  # These have rules: a value that is not read is refused.
  assert unread == set(config.network) - read - {"label_rows", "context", "name"}


def test_a_mask_leaves_no_gate_to_normalise():
  config = default().network
  config.update({"hidden": 4, "embedding": "mask"})

  def energies(gate: str, skip: bool) -> jax.Array:
    config.update({"gate": gate, "skip": skip})
    network = networks.make(config, input_shape=(PIXELS,), num_classes=CLASSES)
    state = network.init(jax.random.key(0))
    return network.energies(*state, batch_of(0).x, jnp.arange(CLASSES))[0]

  chex.assert_trees_all_equal(energies("l2", True), energies("softmax", False))


@pytest.mark.parametrize(
  ("variants", "key", "value", "because"),
  [
    ("lwf,sbc", "method.strength", 3.0, "config.method.name='lwf'"),
    ("sbc", "network.gate", "softmax", "config.network.name='sbc'"),
    ("boundary_free", "stream.iterations", 7, "config.stream.setting='boundary_free'"),
    ("sbc", "stream.epochs_per_task", 7, "config.stream.setting='boundary_aware'"),
    ("bgd,sbc", "optimiser.learning_rate", 0.5, "config.method.name='bgd'"),
    ("sbc", "network.mask_off", 0.5, "config.network.name='sbc'"),
    (
      *("boundary_free,er,sbc", "method.quota", "class"),
      "config.method.consolidate_every=1",
    ),
  ],
)
def test_a_key_without_effect_is_told(variants, key, value, because, caplog):
  with caplog.at_level(logging.WARNING):
    loading.parse(["", f"--config={SPLIT}:{variants}", f"--config.{key}={value}"])
  assert caplog.messages == [f"config.{key}={value!r} has no effect with {because}."]


@pytest.mark.parametrize(
  "flag", ["--config.method.strength=3", "--config.stream.epochs_per_task=10"]
)
def test_nothing_is_told_of_a_key_that_counts_or_stays_as_it_is(flag, caplog):
  loading.parse(["", f"--config={SPLIT}:ewc,sbc", flag])
  assert not caplog.messages


def test_settings_that_differ_in_what_nothing_reads_are_the_same_run():
  with pytest.raises(ConfigError, match="two settings are the same run"):
    settings.make(f"{SPLIT}:lwf,sbc", ["config.method.strength=1,2"], [], [])
