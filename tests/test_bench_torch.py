"""The PyTorch peer makes its steps, where an interpreter with torch is at hand."""

import os

import pytest

from ebmjax.tools.bench import cases, inference, measuring, peer, training
from ebmjax.tools.bench.measuring import Options

PYTHON = os.environ.get("EBMJAX_TORCH_PYTHON", "")
SMALL = (("network.hidden", 8), ("stream.batch_size", 16), ("eval.batch_size", 10))

pytestmark = [
  pytest.mark.skipif(
    not PYTHON, reason="EBMJAX_TORCH_PYTHON, a Python that has torch, is unset"
  ),
  pytest.mark.usefixtures("few_images"),
]


@pytest.fixture(autouse=True)
def eager_alone(monkeypatch):
  """But for one test: compiling takes most of a minute."""
  monkeypatch.setattr(peer, "RUNS", {measuring.EAGER: "eager"})


@pytest.mark.parametrize(
  "config", ["splitmnist.py:boundary_free", "cifar100.py", "cifar100.py:fixed,sbc"]
)
def test_training_has_a_ratio_for_every_form(config):
  case = cases.Training("tiny", config, 2, SMALL)
  row = training.measure(case, Options(PYTHON))
  assert set(row["ratio"]) == set(peer.FORMS["sbc" if "sbc" in config else "ebm"])
  assert all(spread["min"] > 0 for spread in row["rate"].values())


@pytest.mark.parametrize(("config", "ways"), [("cifar10.py", 4), ("cifar10.py:sbc", 2)])
def test_both_memory_formats_of_images_are_timed(config, ways):
  row = training.measure(cases.Training("tiny", config, 1, SMALL), Options(PYTHON))
  assert len(row["ways"]) == ways


def test_inference_has_a_ratio_for_every_form():
  case = cases.Inference("tiny", "cifar100.py:fixed", "plain", 2, 1, SMALL)
  row = inference.measure(case, Options(PYTHON))
  assert set(peer.FORMS["ebm"]) < set(row["ratio"])


@pytest.mark.parametrize("work", ["training", "inference"])
def test_compiled_steps_are_made_or_said_to_fail(work, monkeypatch):
  monkeypatch.setattr(peer, "RUNS", {measuring.COMPILED: "compiled"})
  spec = cases.make_training(cases.Training("tiny", "permmnist.py", 1, SMALL))
  with peer.peers(PYTHON, spec, work, 1, forms=("shared",)) as (found, failed):
    assert [*found, *failed] == ["shared+compiled"]
    assert all(one() > 0 for one in found.values())
