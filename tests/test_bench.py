"""The speed benchmark of training runs, and tells a peer that cannot."""

import json
import sys

import pytest

from ebmjax.errors import UserError
from ebmjax.tools.bench import cases, inference, measuring, peer, training
from ebmjax.tools.bench import command as command
from ebmjax.tools.bench.measuring import Options
from ebmjax.tools.bench.tables import markdown, rates, ways
from tests.helpers import tiny_training

pytestmark = pytest.mark.usefixtures("few_images")

TINY = tiny_training(steps=3)


def table(rows):
  return markdown(rows, rates, ways)


@pytest.mark.parametrize(
  "config",
  [
    "permmnist.py",
    "cifar10.py",
    "cifar100.py:fixed",
  ],
)
def test_measures_a_case_and_prints_its_row(config):
  row = training.measure(TINY._replace(config=config, steps=2), Options(rounds=2))
  rate = row["rate"]["ebmjax"]
  assert 0 < rate["min"] <= rate["median"] <= rate["max"]
  assert row["rounds"] == 2 and row["ratio"] == {}
  assert table([row]).splitlines()[0] == "| benchmark | ebmjax |"
  assert table([row]).splitlines()[-1].startswith("| tiny | ")


# By form, memory format and run. Compiled is faster in one form, slower in the other.
FAKE_RATES = {
  ("pass_per_label", "contiguous", "eager"): 1.0,
  ("pass_per_label", "contiguous", "compiled"): 2.0,
  ("pass_per_label", "channels_last", "eager"): 1.5,
  ("pass_per_label", "channels_last", "compiled"): 3.0,
  ("shared", "contiguous", "eager"): 4.0,
  ("shared", "contiguous", "compiled"): 2.0,
  ("shared", "channels_last", "eager"): 1.0,
  ("shared", "channels_last", "compiled"): 1.0,
}


class FakePeer:
  """Makes steps at a rate that depends on how it is written and run."""

  open = 0
  compiles = True

  def __init__(self, python, flags, steps):
    if flags["run"] == "compiled" and not self.compiles:
      raise peer.CompileError("InvalidCxxCompiler")
    FakePeer.open += 1
    self.rate = FAKE_RATES[flags["form"], flags["memory-format"], flags["run"]]

  def __call__(self):
    return self.rate

  def close(self):
    FakePeer.open -= 1


def measure_with_fake(monkeypatch, case):
  """Returns the row of `case`, ours being at six steps a second."""
  monkeypatch.setattr(training, "ours", lambda spec, steps: lambda: 6.0)
  monkeypatch.setattr(peer, "Peer", FakePeer)
  row = training.measure(case, Options("python", rounds=3))
  assert FakePeer.open == 0  # all were closed
  return row


def test_the_ratio_is_to_the_faster_of_eager_and_compiled(monkeypatch):
  row = measure_with_fake(monkeypatch, TINY)
  assert len(row["ways"]) == 4 and row["failed"] == []
  assert (
    "| tiny | 6 | 2 (compiled) | 4 (eager) | **3.00** (3.00 to 3.00) "
    "| **1.50** (1.50 to 1.50) |"
  ) in table([row])
  assert table([row]).endswith("| tiny | 2 | 1 | 2 | 4 |")  # all ways


def test_the_faster_memory_format_is_the_peer(monkeypatch):
  """Channels last is better in one form and worse in the other."""
  row = measure_with_fake(monkeypatch, TINY._replace(config="cifar10.py"))
  assert row["won"] == {
    "pass_per_label": "pass_per_label+channels_last+compiled",
    "shared": "shared+eager",
  }
  assert row["ways"]["shared+channels_last+eager"]["median"] == 1.0
  assert "| tiny | 6 | 3 (channels last, compiled) | 4 (eager) | **2.00**" in table(
    [row]
  )


def test_a_classifier_has_one_form_and_a_table_apart(monkeypatch):
  """Its rows stand between those of the EBM, yet each kind shares one table."""
  names = {"first": "", "second": ":sbc", "third": ""}
  rows = [
    measure_with_fake(monkeypatch, TINY._replace(name=n, config=f"splitmnist.py{v}"))
    for n, v in names.items()
  ]
  assert set(rows[1]["ratio"]) == {"shared"}
  shown = [line.split(" | ")[0] for line in table(rows).splitlines() if "**" in line]
  assert shown == ["| first", "| third", "| second"]


