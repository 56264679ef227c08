"""The sdist and the wheel: complete, and at work where there is no checkout."""

import contextlib
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import ebmjax
from ebmjax.tools.bench.peer import VARIABLE
from tests.helpers import ROOT

backend = pytest.importorskip(
  "hatchling.build", reason="the extra `test` has hatchling"
)

# Runs an experiment and lists the paper's cells with the package of a given folder.
WORK = """
import sys
import ebmjax
from ebmjax.__main__ import main
from ebmjax.report import plots
assert ebmjax.__file__.startswith(sys.argv[1]), ebmjax.__file__
plots.draw = lambda history, scalars: {}  # they take longer than the run
run = ["run", "--config=configs/splitmnist.py:slda,smoke", "--workdir=run"]
sys.exit(main([*run, "--config.data.source=embedded"]) or main(["reproduce"]))
"""

# Starts the PyTorch process of the package in a given Python, and lets it take a step.
PEER = """
import sys
from ebmjax.tools.bench import peer
assert (peer._ROOT / "launch" / "torch_peer" / "__main__.py").is_file()
flags = {"work": "training", "batch": "8"}
started = peer.Peer(sys.argv[1] or sys.executable, flags, steps=1)
assert started() > 0
started.close()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
  """Returns the wheel, built from the unpacked sdist as an index would serve it."""
  folder = tmp_path_factory.mktemp("dist")
  with contextlib.chdir(ROOT):
    sdist = folder / backend.build_sdist(str(folder))
  with tarfile.open(sdist) as archive:
    archive.extractall(folder, filter="data")
  with contextlib.chdir(folder / sdist.name.removesuffix(".tar.gz")):
    return folder / backend.build_wheel(str(folder))


def files_of(folder: Path, parent: Path) -> set[str]:
  paths = (path for path in folder.rglob("*") if path.is_file())
  return {
    path.relative_to(parent).as_posix() for path in paths if path.suffix != ".pyc"
  }


def test_the_wheel_holds_the_package_the_configurations_and_the_scripts(wheel):
  name = f"ebmjax-{ebmjax.__version__}"
  assert wheel.name == f"{name}-py3-none-any.whl"
  package = files_of(ROOT / "ebmjax", ROOT)
  configs = {f"ebmjax/{name}" for name in files_of(ROOT / "configs", ROOT)}
  peer = {f"ebmjax/peer/{name}" for name in files_of(ROOT / "launch/torch_peer", ROOT)}
  shared = f"{name}.data/data/share/ebmjax/launch"
  scripts = {f"{shared}/{script}" for script in ("slurm.sbatch", "gke_jobset.yaml")}
  assert {"ebmjax/paper/measured.json", "ebmjax/py.typed"} < package
  with zipfile.ZipFile(wheel) as archive:
    found = {n for n in archive.namelist() if not n.startswith(f"{name}.dist-info/")}
    assert found == package | configs | scripts | peer
    entry = archive.read(f"{name}.dist-info/entry_points.txt").decode()
  assert "ebmjax = ebmjax.__main__:cli" in entry


@pytest.fixture(scope="module")
def library(wheel, tmp_path_factory) -> Path:
  """Returns a folder with the unpacked wheel."""
  folder: Path = tmp_path_factory.mktemp("library")
  with zipfile.ZipFile(wheel) as archive:
    archive.extractall(folder)
  return folder


def run_in(folder: Path, library: Path, *words: str) -> subprocess.CompletedProcess:
  return subprocess.run(
    [sys.executable, *words],
    cwd=folder,
    env=os.environ | {"PYTHONPATH": str(library)},
    capture_output=True,
    text=True,
  )


def test_an_unpacked_wheel_starts_the_peer_of_the_benchmark(library, tmp_path):
  """With a Python that has torch, the peer takes a step; without, it misses torch."""
  done = run_in(tmp_path, library, "-c", PEER, os.environ.get(VARIABLE, ""))
  assert done.returncode == 0 or "No module named 'torch'" in done.stderr, done.stderr


def test_an_unpacked_wheel_runs_an_experiment_outside_of_the_checkout(
  library, tmp_path
):
  done = run_in(tmp_path, library, "-c", WORK, str(library))
  assert done.returncode == 0, done.stderr
  assert (tmp_path / "run" / "report.html").is_file()
  assert "label_conditioning" in done.stdout
