"""report.html: what it says, that it is sound, and that it obeys nobody."""

import re
from typing import Any

import numpy as np
import pytest

from ebmjax import config as configuration
from ebmjax.config import loading
from ebmjax.config.validation import resolve
from ebmjax.paper.commands import with_figure
from ebmjax.report import page, plots, plotting, read, summarise
from ebmjax.report.labels import DASH
from ebmjax.tools.report import main
from tests.helpers import SPLIT
from tests.report.histories import make_config, make_history
from tests.report.pages import FACTS, Reader, losses, luminance, store

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>&amp;"


def full_config(**changes: Any) -> dict[str, Any]:
  config = configuration.default()
  given = {name.replace("__", "."): value for name, value in changes.items()}
  config.update_from_flattened_dict(given)
  return config.to_dict()


def render(history, config=None, facts=FACTS, scalars=()) -> str:
  config = full_config(stream__tasks=3) if config is None else config
  charts = plots.draw(history, scalars)
  return page.render(summarise(history, config, facts), history, charts)


def test_a_page_says_what_was_run_and_what_came_out():
  history = make_history(tasks=5, classes=10, runs=3)
  config = full_config(seeds=3, network__hidden=77, negatives="one_of_task")
  results = with_figure(summarise(history, config, FACTS))
  made = page.render(results, history, plots.draw(history, losses(history.seeds)))
  check_colours(re.findall(r"<svg.*?</svg>", made, re.DOTALL)[0])
  reader = Reader(made)
  assert reader.faults == []
  mean, sem = (results["average_accuracy"][key] for key in ("mean", "sem"))
  for part in (
    f"Energy-based model on split MNIST: {mean:.1f}\N{NO-BREAK SPACE}% average",
    "An energy-based model learned split MNIST by fine-tuning with the contrastive",
    "There are 5 tasks, one after another, with known boundaries, class-incremental.",
    f"{mean:.2f} ± {sem:.2f}",
    "53.12 ± 0.04",
    f"{results['forgetting']['mean']:.2f} ± {results['forgetting']['sem']:.2f}",
    f"{results['task_incremental_accuracy']['mean']:.2f} ±",
    "mnist, full, official idx files",
    FACTS["command"],
    "852160c8989c",
    "318,401",
    "6 min 4 s",
    "jax 0.10.2",
    "To compute the energies of all labels of one image. 637 kFLOP",
    "1.69 TFLOP",
    "0 B",
    "network.hidden 77 400",
    "negatives one_of_task auto",
  ):
    assert part.replace("\N{NO-BREAK SPACE}", " ") in reader.text, part
  for seed in results["per_seed"]:
    assert f"{seed:.2f}" in reader.text
  for entry in np.mean(np.array(results["accuracy_matrix"], float), axis=0)[-1]:
    assert f"{entry:.1f}" in reader.text
  assert "did not use the full data set" not in reader.text
  assert reader.tags["figure"] == reader.tags["svg"] == 6


def check_colours(curves: str) -> None:
  """Requires a chart in the page's colours, light and dark; its text stays text."""
  for part in ("var(--line-0)", "var(--line-4)", "var(--rule)", "currentColor"):
    assert part in curves
  fixed = {*re.findall(r"#[0-9a-f]{6}\b", curves)}
  assert not fixed & {colour.lower() for colour in (*plotting.PALETTE, plotting.INK)}
  for text in ("test accuracy (%)", "training step", "task 5", "mean so far"):
    assert f">{text}</text>" in curves
  assert "<style" not in curves and "<metadata" not in curves


def test_energies_as_rejection_by_task_end(no_plots):
  history = make_history(tasks=3, runs=2)
  reader = Reader(render(history))
  auroc = 100 * history.evaluations.auroc_lowest[4]  # the end of the second task
  mean, sem = auroc.mean(), auroc.std(ddof=1) / 2**0.5
  gaps = 100 * history.evaluations.calibration_error[6]
  assert "Energy as rejection" in reader.text
  assert f" 2 {mean:.2f} ± {sem:.2f} " in reader.text
  none = f"{DASH} " * 4  # nothing is left to refuse
  assert f" 3 {none}{gaps.mean():.2f} ± " in reader.text
  history.evaluations.auroc_lowest[:] = np.nan
  text = Reader(render(history)).text
  assert "Energy as rejection" not in text and "Calibration error" in text


@pytest.mark.usefixtures("no_plots")
def test_nested_facts_get_a_row_an_entry():
  facts = FACTS | {"odd": {"deep": {"one_two": [1, 2]}, "none": None}}
  made = render(make_history(), facts=facts)
  rows = re.findall(r'<tr><th scope="row">([^<]*)</th><td>([^<]*)</td></tr>', made)
  for row in (
    ("time, training", "4.2 s"),
    ("time, evaluating", "1 min 12 s"),
    ("memory, state", "35.2 MB"),
    ("memory, images", "2.1 GB"),
    ("placement, processes", "1"),
    ("placement, devices", "2,048"),
    ("odd, deep, one two", "1, 2"),
  ):
    assert rows.count(row) == 1, row
  text = Reader(made).text
  assert not any(part in text for part in ("{", "batch devices", "odd, none"))


@pytest.mark.usefixtures("no_plots")
def test_defaults_are_those_of_the_chosen_components():
  config = loading.load(f"{SPLIT}:ewc,sbc", {"data.name": "own"})
  config.method.strength = 5.0
  text = Reader(render(make_history(), resolve(config).to_dict())).text
  changed = "method.name ewc finetune", "method.strength 5.0 1.0", "data.name own mnist"
  for row in changed:
    assert f" {row} " in text, row
  for key in ("method.fisher_samples", "data.test_share", "version.method"):
    assert re.search(rf" {key} \S+ the same ", text), key


