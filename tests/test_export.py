"""What cannot be exported is refused in a sentence, and changes nothing."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from ebmjax.config import loading
from ebmjax.models.loading import Trained
from ebmjax.networks.cifar100 import NormTrunk
from ebmjax.tools import export
from tests.helpers import ROOT, SPLIT

RESULTS = {
  "average_accuracy": {},
  "per_seed": [50.0],
  "seeds": [0],
  "class_names": ["a", "b"],
  "config": loading.load(str(ROOT / "configs" / "pretrain_cifar10.py")).to_dict(),
  "facts": {},
}


def run_with(folder: Path, content: object) -> Path:
  """Returns a run's folder with this results.json, and nothing else."""
  folder.mkdir()
  (folder / "results.json").write_text(json.dumps(content))
  return folder


def fails(capsys, *words: object, code: int = 1) -> str:
  """Returns the one sentence in which an export ends."""
  assert export.main(list(map(str, words))) == code
  told = capsys.readouterr()
  (line,) = told.err.splitlines()
  assert line.startswith("ebmjax: ") and line.endswith(".") and told.out == ""
  return str(line)


def test_a_mistyped_folder_is_not_made(tmp_path, capsys):
  for flags in ((), ("--trunk",)):
    line = fails(capsys, tmp_path / "nowhere", tmp_path / "x.npz", *flags)
    assert "nowhere holds no finished run; give the --workdir" in line
  assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["model", "model.npy", ".npz"])
def test_a_name_must_end_in_npz(name, tmp_path, capsys):
  line = fails(capsys, tmp_path, tmp_path / name)
  assert "give it a name that ends in .npz." in line


@pytest.mark.parametrize("flags", [["--half"], ["--trunk", "--task=1"]])
def test_flags_that_would_do_nothing_are_refused(flags, tmp_path, capsys):
  line = fails(capsys, tmp_path, tmp_path / "x.npz", *flags, code=2)
  assert flags[-1].partition("=")[0] in line and "--trunk" in line


def test_other_faults_are_refused(tmp_path, capsys):
  run = run_with(tmp_path / "run", RESULTS)
  given = (run, tmp_path / "x.npz", "--trunk")
  assert "no seed 7; its seeds are [0]." in fails(capsys, *given, "--seed=7")
  assert "has no checkpoints; " in fails(capsys, *given)
  assert [path.name for path in run.iterdir()] == ["results.json"]


@pytest.mark.parametrize(
  ("config", "sentence"),
  [
    ({"data": {"name": "x"}}, "config.data.name='x' is unknown; "),
    ({"data": 3}, "config.data is a group of keys, such as config.data.name; see"),
    ({"seeds": "many"}, "config.seeds='many' is of the wrong type; give a value such"),
    (3, "is not the results of a run"),
  ],
)
def test_a_configuration_that_is_none_is_refused(config, sentence, tmp_path, capsys):
  run = run_with(tmp_path / "run", RESULTS | {"config": config})
  assert sentence in fails(capsys, run, tmp_path / "x.npz")


def test_a_network_without_a_trunk_is_refused(tmp_path, capsys):
  """Before anything is made of its checkpoints."""
  without = {
    SPLIT: "x.npz",
    f"{SPLIT}:randumb": "",
    f"{ROOT}/configs/cifar100.py:fixed": "x.npz",
  }
  for number, (chosen, weights) in enumerate(without.items()):
    config = loading.load(str(chosen))
    with config.unlocked():  # where the network has no such key, too
      config.network.pretrained = weights
    content = RESULTS | {"config": config.to_dict()}
    run = run_with(tmp_path / str(number), content)
    line = fails(capsys, run, tmp_path / "x.npz", "--trunk")
    assert "has no trunk of its own; use configs/pretrain_cifar10.py." in line


def test_a_file_that_cannot_be_written_is_named(tmp_path, capsys, monkeypatch):
  """A folder in its place; nothing is left beside it."""
  image = jnp.zeros((1, 32, 32, 3))
  shapes = jax.eval_shape(NormTrunk().init, jax.random.key(0), image)
  trunk = jax.tree.map(lambda leaf: jnp.zeros((1, *leaf.shape)), shapes)
  trained = Trained(None, None, None, None, 4)  # type: ignore[arg-type]
  monkeypatch.setattr(export, "restore", lambda found: trained)
  monkeypatch.setattr(export, "_trunk", lambda states: trunk)
  run = run_with(tmp_path / "run", RESULTS)
  (tmp_path / "out" / "x.npz").mkdir(parents=True)
  for place, why in (("out", "Is a directory"), ("none", "No such file or directory")):
    line = fails(capsys, run, tmp_path / place / "x.npz", "--trunk")
    assert f"x.npz cannot be written ({why}); make it writable, or give an" in line
  assert [path.name for path in (tmp_path / "out").iterdir()] == ["x.npz"]
