r"""The generative classifier: a variational autoencoder for each class.

van de Ven, Li and Tolias (2021):

    E(x, y) = -log p(x | y) - log p(y)
    p(x | y) ~ 1/S sum_s p(x | z_s) p(z_s) / q(z_s | x),   z_s ~ q(. | x)

with encoder q and decoder p of class y, trained on the rows of y alone by the evidence
bound, and p(y) the share of y among all rows so far, or 1 without `prior`. With
`likelihood` = bernoulli the rows are shares of black in [0, 1], as MNIST's pixels are;
gaussian takes any numbers, with a variance of 1. `scoring` = gaussian compares labels
by a Gaussian even if they were trained by bernoulli, around the decoder's
probabilities, as the study does on MNIST. Rows are the features of the problem's
network, by default the raw inputs. The same S draws of N(0, I) serve all rows, so that
an energy is a function of the row alone, and labels do not differ by chance.
(Deviation: the study draws for every row and label.)

State: the autoencoders [C, ...], two moments of each, and counts [C].
"""

from functools import partial
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from ebmjax import data
from ebmjax.config.schema import Count, Rule
from ebmjax.errors import ConfigError
from ebmjax.methods import studies
from ebmjax.methods._per_class import (
  ClassModels,
  DecaySteps,
  LearningRate,
  per_class_learner,
)
from ebmjax.methods._rules import EACH_CLASS_ALONE, plain_feature_rules
from ebmjax.methods.spec import MethodSpec, setting
from ebmjax.networks.strided_vae import StridedVariationalAutoencoder
from ebmjax.networks.vae import VariationalAutoencoder
from ebmjax.types import Learner, Problem, PyTree

Likelihood = Literal["bernoulli", "gaussian"]
Autoencoder = VariationalAutoencoder | StridedVariationalAutoencoder
# Numbers that one class decodes at a time: 16 MB.
_NUMBERS = 2**22


def generative(
  problem: Problem,
  *,
  autoencoder: Annotated[
    Literal["dense", "conv"], "layers of the autoencoders"
  ] = "dense",
  hidden: Annotated[Count, "units of a hidden layer; with conv: first channels"] = 85,
  layers: Annotated[Count, "hidden layers on either side of the code"] = 2,
  latent: Annotated[Count, "size of the code"] = 5,
  samples: Annotated[Count, "codes drawn to estimate the likelihood of a row"] = 100,
  likelihood: Annotated[
    Likelihood, "distribution of a row, given its code"
  ] = "bernoulli",
  scoring: Annotated[
    Literal["likelihood", "gaussian"],
    "likelihood that labels are scored by; gaussian: whatever they were trained by",
  ] = "likelihood",
  prior: Annotated[bool, "lower the energies of frequent labels"] = True,
  learning_rate: LearningRate = 1e-3,
  decay_steps: DecaySteps = 0,
) -> Learner:
  """Builds the generative classifier."""
  vae = partial(_autoencoder, problem, autoencoder, hidden, latent, layers)
  differs = likelihood == "bernoulli" and scoring == "gaussian"
  scored_by = "sigmoid_gaussian" if differs else likelihood

  def init(key: Array, width: int) -> tuple[PyTree, PyTree]:
    rows, noise = jnp.zeros((1, width)), jnp.zeros((1, latent))
    variables = dict(vae(width).init(key, rows, noise))
    return variables.pop("params"), variables

  def losses(
    params: PyTree,
    statistics: PyTree,
    targets: None,
    phi: Array,
    key: Array,
    is_own: Array,
  ) -> tuple[Array, PyTree]:
    del targets
    noise = jax.random.normal(key, (phi.shape[0], latent))
    counted = (is_own,) if autoencoder == "conv" else ()
    found, moved = vae(phi.shape[1]).apply(
      {"params": params, **statistics}, phi, noise, *counted, mutable=list(statistics)
    )
    outputs, code = found
    bound = log_likelihood(outputs, phi, likelihood) - code.divergence()
    return -bound / phi.shape[1], moved

  def energies(
    params: PyTree, statistics: PyTree, shared: None, counts: Array, phi: Array
  ) -> Array:
    del shared
    noise = jax.random.normal(jax.random.key(0), (samples, latent))

    def one(of_class: tuple[PyTree, PyTree]) -> Array:
      variables = {"params": of_class[0], **of_class[1]}
      return -log_evidence(vae(phi.shape[1]), variables, phi, noise, scored_by)

    found = lax.map(one, (params, statistics)).T
    return found - log_shares(counts)[None, :] if prior else found

  models = ClassModels(init, losses, energies)
  return per_class_learner(problem, models, learning_rate, decay_steps)


