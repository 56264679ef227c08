"""Adding classes leaves the old ones as they are."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import networks
from ebmjax.networks.growth import grow

KINDS: dict[str, dict[str, Any]] = {
  "learned": {},
  "fixed": {"embedding": "fixed"},
  "mask": {"embedding": "mask", "gated_layers": 2, "skip": False, "gate": "none"},
  "classifier": {"name": "sbc"},
}


def make(classes: int, init_keys=None, name="ebm", hidden=16, **changes):
  return networks.make(
    name,
    input_shape=(9,),
    num_classes=classes,
    init_keys=init_keys,
    hidden=hidden,
    **changes,
  )


@pytest.mark.parametrize("kind", KINDS)
def test_old_labels_keep_their_energies(kind):
  small, large = make(3, **KINDS[kind]), make(5, **KINDS[kind])
  params, state = small.init(jax.random.key(0))
  grown = grow((params, state), large.init(jax.random.key(1)))
  x = jax.random.uniform(jax.random.key(2), (4, 9))
  before, _ = small.energies(params, state, x, jnp.arange(3))
  after, _ = large.energies(*grown, x, jnp.arange(5))
  np.testing.assert_allclose(after[:, :3], before, rtol=1e-6)
  assert len(np.unique(np.asarray(after[0]).round(6))) == 5


@pytest.mark.parametrize("seed", range(4))
def test_old_labels_keep_their_energies_where_only_kept_units_are_computed(seed):
  """The larger network may be wider, because a new class's mask keeps more units."""
  keys = jax.random.split(jax.random.key(seed), 2)
  changes = KINDS["mask"] | {"hidden": 40, "mask_drop_rate": 0.7}
  small = make(3, keys[:1], **changes)
  large = make(9, keys, **changes)
  params, state = small.init(keys[0])
  grown = grow((params, state), large.init(keys[1]))
  x = jax.random.uniform(jax.random.key(2), (4, 9))
  before, _ = small.energies(params, state, x, jnp.arange(3))
  after, _ = large.energies(*grown, x, jnp.arange(9))
  np.testing.assert_allclose(after[:, :3], before, rtol=1e-5)
  assert np.isfinite(after).all()


def test_another_network_is_refused():
  params, state = make(3).init(jax.random.key(0))
  with pytest.raises(ValueError, match="does not fit"):
    grow((params, state), make(5, hidden=8).init(jax.random.key(1)))
