r"""The generative classifier: a variational autoencoder for each class.

van de Ven, Li and Tolias (2021):

    E(x, y) = -log p(x | y) - log p(y)
    p(x | y) ~ 1/S sum_s p(x | z_s) p(z_s) / q(z_s | x),   z_s ~ q(. | x)

with encoder q and decoder p of class y, trained on the rows of y alone by the evidence
bound, and p(y) the share of y among all rows so far. With `likelihood` = bernoulli the
rows are shares of black in [0, 1], as MNIST's pixels are; gaussian takes any numbers,
with a variance of 1. Rows are the features of the problem's network, by default the raw
inputs. The same S codes of N(0, I) stand for the draws of all rows, so that an energy
is a function of the row alone, and labels do not differ by luck.

State: the autoencoders [C, ...], two moments of each, and counts [C].
"""

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from ebmjax import data
from ebmjax.config.schema import Count
from ebmjax.methods import studies
from ebmjax.methods._moments import POSITIVES_ALONE
from ebmjax.methods._per_class import (
  ClassModels,
  DecaySteps,
  LearningRate,
  per_class_learner,
)
from ebmjax.methods._rules import plain_feature_rules
from ebmjax.methods.spec import MethodSpec, Rule, setting
from ebmjax.networks.vae import VariationalAutoencoder
from ebmjax.types import Learner, Problem, PyTree

Likelihood = Literal["bernoulli", "gaussian"]
# Numbers that a block of samples decodes to at a time, for one class: 16 MB.
_NUMBERS = 2**22


def generative(
  problem: Problem,
  *,
  hidden: Annotated[Count, "units of each hidden layer of an autoencoder"] = 85,
  latent: Annotated[Count, "numbers of a code"] = 5,
  samples: Annotated[Count, "codes drawn for a row's likelihood"] = 100,
  likelihood: Annotated[Likelihood, "of a row, given its code"] = "bernoulli",
  learning_rate: LearningRate = 1e-3,
  decay_steps: DecaySteps = 0,
) -> Learner:
  """Builds the generative classifier with dense autoencoders."""

  def vae(width: int) -> VariationalAutoencoder:
    return VariationalAutoencoder(width, hidden, latent)

  def init(key: Array, width: int) -> PyTree:
    rows, noise = jnp.zeros((1, width)), jnp.zeros((1, latent))
    return vae(width).init(key, rows, noise)["params"]

  def losses(params: PyTree, targets: None, phi: Array, key: Array) -> Array:
    del targets
    noise = jax.random.normal(key, (phi.shape[0], latent))
    found: Any = vae(phi.shape[1]).apply({"params": params}, phi, noise)
    logits, code = found
    bound = log_likelihood(logits, phi, likelihood) - code.divergence()
    return -bound / phi.shape[1]

  def energies(stacked: PyTree, shared: None, counts: Array, phi: Array) -> Array:
    del shared
    noise = jax.random.normal(jax.random.key(0), (samples, latent))

    def one(params: PyTree) -> Array:
      return -log_evidence(vae(phi.shape[1]), params, phi, noise, likelihood)

    prior = counts / jnp.maximum(jnp.sum(counts), 1)
    return lax.map(one, stacked).T - jnp.log(jnp.where(counts > 0, prior, 1.0))[None, :]

  models = ClassModels(
    init=init,
    init_shared=lambda key, width: None,
    targets=lambda shared, phi: None,
    losses=losses,
    energies=energies,
  )
  return per_class_learner(problem, models, learning_rate, decay_steps)


def log_likelihood(outputs: Array, x: Array, kind: str) -> Array:
  """Returns [...]: log p(x | z) of x [..., P], by the decoder's outputs [..., P].

  Without the terms that no label has a part in: the normaliser of a Gaussian.
  """
  if kind == "gaussian":
    return -jnp.sum(jnp.square(outputs - x), axis=-1) / 2
  return -jnp.sum(optax.sigmoid_binary_cross_entropy(outputs, x), axis=-1)


def log_evidence(
  vae: VariationalAutoencoder, params: PyTree, x: Array, noise: Array, kind: str
) -> Array:
  """Returns [B]: log p(x) of x [B, P] by codes that noise [S, Z] stands for.

  Some codes at a time: all of them would decode to [S, B, P] numbers.
  """
  size = x.shape[0]
  found: Any = vae.apply({"params": params}, x, jnp.zeros((size, noise.shape[1])))
  code = found[1]

  def one(draw: Array) -> Array:
    z = code.at(draw[None, :])
    outputs: Any = vae.apply({"params": params}, z, method="decode")
    # log p(z) - log q(z | x); both have the same constant.
    ratio = jnp.square(draw)[None, :] + code.log_variance - jnp.square(z)
    return log_likelihood(outputs, x, kind) + jnp.sum(ratio, axis=1) / 2

  at_once = max(1, min(noise.shape[0], _NUMBERS // x.size))
  terms = lax.map(one, noise, batch_size=at_once)
  return jax.nn.logsumexp(terms, axis=0) - jnp.log(noise.shape[0])


def _constraints(config: Any) -> list[Rule]:
  network, info = config.network, data.find(config.data.name)
  mean, std = config.data.mean or info.mean, config.data.std or info.std
  plain = network.name == "raw" and network.backbone == "none"
  plain = plain and None not in (mean, std)  # one's own data have their own
  pixels = plain and not any(mean) and all(each == 1 for each in std)
  return [
    *plain_feature_rules(config),
    (
      config.method.likelihood == "bernoulli" and not pixels,
      "config.method.likelihood='bernoulli' is for pixels from 0 to 1, and "
      f"config.network.name={network.name!r} with config.data.mean and config.data.std "
      "shows other numbers; use 'gaussian'.",
    ),
  ]


# Theirs are the widths; the likelihood and the learning rate are not taken from them.
_CIFAR: dict[str, Any] = {"hidden": 85, "latent": 20, "likelihood": "gaussian"}

GENERATIVE = MethodSpec(
  generative,
  title="generative classifier",
  uses_optimiser=False,
  network="raw",
  constraints=_constraints,
  published={
    "splitmnist": setting(studies.GENERATIVE_2021, hidden=85, latent=5),
    "permmnist": setting(studies.NOT_PUBLISHED, hidden=85, latent=5),
    # Deviation: theirs is convolutional.
    "cifar10": setting(studies.NOT_PUBLISHED, {"data.augment": "none"}, **_CIFAR),
    "cifar100": setting(studies.GENERATIVE_2021, **_CIFAR),
  },
  small={"hidden": 8, "latent": 2, "samples": 3},
  exempt=POSITIVES_ALONE,
)