def test_what_cannot_be_compiled_is_told_in_the_table(monkeypatch, capsys):
  monkeypatch.setattr(FakePeer, "compiles", False)
  row = measure_with_fake(monkeypatch, TINY)
  assert row["failed"] == ["pass_per_label+compiled", "shared+compiled"]
  assert "| tiny | 6 | 1 (eager) | 4 (eager) |" in table([row])
  assert table([row]).endswith("| tiny | failed | 1 | failed | 4 |")
  assert "cannot compile shared+compiled: InvalidCxx" in capsys.readouterr().err


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
    ("cifar100.py:fixed,sbc", "sbc none l2 inputs=1024 classes=100 per-task=10"),
  ],
)
def test_the_peer_is_told_the_network(config, expected):
  """Cached features come in as rows: the peer then has no trunk.

  A conv4 has no hidden layer of another size, and a classifier no gate.
  """
  spec = cases.make_training(TINY._replace(config=config))
  flags = peer.describe(spec, "training")
  network, trunk, gate, *sizes = expected.split()
  assert (flags["network"], flags["trunk"], flags["gate"]) == (network, trunk, gate)
  assert all(flags[name] == value for name, value in (s.split("=") for s in sizes))
  own = {"ebm_conv4": "1024"}.get(spec.config.network.name, "8")
  assert (flags["batch"], flags["hidden"]) == ("16", own)


def test_a_peer_without_an_answer_is_told():
  """`true` ends at once, as an interpreter without torch does."""
  flags = {"work": "training", "batch": "1"}
  with pytest.raises(UserError, match="must name a Python that has torch"):
    peer.Peer("true", flags, 1)


def test_the_word_torch_looks_for_an_interpreter(monkeypatch):
  assert peer.find_python(sys.executable) == sys.executable
  with pytest.raises(UserError, match="some/python is no program; --peer must name"):
    peer.find_python("some/python")
  monkeypatch.setenv(peer.VARIABLE, "true")
  assert peer.find_python("torch") == "true"
  monkeypatch.delenv(peer.VARIABLE)
  monkeypatch.setattr(peer.importlib.util, "find_spec", lambda name: name)
  assert peer.find_python("torch") == sys.executable
  monkeypatch.setattr(peer.importlib.util, "find_spec", lambda name: None)
  with pytest.raises(UserError, match="EBMJAX_TORCH_PYTHON is unset; set it to"):
    peer.find_python("torch")


ROW = measuring.compare("x", {"ebmjax": lambda: 250.0}, 1)
TWO = "--sections=training,inference"


def test_command_line(monkeypatch, tmp_path, capsys):
  """The cases are chosen by name; the file has what the tables show."""
  asked: list[str] = []

  def measure(case, options):
    asked.append(case.name)
    return ROW

  monkeypatch.setattr(training, "measure", measure)
  monkeypatch.setattr(inference, "measure", measure)
  out = tmp_path / "figures.json"
  assert not command.main(["--only=permuted MNIST, boundary-free", TWO, f"--out={out}"])
  assert asked == [
    "EBM permuted MNIST, boundary-free",
    "SBC permuted MNIST, boundary-free",
    "Inference, permuted MNIST, boundary-free",
  ]
  printed = capsys.readouterr().out
  assert "Training, steps per second\n\n| benchmark | ebmjax |" in printed
  assert "Inference, images per second\n\n| benchmark | ebmjax |" in printed
  figures = json.loads(out.read_text())
  assert figures["training"] == [ROW] * 2 and figures["inference"] == [ROW]
  assert figures["environment"]["backend"] and figures["rounds"] == 7
  command.main([f"--show={out}"])
  assert capsys.readouterr().out == printed