@pytest.mark.usefixtures("no_plots")
def test_every_key_of_the_configuration_is_there():
  config = full_config(stream__tasks=3)
  text = Reader(render(make_history(), config)).text
  for key in configuration.flat_keys(configuration.default()):
    assert f" {key} " in text


def test_what_users_wrote_is_shown_and_not_obeyed():
  history = make_history(names=(EVIL, "$x_1$", *"cdef"))
  config = full_config(data__dir=EVIL, stream__tasks=3)
  config["network"]["name"] = config["method"]["name"] = EVIL
  config["data"]["name"] = config["objective"] = config[EVIL] = EVIL
  environment = FACTS["environment"] | {"device": EVIL, "packages": {EVIL: EVIL}}
  facts = FACTS | {"data_source": EVIL, "data_full": False, "command": EVIL}
  made = render(history, config, facts | {"environment": environment})
  reader = Reader(made)
  assert reader.faults == []
  assert reader.tags["img"] == 0
  assert reader.text.count(EVIL) >= 10
  # No mathematics: one map has the name once, two have it twice.
  assert made.count(">$x_1$</text>") == 5


@pytest.mark.usefixtures("no_plots")
def test_other_data_than_the_full_set_is_flagged():
  facts = FACTS | {"data_full": False, "data_source": "ONLY 5,000 IMAGES"}
  reader = Reader(render(make_history(), facts=facts))
  banners = [a for _, a in reader.elements if a.get("class") == "banner"]
  assert len(banners) == 1
  assert "not comparable with the paper's." in reader.text
  assert "Data: ONLY 5,000 IMAGES" in reader.text


@pytest.mark.parametrize(
  "size",
  [
    {"tasks": 1, "classes": 10, "runs": 1, "per_task": 1},
    {"tasks": 10, "classes": 100, "runs": 10, "per_task": 1},
    {"tasks": 50, "classes": 100, "runs": 3, "per_task": 1},
  ],
  ids=str,
)
def test_charts_and_pages_of_every_size(size):
  history = make_history(**size)
  charts = plots.draw(history, losses(history.seeds, points=900))
  assert all(len(plots.png(chart)) > 5000 for chart in charts.values())
  config = full_config(stream__tasks=size["tasks"], data__name="cifar100")
  made = page.render(summarise(history, config, FACTS), history, charts)
  reader = Reader(made)
  assert reader.faults == [] and reader.tags["svg"] == 6
  assert len(made.encode()) < 1_000_000  # three would be allowed


def test_an_older_run_with_few_facts():
  history = make_history(tasks=5, classes=10, runs=1)
  history.evaluations.accuracy[-1, 0, 0] = np.nan
  reader = Reader(render(history, make_config(), facts={}))
  assert reader.faults == []
  for part in (
    "no average accuracy",
    "The command was not recorded",
    "Data: not recorded",
    "Nothing was recorded",
  ):
    assert part in reader.text.replace(" .", ".")


def test_memorised_images_are_called_training_images(tmp_path, monkeypatch):
  seen = [make_history()]

  def draw(history, scalars):
    seen.append(history)
    return {}

  monkeypatch.setattr(plots, "draw", draw)
  config = full_config(data__memorise=True, stream__tasks=3)
  folder = store(tmp_path / "run", make_history(), config)
  made = (folder / "report.html").read_text("utf-8")
  assert "Scored on training images." in made and "test images" not in made
  for history, images in zip(seen, ("test", "training"), strict=True):
    axes = plots.accuracy_per_task(history).figure.axes[0]
    assert axes.get_ylabel() == f"{images} accuracy (%)"
  assert read(folder).history.evaluated_on == "training"


def test_a_finished_run_gets_its_page_anew(tmp_path, no_plots, capsys):
  folder = store(tmp_path / "run", make_history(), full_config(stream__tasks=3))
  first = (folder / "report.html").read_bytes()
  (folder / "report.html").unlink()
  assert main([str(folder)]) == 0
  assert (folder / "report.html").read_bytes() == first
  printed = capsys.readouterr().out
  assert "Average accuracy (%)" in printed
  assert f"Page: {folder / 'report.html'}" in printed


def test_every_number_on_a_map_can_be_read():
  from matplotlib import colormaps

  inks = {"black": 0.0, "white": 1.0}
  for share in np.linspace(0, 1, 256):
    ground = colormaps["viridis"](share)
    channels = ", ".join(str(255 * channel) for channel in ground[:3])
    ink = inks[plotting.readable_ink(ground)]
    dark, light = sorted((luminance(f"rgb({channels})"), ink))
    assert (light + 0.05) / (dark + 0.05) >= 4.5, share


@pytest.mark.parametrize("values", [(-1, -5, -9), (3, -5, 8), (-2e5, 0, 1), (0, 0, 0)])
def test_losses_of_any_sign_stay_in_the_picture(values):
  curve = np.array(list(zip((100, 200, 300), values, strict=True)), float)
  axes = plots.loss({0: curve, 1: curve}).figure.axes[0]
  assert len(axes.get_lines()) == 3  # two seeds and their mean
  low, high = axes.get_ylim()
  assert low < min(values) and max(values) < high


def test_the_reader_finds_faults():
  bad = '<table><tr><th>a</th></tr></table><script src="http://a.b"></script><p id=a>'
  faults = " ".join(Reader(f'{bad}<i id="a">').faults)
  for fault in ("loads http", "<script>", "no caption", "no scope", "repeats", "never"):
    assert fault in faults
