"""The label of lowest energy, and what is refused in place of a wrong one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax.prediction import among, predict

ENERGIES = np.array([[2.0, 0.5, -1.0], [0.1, 0.3, -9.0]])


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_candidates_of_all_rows_or_of_each(dtype):
  with jax.enable_x64(True):
    energies = jnp.asarray(ENERGIES, dtype)
    shared = np.array([True, True, False])
    own = np.array([[True, False, False], [False, True, True]])
    assert jax.jit(predict)(energies, shared).tolist() == [1, 0]
    assert predict(energies, own).tolist() == [0, 2]
    assert jax.vmap(predict, (0, None))(energies[None], own).tolist() == [[0, 2]]
    assert among(energies, jnp.asarray(own)).dtype == dtype


@pytest.mark.parametrize(
  "candidates",
  [np.ones(2, bool), np.ones((3, 3), bool), np.ones((1, 2, 3), bool), np.arange(3)],
)
def test_what_is_no_mask_of_the_classes_is_refused(candidates):
  with pytest.raises(ValueError, match="must be a mask of booleans"):
    predict(ENERGIES, candidates)