def test_a_failing_case_is_told_and_the_rest_goes_on(monkeypatch, tmp_path, capsys):
  def measure(case, options):
    if case.name.startswith("EBM"):
      raise ValueError("no room")
    return ROW | {"case": case.name}

  monkeypatch.setattr(training, "measure", measure)
  out = tmp_path / "figures.json"
  only = ["--only=split MNIST", "--sections=training"]
  assert command.main([*only, f"--out={out}"]) == 1
  figures = json.loads(out.read_text())
  assert [row["case"][:3] for row in figures["training"]] == ["SBC", "SBC"]
  assert figures["failures"][0]["case"] == "EBM split MNIST"
  told = capsys.readouterr()
  assert "failed: EBM split MNIST (training): ValueError: no room" in told.out
  assert "ebmjax: 2 of the cases failed, as told above; " in told.err


def test_quick_is_a_tenth_and_says_so(monkeypatch, capsys):
  asked = []

  def measure(case, options):
    asked.append((case.steps, options.rounds))
    return ROW

  monkeypatch.setattr(training, "measure", measure)
  command.main(["--only=SBC split", "--sections=training", "--quick"])
  assert asked == [(50, 2), (30, 2)]
  assert "these are no results" in capsys.readouterr().out


@pytest.mark.parametrize(
  ("argument", "code", "sentence"),
  [
    (
      "--only=ImageNet",
      1,
      "no case has 'ImageNet' in its name; the names are EBM split",
    ),
    ("--only=Curve, 10 labels", 1, "in its name; the names are EBM split"),
    ("--rounds=0", 2, "'0' is not a whole number of 1 or more"),
    (
      "--sections=speed",
      2,
      "'speed' is not a section; choose from training, inference",
    ),
    (f"--show={__file__}", 1, "does not hold figures of the benchmark"),
    ("--out=/dev/null/x.json", 1, "x.json cannot be written (Not a directory); make"),
    ("--out=/nonesuch/x.json", 1, "x.json cannot be written (No such file or"),
    (
      f"--out={__file__}",
      1,
      "is there already; give another file with --out, or remove",
    ),
    ("--out=.", 1, ". is there already"),
  ],
)
def test_what_cannot_be_measured_is_told(argument, code, sentence, capsys):
  """Before the first case is measured."""
  assert command.main([argument]) == code
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith("ebmjax: ") and sentence in line
  assert "Curve" not in line.partition("the names are")[2]


def test_only_the_names_of_the_chosen_sections_are_choices(capsys):
  assert command.main(["--curves", "--only=EBM split MNIST"]) == 1
  assert "the names are Curve, " in capsys.readouterr().err
  assert command.main(["--sections=inference", "--only=Curve"]) == 1
  assert "the names are Inference, " in capsys.readouterr().err


def test_pictures_are_not_written_over(tmp_path, capsys):
  (tmp_path / "a.svg").touch()
  assert command.main(["--curves", f"--out={tmp_path / 'a.json'}"]) == 1
  assert "a.svg is there already" in capsys.readouterr().err
  assert command.main(["--curves", f"--out={tmp_path / 'b.png'}"]) == 1
  assert "give it a name that ends in .json" in capsys.readouterr().err
  assert command.main(["--curves", "--out=."]) == 1
  assert ". is there already" in capsys.readouterr().err


def test_a_list_is_no_figures(tmp_path, capsys):
  (tmp_path / "a.json").write_text("[1]")
  assert command.main([f"--show={tmp_path / 'a.json'}"]) == 1
  assert "does not hold figures of the benchmark" in capsys.readouterr().err


def test_a_disk_that_fails_on_the_way_costs_no_case(monkeypatch, tmp_path, capsys):
  """It is told, the others are measured, and the file has all when it can again."""
  folder = tmp_path / "disk"
  folder.mkdir()
  out, asked = folder / "a.json", []

  def measure(case, options):
    asked.append(case.name)
    folder.rename(tmp_path / "away") if len(asked) == 1 else folder.mkdir()
    return ROW

  monkeypatch.setattr(training, "measure", measure)
  only = ["--only=SBC split", "--sections=training", f"--out={out}"]
  assert command.main(only) == 0
  assert "a.json cannot be written (No such file" in capsys.readouterr().err
  assert json.loads(out.read_text())["training"] == [ROW] * 2


def test_help_names_every_case(capsys):
  with pytest.raises(SystemExit):
    command.main(["--help"])
  printed = capsys.readouterr().out
  for section in command.SECTIONS.values():
    for case in section.CASES:
      assert f"  {case.name}" in printed
