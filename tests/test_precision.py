"""Products in a chosen precision, of any function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ebmjax.config.groups import keys_of
from ebmjax.runtime import scan
from ebmjax.runtime.precision import in_bfloat16, with_precision
from ebmjax.runtime.trainer import Trainer, make_run_spec
from ebmjax.types import Learner
from tests.states import made, small


def rounded(x):
  return x.astype(jnp.bfloat16).astype(jnp.float32)


def test_products_are_those_of_rounded_numbers():
  """In the gradient too, and within every kind of loop and branch."""
  key = jax.random.key(0)
  x, w = jax.random.normal(key, (5, 7)), jax.random.normal(key, (7, 7))

  def loss(w, product):
    def body(h, _):
      h = lax.cond(h[0, 0] > 9, lambda h: h, lambda h: product(jnp.tanh(h), w), h)
      return h, jnp.sum(h)

    h, sums = lax.scan(body, x, None, length=2)
    h = lax.fori_loop(0, 2, lambda i, h: product(h, lax.stop_gradient(w)), h)
    return jnp.sum(h) + jnp.sum(sums)

  plain = loss(w, lambda a, b: a @ b)
  found = jax.jit(in_bfloat16(lambda w: loss(w, lambda a, b: a @ b)))(w)
  expected = loss(w, lambda a, b: rounded(a) @ rounded(b))
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  assert abs(found - plain) > 1e-4

  gradient = in_bfloat16(jax.grad(lambda w: jnp.sum((x @ w) ** 2)))(w)
  by_hand = rounded(x).T @ rounded(2 * (rounded(x) @ rounded(w)))
  np.testing.assert_allclose(gradient, by_hand, rtol=1e-5, atol=1e-5)
  assert gradient.dtype == jnp.float32


@pytest.mark.parametrize("name", keys_of({})["runner.precision"].choices)
def test_a_program_for_a_gpu_states_its_precision(name: str, monkeypatch):
  monkeypatch.setattr(jax, "default_backend", lambda: "gpu")

  def step(state, key, batch):
    del key
    return state @ batch, {}

  learner = Learner(lambda key: key, step, step, lambda state, x: state @ x)
  shapes = (jax.ShapeDtypeStruct((4, 4), jnp.float32),) * 3
  changed = with_precision(learner, name).step
  text = jax.jit(changed).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text()
  asked = {"highest": "HIGHEST", "tf32": "[HIGH, HIGH]", "bfloat16": "4xbf16>) -> tens"}
  for other, word in asked.items():
    assert (word in text) is (other == name)


def test_a_step_in_bfloat16_keeps_single_precision_weights():
  config, images = small("configs/splitmnist.py:ewc"), made("mnist")
  losses = {}
  for name in ("auto", "bfloat16"):
    config.runner.precision = name
    spec = make_run_spec(config, images, "map")
    trainer = Trainer(spec)
    losses[name] = trainer.train(next(scan.chunks(spec.stream, 0, 4, 4)))
    trainer.consolidate(0)
    assert all(leaf.dtype != jnp.bfloat16 for leaf in jax.tree.leaves(trainer.states))
  np.testing.assert_allclose(losses["auto"], losses["bfloat16"], rtol=0.02)
  assert (losses["auto"] != losses["bfloat16"]).any()


@pytest.mark.parametrize("variants", ["icarl,sbc", "slda", "ncm"])
def test_a_prepared_state_answers_as_the_state_itself_in_bfloat16(variants: str):
  config, images = small(f"configs/splitmnist.py:{variants}"), made("mnist")
  config.runner.precision = "bfloat16"
  spec = make_run_spec(config, images, "map")
  learner, trainer = spec.learner, Trainer(spec)
  trainer.train(next(scan.chunks(spec.stream, 0, 4, 4)))
  trainer.consolidate(0)
  state = jax.tree.map(lambda leaf: leaf[0], trainer.states)
  x = jnp.asarray(spec.test_images.x[:8])
  found = jax.jit(learner.energies)(jax.jit(learner.ready)(state), x)
  np.testing.assert_allclose(found, jax.jit(learner.energies)(state, x), rtol=1e-6)


def test_the_precision_leaves_the_first_state_alone():
  config, images = small("configs/splitmnist.py:patches_sqda"), made("mnist")
  states = []
  for name in ("auto", "bfloat16"):
    config.runner.precision = name
    states.append(Trainer(make_run_spec(config, images, "map")).states)
  for one, other in zip(*map(jax.tree.leaves, states), strict=True):
    np.testing.assert_array_equal(one, other)
