"""A finished run is a model: it predicts what the run was scored on, and learns on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ebmjax
from ebmjax import EnergyClassifier, data
from ebmjax.config import default, with_settings
from ebmjax.errors import ConfigError, DataError, WorkdirError
from ebmjax.report import plots
from ebmjax.tools import export, predict
from tests.helpers import read_results

SMALL = {
  "data.source": "embedded",
  "stream.tasks": 2,
  "stream.iterations": 6,
  "network.hidden": 16,
  "runner.chunk": 6,
}


def train(folder: Path, **settings) -> dict:
  config = with_settings(default(), SMALL | settings)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(plots, "draw", lambda history, scalars: {})
    return dict(ebmjax.run(config, folder))


@pytest.fixture(scope="module")
def mnist():
  return data.load(with_settings(default(), SMALL).data)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  """Two seeds, each with an order of classes of its own."""
  folder = tmp_path_factory.mktemp("run")
  changes = {"seeds": 2, "stream.class_order": "random"}
  return folder, train(folder, **changes)


def test_a_model_predicts_what_the_run_was_scored_on(run, mnist):
  folder, results = run
  for place in (0, 1):
    model = ebmjax.load(folder, seed=place)
    found = model.predict(mnist.test_x)
    assert found.dtype.kind == "i"
    by_class = [np.mean(found[mnist.test_y == c] == c) for c in range(10)]
    # The run's score is the mean over tasks, each of five classes of equal size.
    assert 100 * np.mean(by_class) == pytest.approx(results["per_seed"][place], abs=0.5)


def test_outputs_fit_together(run, mnist):
  model, x = ebmjax.load(run[0]), mnist.test_x[:5]
  energies = model.energies(x)
  assert model.classes.tolist() == list(range(10)) and energies.shape == (5, 10)
  assert (model.predict(x) == np.argmin(energies, axis=1)).all()
  shares = model.predict_proba(x)
  np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
  np.testing.assert_array_equal(np.argmax(shares, 1), np.argmin(energies, 1))
  assert model.features(x).shape == (5, 16)


def test_an_ensemble_has_the_mean_energies_of_its_seeds(run, mnist):
  x = mnist.test_x[:3]
  alone = [ebmjax.load(run[0], seed=seed).energies(x) for seed in (0, 1)]
  together = ebmjax.load(run[0], seed=None).energies(x)
  np.testing.assert_allclose(together, np.mean(alone, axis=0), rtol=1e-5)


def test_numbers_of_inputs_and_their_types_do_not_matter(run, mnist):
  model, x = ebmjax.load(run[0]), mnist.test_x[:300]
  whole = model.energies(x)
  parts = np.concatenate([model.energies(x[i : i + 7]) for i in range(0, 300, 7)])
  np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-5)
  np.testing.assert_array_equal(model.energies(x[..., None].astype(np.int64)), whole)


def test_inputs_unlike_the_training_s_are_refused(run, mnist, capsys, tmp_path):
  model = ebmjax.load(run[0])
  found = model.predict(mnist.test_x, reject=0.9)
  assert 0.8 < np.mean(found >= 0) < 0.97
  with pytest.raises(ConfigError, match="between 0 and 1"):
    model.predict(mnist.test_x, reject=1)
  np.savez(tmp_path / "x.npz", x=mnist.test_x)
  given = [str(run[0]), str(tmp_path / "x.npz"), "--seed=0", "--reject=0.9"]
  assert predict.main(given) == 0
  _, *rows = capsys.readouterr().out.splitlines()
  assert [int(row.split(",")[1]) for row in rows] == found.tolist()


# Imports neither ebmjax nor what it is made of: JAX and NumPy are enough.
ALONE = """
import sys
sys.modules.update(dict.fromkeys(["ebmjax", "flax", "optax", "ml_collections"]))
import jax.export
import numpy as np
stored = np.load("model.npz")
program = jax.export.deserialize(stored["program"].tobytes())
for count in (1, 7):
  x = np.load("x.npy")[:count]
  np.save(f"labels{count}.npy", stored["classes"][np.argmin(program.call(x), axis=1)])
