"""The speed benchmark of training runs, and tells a peer that cannot."""

import json

import pytest

from ebmjax.bench import __main__ as command
from ebmjax.bench import cases, measuring, peer, training
from ebmjax.bench.tables import table
from ebmjax.errors import UserError

pytestmark = pytest.mark.usefixtures("quick_compilation")

SMALL = (("network.hidden", 8), ("stream.batch_size", 16))
TINY = cases.Training("tiny", "splitmnist.py", 3, SMALL)


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
  monkeypatch.setattr(cases, "_TRAIN_IMAGES", {})
  monkeypatch.setattr(cases, "_FEWER", 1_600)


@pytest.mark.parametrize(
  "config",
  [
    "splitmnist.py:boundary_free",
    "permmnist.py",
    "cifar10.py",
    "cifar100.py",
    "cifar100.py:fixed",
    "cifar100.py:fixed,sbc",
  ],
)
def test_measures_a_case_and_prints_its_row(config):
  row = training.measure(TINY._replace(config=config, steps=2), None, rounds=2)
  rate = row["rate"]["ebmjax"]
  assert 0 < rate["min"] <= rate["median"] <= rate["max"]
  assert row["rounds"] == 2 and row["ratio"] == {}
  assert table([row]).splitlines()[0] == "| benchmark | ebmjax |"
  assert table([row]).splitlines()[-1].startswith("| tiny | ")


FAKE_RATES = {
  ("pass_per_label", "contiguous"): 2.0,
  ("pass_per_label", "channels_last"): 3.0,
  ("shared", "contiguous"): 4.0,
  ("shared", "channels_last"): 1.0,
}


class FakePeer:
  """Makes steps at a rate that depends on its form and memory format."""

  open = 0

  def __init__(self, python, flags, steps):
    FakePeer.open += 1
    self.rate = FAKE_RATES[flags["form"], flags["memory-format"]]

  def __call__(self):
    return self.rate

  def close(self):
    FakePeer.open -= 1


def measure_with_fake(monkeypatch, case):
  """Returns the row of `case`, ours being at six steps a second."""
  monkeypatch.setattr(training, "ours", lambda setup, steps: lambda: 6.0)
  monkeypatch.setattr(peer, "Peer", FakePeer)
  row = training.measure(case, "python", rounds=3)
  assert FakePeer.open == 0  # all were closed
  return row


def test_ratio_is_ours_over_theirs(monkeypatch):
  row = measure_with_fake(monkeypatch, TINY)
  assert "formats" not in row
  assert (
    "| tiny | 6 | 2 | 4 | **3.00** (3.00 to 3.00) | **1.50** (1.50 to 1.50) |"
    in table([row])
  )


def test_the_faster_memory_format_is_the_peer(monkeypatch):
  """Channels last is better in one form and worse in the other."""
  row = measure_with_fake(monkeypatch, TINY._replace(config="cifar10.py"))
  assert row["channels_last"] == ["pass_per_label"]
  assert row["formats"]["shared+channels_last"]["median"] == 1.0
  last = table([row]).splitlines()[-1]
  assert last.startswith("| tiny | 6 | 3 (channels last) | 4 | **2.00**")
  assert last.endswith("| **1.50** (1.50 to 1.50) |")


def test_rounds_take_turns():
  turns: list[str] = []

  def named(name):
    def one_round():
      turns.append(name)
      return 1.0

    return one_round

  rates = measuring.interleave({name: named(name) for name in "ab"}, 2)
  assert turns == ["a", "b", "a", "b"]
  assert rates == {"a": [1.0, 1.0], "b": [1.0, 1.0]}


@pytest.mark.parametrize(
  ("config", "expected"),
  [
    ("permmnist.py", "ebm none l2 inputs=1024 classes=100 per-task=10 layers=1"),
    ("cifar10.py", "ebm conv4 softmax inputs=1024 classes=10 per-task=2 layers=1"),
    ("cifar100.py", "ebm conv5 mask inputs=1024 classes=100 per-task=10 layers=2"),
    ("cifar100.py:fixed,sbc", "sbc none mask inputs=1024 classes=100 per-task=10"),
  ],
)
def test_the_peer_is_told_the_network(config, expected):
  """Cached features come in as rows: the peer then has no trunk."""
  setup = cases.make_training(TINY._replace(config=config))
  flags = peer.describe(setup, "training")
  network, trunk, gate, *sizes = expected.split()
  assert (flags["network"], flags["trunk"], flags["gate"]) == (network, trunk, gate)
  assert all(flags[name] == value for name, value in (s.split("=") for s in sizes))
  assert (flags["batch"], flags["hidden"]) == ("16", "8")


def test_a_peer_without_an_answer_is_told():
  """`true` ends at once, as an interpreter without torch does."""
  with pytest.raises(UserError, match="must name a Python that has torch"):
    peer.Peer("true", {"work": "training"}, 1)


def test_command_line(monkeypatch, tmp_path, capsys):
  """One case of each kind is chosen by name; the file has what the tables show."""
  row = measuring.make_row("x", {"ebmjax": [250.0]})
  asked: list[str] = []

  def measure(case, peer_python, rounds):
    asked.append(case.name)
    return row

  monkeypatch.setattr(command.training, "measure", measure)
  monkeypatch.setattr(command.inference, "measure", measure)
  out = tmp_path / "figures.json"
  command.main(["--only=permuted MNIST", f"--out={out}"])
  assert asked[0] == "EBM permuted MNIST" and asked[-1] == "Inference, permuted MNIST"
  printed = capsys.readouterr().out
  assert "Training, steps per second\n\n| benchmark | ebmjax |" in printed
  assert "Inference, images per second\n\n| benchmark | ebmjax |" in printed
  figures = json.loads(out.read_text())
  assert figures["rows"] == [row] * 3 and figures["inference"] == [row]
  assert figures["environment"]["backend"]


@pytest.mark.parametrize(
  ("argument", "sentence"),
  [
    ("--only=ImageNet", "no case has 'ImageNet' in its name; the names are EBM split"),
    ("--rounds=0", "0 is too small; give 1 or more"),
  ],
)
def test_what_cannot_be_measured_is_told(argument, sentence, capsys):
  with pytest.raises(SystemExit) as end:
    command.main([argument])
  assert sentence in f"{end.value} {capsys.readouterr().err}"


def test_help_names_every_case(capsys):
  with pytest.raises(SystemExit):
    command.main(["--help"])
  printed = capsys.readouterr().out
  for case in (*cases.TRAINING, *cases.INFERENCE):
    assert f"  {case.name}" in printed
