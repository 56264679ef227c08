r"""Training objectives: pure functions of energies, with one value for each row.

Every loss takes energies [B, K] whose column 0 belongs to the true label, and
valid [B, K], the candidates that count (column 0 always does). It returns [B]; the
caller reduces. A row without a valid negative contributes exactly 0, to the value and
to the gradient, so a batch of a single class is harmless.

The functions know nothing of networks or parameters, so they work in any JAX code:

>>> import jax.numpy as jnp
>>> from ebmjax import losses
>>> energies = jnp.array([[0.0, 2.0], [1.0, 1.0]])
>>> losses.contrastive(energies, jnp.array([[True, True], [True, False]])).round(4)
Array([0.1269, 0.    ], dtype=float32)
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ebmjax.prediction import among


def contrastive(energies: ArrayLike, valid: ArrayLike) -> Array:
  r"""Returns [B]: the two-way contrastive loss, a mean over the valid negatives.

  softplus(E(x, y) - E(x, y^-))

  Deviation: the paper (eq. 6) writes the bare difference; its released code optimises
  this bounded form, which reproduces most of the paper's figures.
  """
  energies, valid = _as_pair(energies, valid)
  return _mean_over_negatives(jax.nn.softplus(_gaps(energies)), valid)


def difference(energies: ArrayLike, valid: ArrayLike) -> Array:
  """Returns [B]: E(x, y) - E(x, y^-), the paper's eq. 6 to the letter; unbounded."""
  energies, valid = _as_pair(energies, valid)
  return _mean_over_negatives(_gaps(energies), valid)


def likelihood(energies: ArrayLike, valid: ArrayLike) -> Array:
  r"""Returns [B]: the negative log-likelihood of the true label among the candidates.

  E(x, y) + \log \sum_k \exp(-E(x, y_k))   (eq. 5, over the valid candidates only)
  """
  energies, valid = _as_pair(energies, valid)
  scores = among(-energies, _with_true_label(valid))
  return jnp.where(
    _has_negative(valid), energies[:, 0] + jax.nn.logsumexp(scores, axis=1), 0.0
  )


def joint_pairs(energies: ArrayLike, valid: ArrayLike, *, key: Array) -> Array:
  r"""Returns [B]: the alternative objective (appendix), over re-paired examples.

  softplus(E(x, y) - E(x', y')), x' and y' drawn from the batch independently. Column 1
  must hold E(x_i, y_{\rho(i)}) for a random permutation \rho of the batch's labels
  (`negatives.repaired`); the rows' partners are permuted here, so that both image and
  label of the negative pair come from anywhere in the batch. A pair may be a true one.
  Deviation: the appendix writes the bare difference, as for `contrastive`.
  """
  energies, valid = _as_pair(energies, valid)
  if energies.shape[1] != 2:
    raise ValueError(
      f"joint_pairs takes energies [B, 2], not {list(energies.shape)}: those of the "
      "labels that negatives.repaired draws."
    )
  partner = jax.random.permutation(key, energies.shape[0])
  pairs = jnp.stack([energies[:, 0], energies[partner, 1]], axis=1)
  return contrastive(pairs, jnp.stack([valid[:, 0], valid[partner, 1]], axis=1))


def joint_triples(energies: ArrayLike, valid: ArrayLike) -> Array:
  r"""Returns [B]: `likelihood` of the true pair, with another label and another image.

  E(x, y) + \log(\exp(-E(x, y)) + \exp(-E(x, y^-)) + \exp(-E(x', y))), another reading
  of the appendix. The last column must hold E(x_i, y_{i+1}), as
  `negatives.label_and_image` draws it: the energy of row i + 1 with the image before.
  """
  energies, valid = _as_pair(energies, valid)
  moved = [x.at[:, -1].set(jnp.roll(x[:, -1], 1)) for x in (energies, valid)]
  return likelihood(*moved)


def ce(energies: ArrayLike, valid: ArrayLike) -> Array:
  r"""Returns [B]: softmax cross-entropy over the valid candidates, logits being -E.

  The same formula as `likelihood`, under its usual name for softmax classifiers.
  A row whose only candidate is the true label has cross-entropy 0 in any case.
  """
  return likelihood(energies, valid)


LOSSES: dict[str, Callable[..., Array]] = {
  "contrastive": contrastive,
  "difference": difference,
  "likelihood": likelihood,
  "joint_pairs": joint_pairs,
  "joint_triples": joint_triples,
  "ce": ce,
}


def _as_pair(energies: ArrayLike, valid: ArrayLike) -> tuple[Array, Array]:
  """Returns both as arrays; raises where they would broadcast."""
  energies, valid = jnp.asarray(energies), jnp.asarray(valid)
  if energies.ndim != 2 or energies.shape != valid.shape:
    raise ValueError(
      "energies and valid must both be [B, K], not "
      f"{list(energies.shape)} and {list(valid.shape)}."
    )
  if valid.dtype != bool or not jnp.issubdtype(energies.dtype, jnp.floating):
    raise ValueError(
      "energies must be floating-point numbers and valid booleans, not "
      f"{energies.dtype} and {valid.dtype}."
    )
  return energies, valid


def _gaps(energies: Array) -> Array:
  """Returns [B, K - 1]: the true label's energy minus each negative's."""
  return energies[:, :1] - energies[:, 1:]


def _mean_over_negatives(values: Array, valid: Array) -> Array:
  """Returns [B]: the mean of values [B, K - 1] over the valid negatives, or 0."""
  counted = valid[:, 1:]
  total = jnp.sum(jnp.where(counted, values, 0.0), axis=1)
  return total / jnp.maximum(jnp.sum(counted, axis=1), 1).astype(values.dtype)


def _has_negative(valid: Array) -> Array:
  return jnp.any(valid[:, 1:], axis=1)


def _with_true_label(valid: Array) -> Array:
  return valid.at[:, 0].set(True)