assert set(program.platforms) == {"cpu", "cuda", "tpu"}
"""


def test_an_exported_model_predicts_without_the_package(run, mnist, tmp_path, capsys):
  x = mnist.test_x[:7]
  assert export.main([str(run[0]), str(tmp_path / "model.npz"), "--seed=1"]) == 0
  assert "The model of 10 classes is in" in capsys.readouterr().out
  np.save(tmp_path / "x.npy", x.astype(np.float32))
  subprocess.run([sys.executable, "-c", ALONE], cwd=tmp_path, check=True)
  expected = ebmjax.load(run[0], seed=1).predict(x)
  for count in (1, 7):
    found = np.load(tmp_path / f"labels{count}.npy")
    np.testing.assert_array_equal(found, expected[:count])


def test_labels_are_predicted_on_the_command_line(run, mnist, tmp_path, capsys):
  folder, x, y = run[0], mnist.test_x[:20], mnist.test_y[:20]
  np.savez(tmp_path / "x.npz", x_test=x, y_test=y)
  out = tmp_path / "labels.csv"
  given = [str(folder), str(tmp_path / "x.npz")]
  assert predict.main([*given, f"--out={out}"]) == 0
  labels = ebmjax.load(folder, seed=None).predict(x)
  said = capsys.readouterr().out
  assert f"{100 * np.mean(labels == y):.2f} % of them match the labels" in said
  head, *rows = out.read_text().splitlines()
  assert head == "input,label,probability"
  assert [row.split(",")[:2] for row in rows] == [
    [str(i), str(label)] for i, label in enumerate(labels)
  ]
  (tmp_path / "images" / "deep").mkdir(parents=True)
  for name, image in (("b.png", x[0]), ("deep/a.png", x[1])):
    Image.fromarray(image).save(tmp_path / "images" / name)
  assert predict.main([str(folder), str(tmp_path / "images"), "--seed=1"]) == 0
  one = ebmjax.load(folder, seed=1).predict(x[:2])
  table = [row.split(",")[:2] for row in capsys.readouterr().out.splitlines()[1:]]
  assert table == [["b.png", str(one[0])], ["deep/a.png", str(one[1])]]


@pytest.mark.parametrize("dtype", [float, bool, str])
def test_labels_of_any_type_are_compared(run, mnist, tmp_path, capsys, dtype):
  rows = np.flatnonzero(mnist.test_y < 2)[::20]
  x, y = mnist.test_x[rows], mnist.test_y[rows]
  np.savez(tmp_path / "x.npz", x=x, y=y.astype(dtype))
  given = [str(run[0]), str(tmp_path / "x.npz"), f"--out={tmp_path / 'l.csv'}"]
  assert predict.main(given) == 0
  right = 100 * np.mean(ebmjax.load(run[0], seed=None).predict(x) == y)
  assert right > 0
  assert f"{right:.2f} % of them match the labels" in capsys.readouterr().out


def test_hidden_files_are_not_predicted(tmp_path):
  (tmp_path / ".thumbnails").mkdir()
  Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "1.PNG")
  for hidden in ("._1.png", ".thumbnails/1.png"):
    (tmp_path / hidden).write_bytes(b"no image")
  found = predict.read_inputs(tmp_path, colour=False)
  assert found.names == ["1.PNG"] and found.x.shape == (1, 4, 4)


def test_names_of_files_are_written_as_they_are_and_not_obeyed(
  run, mnist, tmp_path, capsys, monkeypatch
):
  (tmp_path / "images").mkdir()
  for name in ("caf\udce9.png", "\x1b[31m.png"):
    Image.fromarray(mnist.test_x[0]).save(tmp_path / "images" / name)
  given, out = [str(run[0]), str(tmp_path / "images"), "--seed=0"], tmp_path / "l.csv"
  assert predict.main([*given, f"--out={out}"]) == 0
  assert b"\ncaf\xe9.png," in out.read_bytes() and b"\n\x1b[31m" in out.read_bytes()
  monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True, raising=False)
  assert predict.main(given) == 0
  assert "\ufffd[31m.png," in capsys.readouterr().out


@pytest.mark.parametrize(
  ("arrays", "sentence"),
  [
    ({"z": np.zeros(3)}, "must hold x or x_test, but lacks x_test and holds z"),
    (
      {"x": np.zeros((3, 28, 28)), "y": np.zeros(2)},
      "y] holds 2 labels for 3 rows of x: label each",
    ),
    ({"x": np.zeros((3, 8, 8))}, "trained on inputs of shape"),
    ({"x": np.array([None])}, "Python objects"),
  ],
)
def test_inputs_that_cannot_be_predicted_are_refused(
  run, arrays, sentence, tmp_path, capsys
):
  np.savez(tmp_path / "x.npz", **arrays)
  assert predict.main([str(run[0]), str(tmp_path / "x.npz")]) == 1
  assert sentence in capsys.readouterr().err
  os.mkfifo(tmp_path / "pipe")
  assert predict.main([str(run[0]), str(tmp_path / "pipe")]) == 1
  assert "pipe does not exist: give an npz file" in capsys.readouterr().err
  (tmp_path / "none").mkdir()
  assert predict.main([str(run[0]), str(tmp_path / "none")]) == 1
  assert "holds no image" in capsys.readouterr().err


@pytest.mark.parametrize(
  ("x", "sentence"),
  [
    (np.zeros((2, 27, 28), np.uint8), "trained on inputs of shape"),
    (np.full((2, 28, 28), 300), "the range of the training images"),
    (np.full((2, 28, 28), np.nan), "the range of the training images"),
    (np.zeros((0, 28, 28)), "at least one row"),
    (np.array([["a"]]), "integers or floats"),
  ],
)
def test_wrong_inputs_are_refused_in_a_sentence(run, x, sentence):
  with pytest.raises(DataError, match=sentence):
    ebmjax.load(run[0]).predict(x)


def test_folders_that_are_no_finished_runs_are_refused(run, tmp_path):
  with pytest.raises(WorkdirError, match="holds no finished run"):
    ebmjax.load(tmp_path / "nothing")
  assert not (tmp_path / "nothing").exists()
  with pytest.raises(WorkdirError, match="has no seed 7; its seeds are"):
    ebmjax.load(run[0], seed=7)
  results = read_results(run[0])
  results["facts"]["inputs"]["shape"] = "much"
  (tmp_path / "results.json").write_text(json.dumps(results))
  with pytest.raises(WorkdirError, match="not the results of a run that"):
    ebmjax.load(tmp_path)


def test_a_run_that_permutes_pixels_asks_for_the_task(tmp_path, mnist):
  results = train(tmp_path, **{"stream.name": "permuted", "eval.batch_size": 500})
  model = ebmjax.load(tmp_path)
  assert model.classes[0] == "1:0" and len(model.classes) == 20
  with pytest.raises(DataError, match="give task, from 0 to 1"):
    model.predict(mnist.test_x)
  scores = [
    np.mean(model.predict(mnist.test_x, task=task) == expected)
    for task in (0, 1)
    for expected in [np.array([f"{task + 1}:{c}" for c in mnist.test_y])]
  ]
  assert 100 * np.mean(scores) == pytest.approx(results["per_seed"][0], abs=0.01)


def test_own_labels_come_back(tmp_path, no_plots):
  rng = np.random.default_rng(0)
  y = np.array(["wren", "ant", "cow", "bee"] * 20)
  x = rng.normal(size=(80, 6)) + 3 * (y[:, None] == np.unique(y)[None, :]) @ rng.normal(
    size=(4, 6)
  )
  dataset = data.from_arrays(x, y)
  config = with_settings(default(), SMALL | {"data.name": "own", "data.source": "auto"})
  config.stream.batch_size = 8
  ebmjax.run(config, tmp_path, dataset)
  model = ebmjax.load(tmp_path)
  assert model.classes.tolist() == ["ant", "bee", "cow", "wren"]
  assert set(model.predict(x)) <= set(y)
  with pytest.raises(DataError, match="are needed to know which energies are usual"):
    model.predict(x, reject=0.9)  # the run was given arrays


def test_a_run_learns_on(run, mnist):
  model = EnergyClassifier.load(run[0], seed=1)
  x, y = mnist.train_x[::64], mnist.train_y[::64]
  expected = ebmjax.load(run[0], seed=1).energies(x)
  np.testing.assert_allclose(model.energies(x), expected, rtol=1e-5)
  model.partial_fit(255 - x, y + 10)  # classes that the run never had
  assert model.classes_.tolist() == list(range(20))
  assert set(model.predict(x)) <= set(range(20))
