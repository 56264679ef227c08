"""Damages the files of runs and of data: recovered, refused, or as before."""

import os
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ebmjax import EnergyClassifier, data, experiment, report
from ebmjax.config.validation import resolve
from ebmjax.runtime.checkpoints import Checkpoints
from ebmjax.runtime.trainer import Trainer, make_run_spec
from ebmjax.runtime.workdir import Workdir
from tests.faults.tally import Tally
from tests.helpers import SPLIT, make_config, write_idx

_REPORTS = ("report.html", "plots", "tensorboard", ".csv", ".lock")  # made, never read


class Runs:
  """A finished run in a folder, its data, and what is read back from them."""

  def __init__(self, base: Path) -> None:
    self.data = write_idx(base / "data")
    self.whole = base / "whole"
    self.copy = base / "copy"
    changes = {"stream__iterations": 4, "eval__every": 3, "checkpoint__every": 2}
    self.config = resolve(make_config(f"{SPLIT}:smoke", self.data, **changes))
    experiment.run(self.config, self.whole)
    dataset = data.load(self.config.data)
    self.like = Trainer(make_run_spec(self.config, dataset, "map")).like_saved()
    self.text = report.read(self.whole).results
    self.points = Workdir(self.whole).scalars()
    self.states = self._restored(self.whole)
    self.digest = data.digest(dataset)

  def files(self) -> list[Path]:
    """Returns the files that something reads, relative to the run's folder."""
    found = [p.relative_to(self.whole) for p in self.whole.rglob("*") if p.is_file()]
    return sorted(p for p in found if not any(part in str(p) for part in _REPORTS))

  def reads_back(self) -> bool:
    """Reads the copy as a report, a restart and a prediction do."""
    with Workdir(self.copy) as folder:
      folder.claim(self.config)
      folder.settle({"data_digest": self.text["facts"]["data_digest"]})
      points = folder.scalars()
    read = report.read(self.copy)
    same = read.results == self.text
    return same and all(point in self.points for point in points)

  def restores(self) -> bool:
    """Restores the newest whole checkpoint of the copy."""
    step, states = self._restored(self.copy)
    return step != self.states[0] or _same(states, self.states[1])

  def loads(self, folder: Path, changed: bool) -> bool:
    """Loads the data of a folder, which may be other images of the user's own."""
    config = make_config(f"{SPLIT}:smoke", folder).data
    return data.digest(data.load(config)) == self.digest or changed

  def _restored(self, workdir: Path) -> tuple[int, Any]:
    with Checkpoints(workdir / "checkpoints", 9) as keeper:
      found = keeper.restore(self.like)
    return found or (0, None)


def attack(
  stored: Tally, checkpoints: Tally, files: Tally, models: Tally, base: Path
) -> None:
  """Damages one file at a time: of the run's records, its checkpoints, its data."""
  runs, rng = Runs(base), random.Random(random.getrandbits(32))
  names = runs.files()
  for tally, act, wanted in (
    (stored, runs.reads_back, [p for p in names if p.parts[0] != "checkpoints"]),
    (checkpoints, runs.restores, [p for p in names if p.parts[0] == "checkpoints"]),
  ):
    for number in tally.tries():
      shutil.rmtree(runs.copy, ignore_errors=True)
      shutil.copytree(runs.whole, runs.copy)
      name = wanted[number % len(wanted)]
      kind = damage(rng, runs.copy / name, runs.whole / rng.choice(names))
      tally.judge(f"{kind} {name}", act)
  named = sorted(path.name for path in runs.data.iterdir())
  for number in files.tries():
    shutil.rmtree(runs.copy, ignore_errors=True)
    shutil.copytree(runs.data, runs.copy)
    name = Path(named[number % len(named)])
    kind = damage(rng, runs.copy / name, runs.data / rng.choice(named))
    # Own files have no official checksum: a bit in an image is an image of theirs.
    own = kind in ("flip", "swap")
    files.judge(f"{kind} {name}", partial(runs.loads, runs.copy, own))
  _attack_models(models, base, rng)


def _attack_models(tally: Tally, base: Path, rng: random.Random) -> None:
  """Damages the file of a saved classifier."""
  x, y = np.random.default_rng(0).random((30, 6)), np.arange(30) % 3
  model = EnergyClassifier(settings={"network.num_features": 8}).fit(x, y)
  whole, copy = base / "model.npz", base / "damaged.npz"
  model.save(whole)
  energies = model.energies(x)

  def predicts() -> bool:
    return np.array_equal(EnergyClassifier.load(copy).energies(x), energies)

  for _ in tally.tries():
    copy.rmdir() if copy.is_dir() else copy.unlink(missing_ok=True)
    shutil.copy(whole, copy)
    tally.judge(damage(rng, copy, base / "data" / "t10k-labels-idx1-ubyte"), predicts)


def damage(rng: random.Random, path: Path, other: Path) -> str:
  """Damages a file in a way that it returns the name of."""
  odd = rng.choice([b"[]", b"{}", b"3", b'{"a": NaN}', b"[" * 9**5])
  kinds: dict[str, Callable[[bytes], bytes | None]] = {
    "cut": lambda content: content[: rng.randrange(len(content))],
    "flip": lambda content: _flip(rng, content),
    "empty": lambda content: b"",
    "noise": lambda content: rng.randbytes(min(len(content), 4096)),
    "append": lambda content: content + rng.randbytes(7),
    "swap": lambda content: other.read_bytes(),
    "json": lambda content: odd,
    "delete": lambda content: None,
    "folder": lambda content: None,
    "pipe": lambda content: None,
  }
  kind = rng.choice(list(kinds))
  content = kinds[kind](path.read_bytes() or b"\0")
  path.unlink()
  if content is not None:
    path.write_bytes(content)
  elif kind == "folder":
    path.mkdir()
  elif kind == "pipe":
    os.mkfifo(path)
  return kind


def _flip(rng: random.Random, content: bytes) -> bytes:
  place = rng.randrange(len(content))
  flipped = content[place] ^ (1 << rng.randrange(8))
  return content[:place] + bytes([flipped]) + content[place + 1 :]


def _same(tree: Any, other: Any) -> bool:
  pairs = zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True)
  return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)