def _autoencoder(
  problem: Problem, kind: str, hidden: int, latent: int, layers: int, width: int
) -> Autoencoder:
  """Returns the autoencoder of a class, for rows of `width` numbers."""
  if kind == "dense":
    return VariationalAutoencoder(width, hidden, latent, layers)
  shape = problem.row.shape
  if len(shape) != 3:
    raise ConfigError(
      "config.method.autoencoder='conv' takes images in colour [H, W, 3] as they are, "
      f"and the inputs have the shape {shape}; use 'dense'."
    )
  return StridedVariationalAutoencoder(shape, hidden, latent, layers)


def log_shares(counts: Array) -> Array:
  """Returns [C]: the log of each class's share of all rows, 0 where it has none."""
  share = counts / jnp.maximum(jnp.sum(counts), 1)
  return jnp.log(jnp.where(counts > 0, share, 1.0))


def log_likelihood(outputs: Array, x: Array, kind: str) -> Array:
  """Returns [...]: log p(x | z) of x [..., P], by the decoder's outputs [..., P].

  `kind` is bernoulli, gaussian, or sigmoid_gaussian: a Gaussian whose means are the
  probabilities of bernoulli. The normaliser of a Gaussian, which is the same for all
  labels, is left out.
  """
  if kind == "bernoulli":
    return -jnp.sum(optax.sigmoid_binary_cross_entropy(outputs, x), axis=-1)
  means = jax.nn.sigmoid(outputs) if kind == "sigmoid_gaussian" else outputs
  return -jnp.sum(jnp.square(means - x), axis=-1) / 2


def log_evidence(
  vae: Autoencoder, variables: PyTree, x: Array, noise: Array, kind: str
) -> Array:
  """Returns [B]: log p(x) of x [B, P], estimated by codes drawn with noise [S, Z].

  Only some codes are decoded at a time: all of them would take [S, B, P] numbers.
  """
  size = x.shape[0]
  found: Any = vae.apply(variables, x, jnp.zeros((size, noise.shape[1])))
  code = found[1]

  def one(draw: Array) -> Array:
    z = code.at(draw[None, :])
    outputs: Any = vae.apply(variables, z, method="decode")
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


def _per_class_protocol(
  iterations: int, batch_size: int, classes: int
) -> dict[str, Any]:
  """Returns the study's protocol: each class by itself, scored once.

  Deviation: by 100 codes, the default, of which the study draws 10,000. On an
  accelerator, config.method.samples=10000 is what it ran.
  """
  return {
    "stream.tasks": classes,
    "stream.iterations": iterations,
    "stream.batch_size": batch_size,
    "eval.at_task_ends": False,
  }


_MNIST: dict[str, Any] = {"layers": 2, "latent": 5, "scoring": "gaussian"}
_CIFAR: dict[str, Any] = {"likelihood": "gaussian"}
_PLAIN = {"data.augment": "none"}
_setting = partial(setting, studies.GENERATIVE_2021.source, prior=False)

GENERATIVE = MethodSpec(
  generative,
  title="generative classifier",
  published={
    "splitmnist": _setting(
      _per_class_protocol(1000, 128, classes=10), hidden=85, **_MNIST
    ),
    "permmnist": studies.NOT_PUBLISHED.setting(hidden=85, prior=False, **_MNIST),
    "cifar10": _setting(
      _PLAIN | _per_class_protocol(2500, 256, classes=10),
      autoencoder="conv",
      hidden=15,
      layers=3,
      latent=100,
      **_CIFAR,
    ),
    "cifar100": _setting(
      _per_class_protocol(500, 256, classes=100),
      hidden=85,
      layers=1,
      latent=20,
      **_CIFAR,
    ),
    # Numbers of any range.
    **dict.fromkeys(
      ("own", "embeddings"), studies.NOT_PUBLISHED.setting(likelihood="gaussian")
    ),
  },
  small={"hidden": 8, "layers": 2, "latent": 2, "samples": 3},
  **(EACH_CLASS_ALONE | {"constraints": _constraints}),
  version=2,
)
