"""Times the energies of all labels: ours, the plain form's, and the peer's."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax
from ml_collections import ConfigDict

from ebmjax.networks import Normalise
from ebmjax.networks.gates import normalise
from ebmjax.runtime import feeding, scan
from ebmjax.runtime.trainer import RunSpec
from ebmjax.tools.bench import measuring, peer, tables
from ebmjax.tools.bench.cases import INFERENCE, Inference, make_inference
from ebmjax.tools.bench.measuring import OURS, Options, Rate, Row, compare, timed
from ebmjax.types import PyTree

TITLE = "Inference, images per second"
CASES = INFERENCE
TABLES = (tables.rates, tables.ways)

Energies = Callable[[PyTree, Array], Array]  # (state, x [B, ...]) -> [B, C]


def measure(case: Inference, options: Options) -> Row:
  """Returns the case's rates in images per second, and the ratios of its rounds."""
  spec = make_inference(case)
  if case.rival == "sbc":
    return _beside_classifier(case, spec, options.rounds)
  blocks = case.rival_blocks
  runners = {OURS: ours(spec, case.blocks)}
  runners |= {f"plain_{form}": plain(spec, blocks, form) for form in peer.FORMS["ebm"]}
  with peer.peers(options.peer, spec, "inference", blocks) as (others, failed):
    return compare(case.name, runners | others, options.rounds, failed)


def _beside_classifier(case: Inference, spec: RunSpec, rounds: int) -> Row:
  """Returns the rates of EBM and classifier, and the ratio of their times."""
  other = make_inference(case, "sbc")
  pair = {"ebm": ours(spec, case.blocks), "sbc": ours(other, case.rival_blocks)}
  rates = measuring.interleave(pair, rounds)
  times = [b / a for a, b in zip(rates["ebm"], rates["sbc"], strict=True)]
  return {
    "case": case.name,
    "rounds": rounds,
    "rate": {name: measuring.spread(values) for name, values in rates.items()},
    "ratio": {"time_over_sbc": measuring.spread(times)},
  }


def ours(spec: RunSpec, blocks: int) -> Rate:
  """Returns a function that infers labels as an evaluation does, and its rate."""
  learner = spec.learner
  return _timed(spec, blocks, learner.energies, learner.ready)


def plain(spec: RunSpec, blocks: int, form: str) -> Rate:
  """Returns the same of the plain form, one label at a time."""
  energies = make_plain_energies(spec.config.network, form)
  return _timed(spec, blocks, energies, lambda state: state)


def make_plain_energies(network: ConfigDict, form: str) -> Energies:
  """Returns energies(state, x [B, P]) -> [B, C] of a gated MLP, label by label.

  Every label goes through whole layers, switched-off units included. `shared` leaves
  the first layer's product outside the loop over labels, `pass_per_label` does not.
  """

  def energies(state: PyTree, x: Array) -> Array:
    layers = [state.params[f"layers_{i}"] for i in range(network.gated_layers)]
    head, x = state.params["head"], Normalise()(x)
    shared = _dense(layers[0], x)

    def of_label(factors: Array) -> Array:
      a = shared
      if form == "pass_per_label":
        # Tied to the label, or the compiler would take the product out of the loop.
        inner, factors = lax.optimization_barrier((x, factors))
        a = _dense(layers[0], inner)
      h = jax.nn.relu(a * factors[:1])
      for i, layer in enumerate(layers[1:], 1):
        h = jax.nn.relu(_dense(layer, h) * factors[i : i + 1])
      return _dense(head, h)[:, 0]

    return lax.map(of_label, _factors(network, state)).T

  return energies


def _factors(network: ConfigDict, state: PyTree) -> Array:
  """Returns [C, layers, F]: what each label multiplies the units of each layer by."""
  if network.embedding == "mask":
    return state.model_state["fixed"]["label_gate"]["masks"].swapaxes(0, 1)
  gate = normalise(state.params["label_gate"]["embedding"], network.gate)
  factors = gate + 1 if network.skip else gate
  return jnp.stack([factors] * network.gated_layers, axis=1)


def _dense(layer: PyTree, x: Array) -> Array:
  return x @ layer["kernel"] + layer["bias"][None, :]


def _timed(
  spec: RunSpec, blocks: int, energies: Energies, prepare: Callable[[PyTree], PyTree]
) -> Rate:
  """Returns a function that infers the labels of blocks of images for every seed.

  Its rate counts images, each once for every seed.
  """
  size = spec.config.eval.batch_size
  images = jnp.asarray(feeding.whole(spec.test_images).x)
  x = images[: blocks * size].reshape(blocks, size, *images.shape[1:])
  states = scan.make_init(spec.learner, scan.Compiler(spec.driver))(spec.tables.key)

  def one(state: PyTree, x: Array) -> Array:
    ready = prepare(state)
    return lax.map(lambda block: jnp.argmin(energies(ready, block), axis=1), x)

  run = scan.Compiler(spec.driver).over_seeds(one)
  predict = jax.jit(run, compiler_options=spec.options)
  images = len(spec.seeds) * blocks * size
  return timed(lambda: predict(states, x).block_until_ready(), images)
