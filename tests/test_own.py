"""Data of the user's own through the whole program: images, rows, what is wrong."""

from pathlib import Path

import numpy as np
import pytest

from ebmjax import main
from ebmjax.config import loading
from ebmjax.config.validation import resolve
from tests.helpers import ROOT, read_results

pytestmark = pytest.mark.usefixtures("no_plots")

SMALL = [
  *("--config.stream.iterations=8", "--config.stream.batch_size=8"),
  *("--config.stream.tasks=3", "--config.runner.chunk=8"),
]


def write(path: Path, shape: tuple[int, ...], scale: float = 255.0) -> Path:
  """Writes seven classes that a mean tells apart, with strings as labels."""
  rng = np.random.default_rng(0)
  centres = rng.random((7, *shape))
  y = np.arange(7 * 20) % 7
  x = scale * np.clip(centres[y] + 0.05 * rng.normal(size=(len(y), *shape)), 0, 1)
  names = np.array([f"kind {label}" for label in y])
  np.savez(path, x=x.astype(np.float32), y=names)
  return path


def run(workdir: Path, chosen: str, file: Path, *flags: str) -> int:
  config = f"--config={ROOT / 'configs' / chosen}"
  where = [f"--config.data.dir={file}", f"--workdir={workdir}"]
  return main.main([config, *where, *SMALL, *flags])


@pytest.mark.parametrize(
  ("chosen", "shape"),
  [
    ("own.py:smoke", (8, 8)),
    ("own.py:conv,smoke", (8, 8)),
    ("own.py:conv,sbc,smoke", (12, 20, 3)),
    ("embeddings.py:smoke", (30,)),
    ("embeddings.py:generative,smoke", (30,)),
  ],
)
def test_any_shape_runs_to_a_page_in_any_folder(chosen, shape, tmp_path):
  workdir = tmp_path / "a [b] *?" / "back\\slash \x1b[31m caf\udce9"
  assert run(workdir, chosen, write(tmp_path / "mine.npz", shape)) == 0
  results = read_results(workdir)
  assert results["paper"] is None
  assert results["class_names"] == [f"kind {label}" for label in range(7)]
  assert "own mine.npz" in results["facts"]["data_source"]
  page = (workdir / "report.html").read_text()
  assert "kind 3" in page and "mine.npz" in page


def test_class_means_know_separable_rows(tmp_path):
  file = write(tmp_path / "rows.npz", (30,), scale=1.0)
  assert run(tmp_path / "run", "embeddings.py:slda", file) == 0
  assert read_results(tmp_path / "run")["average_accuracy"]["mean"] == 100.0


def test_the_online_variant_shows_every_image_once_and_scores_as_it_goes(tmp_path):
  file = write(tmp_path / "mine.npz", (8, 8))
  flags = [f"--config={ROOT / 'configs/own.py:online'}", f"--config.data.dir={file}"]
  flags += [f"--workdir={tmp_path / 'run'}", "--config.stream.tasks=3"]
  flags += ["--config.network.hidden=8", "--config.eval.every=4"]
  assert main.main(flags) == 0
  results = read_results(tmp_path / "run")
  stream = results["config"]["stream"]
  assert (stream["epochs_per_task"], stream["batch_size"]) == (1, 10)
  assert results["facts"]["steps"] == 9  # as 30 images of each of three tasks last
  assert results["worst_case_accuracy"]["n"] == 1


@pytest.mark.parametrize("file", ["splitmnist", "permmnist", "cifar100", "embeddings"])
def test_every_experiment_has_an_online_variant(file):
  config = resolve(loading.load(str(ROOT / "configs" / f"{file}.py:online")))
  assert config.stream.setting == "boundary_free" and config.eval.every > 0


@pytest.mark.parametrize(
  ("chosen", "shape", "said"),
  [
    ("own.py:conv", (30,), "takes images of at least 8 x 8 pixels"),
    ("own.py:conv", (6, 6), "takes images of at least 8 x 8 pixels"),
    ("own.py", None, "does not exist"),
  ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(
  chosen, shape, said, tmp_path, capsys
):
  file = tmp_path / "mine.npz"
  if shape:
    write(file, shape)
  assert run(tmp_path / "run", chosen, file) == 1
  (line,) = capsys.readouterr().err.splitlines()
  assert said in line
  assert not (tmp_path / "run" / "config.json").exists()
