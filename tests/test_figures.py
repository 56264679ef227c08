"""The figures, drawn from tiny runs: which runs are taken, and what is drawn."""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax import experiment, metrics
from ebmjax.errors import UserError
from ebmjax.networks.cifar100 import NormTrunk, trunk_file
from ebmjax.paper import figures, store
from ebmjax.paper.cells import all_cells
from ebmjax.paper.figures import FIGURES, accuracy
from ebmjax.paper.figures.__main__ import main as command
from ebmjax.paper.figures.missing import runs_of
from ebmjax.paper.figures.pooling import choose, scan
from ebmjax.paper.figures.spec import Needs
from ebmjax.report import plots, stored
from ebmjax.runtime import checkpoints
from ebmjax.tools import capacity
from tests.helpers import PERMUTED, ROOT, SPLIT, make_config, read_results, write_idx

CIFAR = str(ROOT / "configs" / "cifar100.py")
TINY: dict[str, Any] = {"stream__iterations": 4, "runner__chunk": 4}
MAGIC = {".svg": b"<?xml", ".pdf": b"%PDF-", ".png": b"\x89PNG\r\n\x1a\n"}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
  """Returns a folder with runs for every figure."""
  folder: Path = tmp_path_factory.mktemp("figures")
  mnist, runs = write_idx(folder / "mnist"), folder / "runs"
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(plots, "draw", lambda history, scalars: {})
    # No run here is broken off, and checkpoints would take a third of the time.
    patch.setattr(checkpoints.Checkpoints, "save", lambda *_: None)
    for name, chosen, changes in [
      ("split_ebm", SPLIT, TINY | {"seeds": 2}),
      ("split_ebm_2", SPLIT, TINY | {"seed": 2}),
      ("split_sbc", f"{SPLIT}:sbc", TINY),
      ("perm_ebm", PERMUTED, TINY),
      ("perm_sbc", f"{PERMUTED}:sbc", TINY),
      ("perm_cd", f"{PERMUTED}:contrastive,sbc", TINY | {"eval__every": 2}),
    ]:
      experiment.run(make_config(chosen, mnist, **changes), runs / name)
    experiment.run(cifar_config(folder / "cifar"), runs / "cifar")
    small = ["--config.stream.iterations=2", "--config.stream.batch_size=20"]
    sizes = ["--images", "50", "--models", "small", "--networks", "sbc"]
    assert capacity.main([f"--out={runs / 'capacity'}", *sizes, *small]) == 0
  return runs


