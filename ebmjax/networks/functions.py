"""Networks of other libraries, or of none, behind the functions of `types.Network`.

`from_functions` takes an energy function of parameters, as Equinox, Haiku and plain JAX
have them. `from_nnx` takes a function that builds a `flax.nnx` module. Both only need
to handle labels [B, K]: a set of labels for the whole batch is repeated for each row.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array

from ebmjax.errors import ConfigError
from ebmjax.networks.normalisation import Normalise, Preparation
from ebmjax.types import Network, PyTree

if TYPE_CHECKING:
  from flax import nnx  # importing it takes half a second


def from_functions(
  init: Callable[[Array], PyTree],
  energies: Callable[[PyTree, Array, Array], Array],
  num_classes: int,
  *,
  features: Callable[[PyTree, Array], Array] | None = None,
  normalise: Preparation | None = None,
) -> Network:
  """Returns a network made of functions of its parameters, from any framework.

  init(key) returns the parameters, a tree of arrays; energies(params, x, labels) the
  energies [B, K] of labels [B, K] for prepared inputs x [B, ...]; features(params, x),
  which some methods need, [B, F]. `normalise` prepares inputs (`Inputs.prepare`).

  >>> import jax, jax.numpy as jnp
  >>> from ebmjax import networks
  >>> def init(key):
  ...   return jax.random.normal(key, (4, 3))
  >>> def energies(params, x, labels):
  ...   return -jnp.take_along_axis(x @ params, labels, axis=1)
  >>> network = networks.from_functions(init, energies, num_classes=3)
  >>> params, state = network.init(jax.random.key(0))
  >>> network.energies(params, state, jnp.ones((2, 4)), jnp.arange(3))[0].shape
  (2, 3)
  """
  prepare = normalise or Normalise()

  def start(key: Array) -> tuple[PyTree, PyTree]:
    return init(key), {}

  def of_labels(
    params: PyTree, model_state: PyTree, x: Array, labels: Array, train: bool = False
  ) -> tuple[Array, PyTree]:
    del train  # nothing here differs in training
    rows = _for_each_row(labels, len(x))
    return _checked(energies(params, prepare(x), rows), rows), model_state

  def of_inputs(params: PyTree, model_state: PyTree, x: Array) -> Array:
    del model_state
    assert features is not None
    return features(params, prepare(x))

  return Network(
    start, of_labels, no_features if features is None else of_inputs, num_classes
  )


def from_nnx(
  make: "Callable[[nnx.Rngs], nnx.Module]",
  num_classes: int,
  *,
  normalise: Preparation | None = None,
) -> Network:
  """Returns a network of the modules that make(rngs) builds.

  module(x, labels) returns energies [B, K] of labels [B, K] for prepared inputs
  x [B, ...]; a method `features(x)`, which some methods need, returns [B, F]. Variables
  of type `nnx.Param` are trained. All others (running statistics, random streams)
  change during training and stay fixed at test time.
  """
  from flax import nnx

  prepare = normalise or Normalise()
  shapes: Any = nnx.eval_shape(lambda: make(nnx.Rngs(0)))
  parts: Any = nnx.split(shapes, nnx.Param, ...)
  form, like = parts[0], nnx.to_pure_dict(parts[2])

  def merge(params: PyTree, model_state: PyTree, train: bool = False) -> Any:
    rest = jax.tree.map(_as_key, like, model_state)
    module: Any = nnx.merge(form, params, rest)
    (module.train if train else module.eval)()
    return module

  def init(key: Array) -> tuple[PyTree, PyTree]:
    parts: Any = nnx.split(make(nnx.Rngs(key)), nnx.Param, ...)
    _, params, rest = parts
    return nnx.to_pure_dict(params), jax.tree.map(_as_data, nnx.to_pure_dict(rest))

  def energies(
    params: PyTree, model_state: PyTree, x: Array, labels: Array, train: bool = False
  ) -> tuple[Array, PyTree]:
    module = merge(params, model_state, train)
    rows = _for_each_row(labels, len(x))
    out = _checked(module(prepare(x), rows), rows)
    rest = nnx.to_pure_dict(nnx.state(module, nnx.Not(nnx.Param)))
    return out, jax.tree.map(_as_data, rest) if train else model_state

  def features(params: PyTree, model_state: PyTree, x: Array) -> Array:
    found: Array = merge(params, model_state).features(prepare(x))
    return found

  has_features = hasattr(shapes, "features")
  return Network(init, energies, features if has_features else no_features, num_classes)


def no_features(params: PyTree, model_state: PyTree, x: Array) -> Array:
  """Takes the place of `features` in a network without them."""
  del params, model_state, x
  raise ConfigError(
    "this network has no features, which the chosen method needs: give from_functions "
    "the function `features`, or the module of from_nnx a method of that name."
  )


def _as_data(leaf: Array) -> Array:
  """Returns the data of a random key, as checkpoints need it; other leaves as given."""
  is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
  return jax.random.key_data(leaf) if is_key else leaf


def _as_key(like: Any, leaf: Array) -> Array:
  is_key = jnp.issubdtype(like.dtype, jax.dtypes.prng_key)
  return jax.random.wrap_key_data(leaf) if is_key else leaf


def _for_each_row(labels: Array, size: int) -> Array:
  """Returns labels [B, K]: those given, or one set [K] repeated for each of B rows."""
  if labels.ndim == 2:
    return labels
  return jnp.broadcast_to(labels[None, :], (size, len(labels)))


def _checked(energies: Array, labels: Array) -> Array:
  if jnp.shape(energies) != labels.shape:
    raise ValueError(
      f"a network returned {list(jnp.shape(energies))} for labels "
      f"{list(labels.shape)}: return one energy for each label."
    )
  return energies
