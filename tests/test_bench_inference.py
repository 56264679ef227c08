"""The speed benchmark of inference runs, and its plain form is the same network."""

import jax
import numpy as np
import pytest

from ebmjax.runtime import feeding, scan
from ebmjax.tools.bench import cases, inference, peer
from ebmjax.tools.bench.measuring import Options
from ebmjax.tools.bench.tables import markdown, rates

pytestmark = pytest.mark.usefixtures("few_images")

SMALL = (("network.hidden", 24), ("stream.batch_size", 16), ("eval.batch_size", 10))
PLAIN = cases.Inference("tiny", "permmnist.py", "plain", 3, 2, SMALL)


def make_state(spec):
  states = scan.make_init(spec.learner, scan.Compiler(spec.driver))(spec.tables.key)
  return jax.tree.map(lambda leaf: leaf[0], states)


@pytest.mark.parametrize("form", peer.FORMS["ebm"])
@pytest.mark.parametrize("config", ["permmnist.py", "cifar100.py:fixed"])
def test_the_plain_form_gives_our_energies(config, form):
  """One gated layer, and two with masks of which ours computes the kept units."""
  spec = cases.make_inference(PLAIN._replace(config=config))
  state, x = make_state(spec), feeding.whole(spec.test_images).x[:5]
  learner = spec.learner
  expected = jax.jit(lambda s, x: learner.energies(learner.ready(s), x))(state, x)
  plain = inference.make_plain_energies(spec.config.network, form)
  found = jax.jit(plain)(state, x)
  assert found.shape == (5, 100)
  np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("config", ["permmnist.py", "cifar100.py:fixed"])
def test_measures_ours_against_the_plain_form(config):
  row = inference.measure(PLAIN._replace(config=config), Options(rounds=2))
  names = ["ebmjax", "plain_pass_per_label", "plain_shared"]
  assert list(row["rate"]) == names and list(row["ratio"]) == names[1:]
  assert all(spread["min"] > 0 for spread in row["rate"].values())
  assert "| ratio, plain pass per label |" in markdown([row], rates)


@pytest.mark.parametrize("config", ["splitmnist.py", "cifar10.py"])
def test_measures_the_ebm_s_time_over_the_classifier_s(config, monkeypatch):
  case = PLAIN._replace(config=config, rival="sbc", rival_blocks=3)
  real, networks = inference.ours, []

  def kind_of(spec):
    return spec.config.network.name.partition("_")[0]

  def ours(spec, blocks):
    networks.append(kind_of(spec))
    assert real(spec, blocks)() > 0
    return lambda: {"ebm": 200.0, "sbc": 300.0}[kind_of(spec)]

  monkeypatch.setattr(inference, "ours", ours)
  row = inference.measure(case, Options("no-such-python", rounds=2))  # no peer is asked
  assert networks == ["ebm", "sbc"]
  assert markdown([row], rates).splitlines()[0] == (
    "| benchmark | EBM | SBC | time, EBM over SBC |"
  )
  assert markdown([row], rates).endswith(
    "| tiny | 200 | 300 | **1.50** (1.50 to 1.50) |"
  )


def test_other_columns_start_another_table():
  def row(*names):
    spread = {"median": 1.0, "min": 1.0, "max": 1.0}
    return {"case": "x", "rate": dict.fromkeys(names, spread), "ratio": {}}

  text = markdown([row("ebm", "sbc"), row("ebm", "sbc"), row("ebmjax")], rates)
  assert [len(part.splitlines()) for part in text.split("\n\n")] == [4, 3]