def cifar_config(folder: Path) -> Any:
  """Returns CIFAR-100 in five tasks, on a few images and over a random trunk."""
  folder.mkdir()
  rng = np.random.default_rng(0)
  arrays: dict[str, Any] = {}
  for part in ("train", "test"):
    arrays[f"x_{part}"] = rng.integers(0, 256, (200, 32, 32, 3), dtype=np.uint8)
    arrays[f"y_{part}"] = np.arange(200) % 100
  np.savez(folder / "cifar100.npz", **arrays)
  trunk = jax.jit(NormTrunk().init)(jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
  weights = folder / "trunk.npz"
  weights.write_bytes(trunk_file(trunk))
  changes = TINY | {"network__pretrained": str(weights)}
  return make_config(f"{CIFAR}:tasks5,fixed", folder, **changes)


def drawn(name: str, root: Path) -> Any:
  """Returns the figure `name` and its runs."""
  spec = FIGURES[name]
  runs = choose(scan(root), spec, allow_partial=True)
  return spec.draw(runs), runs


def read(root: Path, name: str) -> Any:
  """Returns the evaluations of a run."""
  return stored.read(root / name).history.evaluations


def copy(root: Path, name: str, to: Path, **facts: Any) -> Path:
  """Returns a copy of a run in which results.json holds other facts."""
  shutil.copytree(root / name, to)
  results = read_results(to)
  results["facts"] |= facts
  (to / "results.json").write_text(json.dumps(results))
  return to


@pytest.mark.parametrize("name", FIGURES)
def test_three_formats_are_written(name, root: Path, tmp_path: Path):
  paths = figures.draw(name, root, tmp_path / "out", allow_partial=True)
  assert [path.name for path in paths] == [f"{name}{suffix}" for suffix in MAGIC]
  assert sorted((tmp_path / "out").iterdir()) == sorted(paths)
  for path in paths:
    assert path.read_bytes().startswith(MAGIC[path.suffix])
  svg, pdf, _ = (path.read_bytes() for path in paths)
  assert FIGURES[name].title.encode() in svg
  assert b"/FontFile2" in pdf and b"/Type3" not in pdf


def test_the_same_runs_give_the_same_bytes(root: Path, tmp_path: Path):
  first, again = (
    figures.draw("number_of_tasks", root, tmp_path / out, allow_partial=True)
    for out in ("first", "again")
  )
  assert [p.read_bytes() for p in first] == [p.read_bytes() for p in again]


def test_accuracy_over_training(root: Path):
  """Points are marked where there are none within tasks."""
  figure, _ = drawn("accuracy_over_training", root)
  names = {"SBC": "perm_sbc", "SBC*": "perm_cd", "EBM": "perm_ebm"}
  assert list(names) == list(accuracy.TITLES)
  for axes, name in zip(figure.axes[:3], names.values(), strict=True):
    history = stored.read(root / name).history
    apart, marker = (2, "") if name == "perm_cd" else (4, "o")  # steps; 4 are a task
    assert history.steps.tolist() == list(range(0, 41, apart))
    lines = axes.lines[-10:]  # after the ends of tasks
    for task, line in enumerate(lines):
      steps, values = line.get_data()
      first = 4 * task + apart  # the earliest evaluation that holds the task
      assert steps.tolist() == [step / 1000 for step in range(first, 41, apart)]
      mean = 100 * history.evaluations.accuracy[first // apart :, :, task].mean(axis=1)
      np.testing.assert_allclose(values, mean)
      assert line.get_marker() == ("o" if len(values) == 1 else marker)
    assert axes.get_ylim() == (-3, 103)
  assert len({axes.get_xlim() for axes in figure.axes[:3]}) == 1


def test_energy_landscapes(root: Path):
  figure, _ = drawn("energy_landscapes", root)
  images = [axes.images[0] for axes in figure.axes[:4]]
  assert {image.get_clim() for image in images} == {(0, 1)}
  for place, (name, step) in enumerate(
    [("perm_sbc", 36), ("perm_sbc", 40), ("perm_ebm", 36), ("perm_ebm", 40)]
  ):
    values = np.ma.filled(images[place].get_array(), np.nan)
    seen = 100 if step == 40 else 90
    expected = read(root, name).energies[step // 4].mean(axis=0)
    np.testing.assert_allclose(values[:seen], expected[:seen], rtol=1e-6)
    assert np.isnan(values[seen:]).all()


def test_predicted_labels(root: Path):
  figure, runs = drawn("predicted_labels", root)
  assert runs["EBM, split"][0].history.seeds == (0, 1, 2)
  sbc = read(root, "split_sbc").confusion
  for task in range(5):
    heights = [bar.get_height() for bar in figure.axes[task].patches[:10]]
    counts = sbc[task + 1, 0]
    np.testing.assert_allclose(heights, 100 * counts.sum(axis=0) / counts.sum())
    (true,) = figure.axes[task].patches[10:]  # of the classes seen so far
    share = np.nan_to_num(true.get_data().values)
    assert (share > 0).tolist() == [label < 2 * (task + 1) for label in range(10)]
    assert share.sum() == pytest.approx(100)
  parts = [read(root, name).confusion[5] for name in ("split_ebm", "split_ebm_2")]
  shares = metrics.predicted_label_share(np.concatenate(parts))
  heights = [bar.get_height() for bar in figure.axes[9].patches[:10]]
  np.testing.assert_allclose(heights, 100 * shares.mean(axis=0))


def test_confusion(root: Path):
  figure, _ = drawn("confusion", root)
  for axes, name in zip(
    figure.axes[:4], ("split_sbc", "perm_sbc", "split_ebm", "perm_ebm"), strict=True
  ):
    counts = read(root, name).confusion[-1].astype(float)
    if name == "split_ebm":
      counts = np.concatenate([counts, read(root, "split_ebm_2").confusion[-1]])
    shares = 100 * (counts / counts.sum(axis=-1, keepdims=True)).mean(axis=0)
    image = axes.images[0]
    np.testing.assert_allclose(image.get_array(), shares)
    assert image.get_clim() == (0, 100)
    told = [text.get_text() for text in axes.texts]
    assert len(told) == (np.count_nonzero(shares >= 0.5) if len(shares) == 10 else 0)


def test_forgetting(root: Path):
  figure, _ = drawn("forgetting", root)
  split, permuted = figure.axes[:2]
  for axes, name, label in [
    (split, "split_sbc", "SBC"),
    (permuted, "perm_sbc", "SBC"),
    (permuted, "perm_ebm", "EBM"),
  ]:
    (line,) = [line for line in axes.lines if line.get_label() == label]
    found = stored.read(root / name).results["accuracy_matrix"]
    matrix = np.array(found, float)  # [R, T, T], percent
    assert line.get_xdata().tolist() == list(range(1, matrix.shape[-1] + 1))
    expected = np.nanmean(matrix, axis=-1).mean(axis=0)
    np.testing.assert_allclose(line.get_ydata(), expected, atol=1e-5)
  assert len(split.collections) == 1  # the band of the EBM, which has several seeds
  assert len(permuted.collections) == 0


def test_capacity_curves(root: Path):
  figure, runs = drawn("capacity", root)
  assert [run.value for run in runs["SBC small"]] == [50]
  (line,) = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
  assert line.get_xdata().tolist() == [50]
  points = json.loads((root / "capacity" / "capacity.json").read_text())["points"]
  assert line.get_ydata().tolist() == [point["accuracy"] for point in points]
  assert line.get_label() == "SBC small, 512 units"


def test_number_of_tasks_stands_beside_the_paper_s(root: Path):
  figure, _ = drawn("number_of_tasks", root)
  lines = [line for line in figure.axes[0].lines if len(line.get_xdata())]
  theirs = [line for line in lines if line.get_markerfacecolor() == "white"]
  (ours,) = [line for line in lines if line not in theirs]
  assert len(theirs) == 5
  found = {tuple(line.get_ydata()) for line in theirs}
  assert (34.88, 30.28, 25.04, 13.6) in found and (14.74, 8.18, 4.46, 1.91) in found
  assert sum(len(values) for values in found) == len(
    [cell for cell in all_cells() if cell.table == "number_of_tasks"]
  )
  result = stored.read(root / "cifar").results["average_accuracy"]["mean"]
  assert ours.get_ydata() == pytest.approx([result])
  (place,) = ours.get_xdata()
  assert round(place) == 0  # five tasks come first


def test_final_figures_count_scores_in_whose_runs_are_gone(root: Path, tmp_path: Path):
  """A seed that is both in a folder and among the scores is drawn once."""
  (own,) = store.find(root / "capacity" / "sbc-small-50")
  gone = own._replace(folder=None, finished="2020-01-01T00:00:00Z")
  kept = [
    gone._replace(seeds=[0], accuracies=[0.0]),
    gone._replace(seeds=[1, 2], accuracies=[30.0, 50.0]),
  ]
  spec = FIGURES["capacity"]
  entries = [*scan(root), *kept]
  ((run,),) = filter(None, runs_of("x", spec, root, entries).values())
  assert dict(zip(run.history.seeds, run.per_seed, strict=True)) == {
    **{1: 30.0, 2: 50.0},
    0: own.accuracies[0],
  }
  paths = figures.draw("capacity", tmp_path / "no runs", tmp_path, stored=kept)
  assert all(path.stat().st_size for path in paths)
  with pytest.raises(UserError, match=f"{root} holds none of SBC on split MNIST"):
    figures.draw("confusion", root, tmp_path, stored=kept)


def test_scores_on_held_out_images_are_left_out(root: Path):
  (entry,) = store.find(root / "cifar")
  held = entry._replace(config=entry.config | {"data.validation": 5})
  spec = FIGURES["number_of_tasks"]
  for run, count in ((entry, 1), (held, 0)):
    found = choose([run], spec, allow_partial=True)
    assert len(found["EBM"]) == count


def test_what_was_left_out_or_unusual_is_told(root: Path, tmp_path: Path, caplog):
  with caplog.at_level(logging.INFO, "ebmjax"):
    figures.draw("number_of_tasks", root, tmp_path, allow_partial=True)
  assert "No run is stored of EBM with stream.tasks 10, 20, 50; LwF; SI" in caplog.text
  assert "EBM with optimiser" not in caplog.text
  small = "network.hidden=8, stream.batch_size=16, stream.iterations=4."
  assert f"EBM with {small}" in caplog.text
  assert "One seed." in caplog.text
  assert "Drawn from cifar." in caplog.text
  with caplog.at_level(logging.INFO, "ebmjax"):
    figures.draw("predicted_labels", root, tmp_path, allow_partial=True)
  assert f"EBM, split with {small}" in caplog.text


def test_part_of_the_data_is_refused_and_marked(root: Path, tmp_path: Path):
  with pytest.raises(UserError, match=r"\(split_sbc, split_ebm, split_ebm_2: part of"):
    figures.draw("predicted_labels", root, tmp_path)
  assert not list(tmp_path.iterdir())
  (path, *_) = figures.draw("number_of_tasks", root, tmp_path, allow_partial=True)
  assert b"PART OF THE DATA ONLY (EBM)" in path.read_bytes()


def test_a_run_on_full_data_comes_first(root: Path, tmp_path: Path):
  for name in ("split_ebm", "split_ebm_2", "split_sbc"):
    copy(root, name, tmp_path / name)
  full = copy(root, "split_ebm_2", tmp_path / "full", data_full=True, data_digest="x")
  spec = FIGURES["predicted_labels"]
  runs = choose(scan(tmp_path), spec)
  assert runs["SBC, split"] == ()
  (run,) = runs["EBM, split"]
  assert run.paths == (full,) and not run.partial
  (run,) = choose(scan(tmp_path), spec, allow_partial=True)["EBM, split"]
  assert run.paths == (full,)  # although the others have more seeds


def test_seeds_are_pooled_once(root: Path, tmp_path: Path):
  for name in ("split_ebm", "split_ebm_2"):
    copy(root, name, tmp_path / name)
  copy(root, "split_ebm_2", tmp_path / "the_same_again")
  spec = FIGURES["forgetting"]
  (run,) = choose(scan(tmp_path), spec, allow_partial=True)["EBM, split"]
  assert run.history.seeds == (0, 1, 2)
  assert len(run.paths) == 2  # of two equals, either
  parts = [read(root, "split_ebm"), read(root, "split_ebm_2")]
  for field, *pair in zip(run.history.evaluations, *parts, strict=True):
    np.testing.assert_array_equal(field, np.concatenate(pair, axis=1)[1:])
  results = [stored.read(root / n).results for n in ("split_ebm", "split_ebm_2")]
  assert run.per_seed.tolist() == [v for r in results for v in r["per_seed"]]


def test_runs_evaluated_at_other_steps_are_not_pooled(root: Path, tmp_path: Path):
  """Within tasks the run that was evaluated more often is drawn."""
  often = copy(root, "split_ebm_2", tmp_path / "often")
  rare = copy(root, "split_ebm", tmp_path / "rare")
  (rare / "evaluations" / "000000000.npz").unlink()
  spec = FIGURES["forgetting"]

  def found(needs: Needs) -> tuple[Path, ...]:
    runs = choose(scan(tmp_path), spec._replace(needs=needs), allow_partial=True)
    return runs["EBM, split"][0].paths

  assert found("within") == (often,)
  assert found("ends") == found("final") == (often, rare)  # they agree there


def test_damaged_and_foreign_folders_are_left_out(root: Path, tmp_path: Path, caplog):
  damaged = copy(root, "split_ebm", tmp_path / "damaged")
  (damaged / "evaluations" / "000000004.npz").write_bytes(b"no numbers")
  (tmp_path / "foreign").mkdir()
  (tmp_path / "foreign" / "results.json").write_text('{"score": 1}')
  copy(root, "split_ebm_2", tmp_path / "good")
  spec = FIGURES["forgetting"]
  (run,) = choose(scan(tmp_path), spec, allow_partial=True)["EBM, split"]
  assert [path.name for path in run.paths] == ["good"]
  assert "damaged is left out" in caplog.text
  assert "foreign is left out" in caplog.text


def test_a_missing_run_is_told_with_its_command(root: Path, tmp_path: Path, capsys):
  for name in ("perm_sbc", "perm_ebm"):
    copy(root, name, tmp_path / name, data_full=True)
  copy(root, "capacity/sbc-small-50", tmp_path / "sbc-small-50")
  arguments = [f"--runs={tmp_path}", f"--out={tmp_path / 'out'}"]
  assert command(["accuracy_over_training", *arguments]) == 1
  printed = capsys.readouterr()
  (line,) = printed.err.splitlines()
  assert line.startswith("figures: accuracy_over_training needs ")
  assert line.endswith(
    "make it with python -m ebmjax.main --config=configs/permmnist.py:contrastive,sbc "
    f"--config.eval.every=500 --workdir={tmp_path / 'permmnist-contrastive-sbc'}"
  )
  # One that is missing does not keep the others from being drawn.
  assert command(["forgetting", "capacity", *arguments]) == 1
  printed = capsys.readouterr()
  assert printed.out.split() == [
    str(tmp_path / "out" / f"capacity{suffix}") for suffix in MAGIC
  ]
  assert "configs/splitmnist.py --workdir" in printed.err


def test_the_list_says_what_can_be_drawn(root: Path, capsys):
  assert command([f"--runs={root}", "--allow_partial"]) == 0
  out = capsys.readouterr().out
  assert out.count("can be drawn from") == len(FIGURES)
  assert command([f"--runs={root}"]) == 0
  out = capsys.readouterr().out
  assert out.count("can be drawn from") == 1  # generated images are never partial
  assert "forgetting\n  Average accuracy so far, split and permuted MNIST\n" in out
  assert "--config=configs/permmnist.py:sbc" in out


def test_without_a_folder_the_stored_results_are_drawn(tmp_path, monkeypatch, caplog):
  """One figure that cannot be drawn from them does not stop the next."""
  monkeypatch.chdir(tmp_path)
  assert command(["confusion", "number_of_tasks"]) == 1
  assert (tmp_path / "figures" / "number_of_tasks.svg").stat().st_size
  assert "Drawn from measured.json." in caplog.text
  assert command([]) == 0


@pytest.mark.parametrize(
  ("arguments", "told"),
  [
    (["forgeting"], "did you mean 'forgetting'?"),
    (["forgetting", "--runs=nowhere"], "there is no folder nowhere; give"),
    (["--outdir=x"], "--outdir=x; see --help."),
  ],
)
def test_fault_is_told_in_one_sentence(arguments, told, capsys):
  code = command(arguments)
  printed = capsys.readouterr()
  (line,) = printed.err.splitlines()
  assert line.startswith("figures: ") and line.endswith(".")
  assert code == (2 if line.endswith("see --help.") else 1)
  assert told in line and printed.out == ""


def test_an_unwritable_folder_is_told(root: Path, tmp_path: Path):
  (tmp_path / "file").touch()
  with pytest.raises(UserError, match="give another with --out"):
    figures.draw("capacity", root, tmp_path / "file")
