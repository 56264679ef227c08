"""report.html: what it says, that it is sound, and that it obeys nobody."""

import base64
import io
import re
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ebmjax import config as configuration
from ebmjax.report import files, page, pictures, plots, read, summarise
from ebmjax.report.__main__ import main
from ebmjax.report.charts import HEIGHT, WIDTH, Line, line_chart, ticks
from ebmjax.report.colours import cell_colours, picture
from tests.report.pages import FACTS, Reader, losses, luminance, store

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>&amp;"


@pytest.fixture
def no_plots(monkeypatch) -> None:
  """Leaves matplotlib's figures out: the page has its own."""
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})


def full_config(**changes: Any) -> dict[str, Any]:
  config = configuration.default()
  given = {name.replace("__", "."): value for name, value in changes.items()}
  config.update_from_flattened_dict(given)
  return config.to_dict()


def render(history, config=None, facts=FACTS, scalars=()) -> str:
  config = full_config(stream__tasks=3) if config is None else config
  return page.render(summarise(history, config, facts), history, scalars)


def test_a_page_says_what_was_run_and_what_came_out(make_history):
  history = make_history(tasks=5, classes=10, runs=3)
  config = full_config(seeds=3, network__hidden=77, negatives="one_of_task")
  results = summarise(history, config, FACTS)
  reader = Reader(page.render(results, history, losses(history.seeds)))
  assert reader.faults == []
  mean, sem = (results["average_accuracy"][key] for key in ("mean", "sem"))
  for part in (
    f"Energy-based model on split MNIST: {mean:.1f}\N{NO-BREAK SPACE}% average",
    "An energy-based model learned split MNIST by plain training with the contrastive",
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
    "network.hidden 77 400",
    "negatives one_of_task auto",
  ):
    assert part.replace("\N{NO-BREAK SPACE}", " ") in reader.text, part
  for seed in results["per_seed"]:
    assert f"{seed:.2f}" in reader.text
  for entry in np.mean(np.array(results["accuracy_matrix"], float), axis=0)[-1]:
    assert f"{entry:.1f}" in reader.text
  assert "did not use the full data set" not in reader.text
  assert reader.tags["figure"] == 6 and reader.tags["svg"] == 5


def test_nested_facts_get_a_row_an_entry(make_history):
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


def test_every_key_of_the_configuration_is_there(make_history):
  config = full_config(stream__tasks=3)
  text = Reader(render(make_history(), config)).text
  for key in configuration.flat_keys(configuration.default()):
    assert f" {key} " in text


def test_what_users_wrote_is_shown_and_not_obeyed(make_history):
  history = make_history(names=(EVIL, *"bcdef"))
  config = full_config(data__dir=EVIL, stream__tasks=3)
  config["network"]["name"] = config["method"]["name"] = EVIL
  config["data"]["name"] = config["objective"] = config[EVIL] = EVIL
  environment = FACTS["environment"] | {"device": EVIL, "packages": {EVIL: EVIL}}
  facts = FACTS | {"data_source": EVIL, "data_full": False, "command": EVIL}
  reader = Reader(render(history, config, facts | {"environment": environment}))
  assert reader.faults == []
  assert reader.tags["img"] == 0
  assert reader.text.count(EVIL) >= 10


def test_other_data_than_the_full_set_is_flagged(make_history):
  facts = FACTS | {"data_full": False, "data_source": "ONLY 5,000 IMAGES"}
  reader = Reader(render(make_history(), facts=facts))
  banners = [a for _, a in reader.elements if a.get("class") == "banner"]
  assert len(banners) == 1
  assert "not comparable with the paper's. Its data: ONLY 5,000 IMAGES" in reader.text


@pytest.mark.parametrize(
  "size",
  [
    {"tasks": 1, "classes": 10, "runs": 1, "per_task": 1},
    {"tasks": 10, "classes": 100, "runs": 10, "per_task": 1},
    {"tasks": 50, "classes": 100, "runs": 3, "per_task": 1},
  ],
  ids=str,
)
def test_pages_of_every_size(size, make_history):
  history = make_history(**size)
  config = full_config(stream__tasks=size["tasks"], data__name="cifar100")
  made = render(history, config, scalars=losses(history.seeds, points=900))
  assert Reader(made).faults == []
  assert len(made.encode()) < 1_000_000  # three would be allowed


def test_an_older_run_with_few_facts(make_history, make_config):
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


def test_memorised_images_are_called_training_images(tmp_path, make_history, no_plots):
  config = full_config(data__memorise=True, stream__tasks=3)
  folder = store(tmp_path / "run", make_history(), config)
  made = (folder / "report.html").read_text("utf-8")
  assert "training accuracy (%)" in made and "test accuracy (%)" not in made
  history = read(folder).history
  axes = plots.accuracy_per_task(history).axes[0]
  assert axes.get_ylabel() == "training accuracy (%)"
  plain = plots.accuracy_per_task(make_history()).axes[0]
  assert plain.get_ylabel() == "test accuracy (%)"


def test_the_matplotlib_figures_of_memorised_images(
  tmp_path, make_history, monkeypatch
):
  seen = []

  def draw(history, scalars):
    seen.append(history)
    return {}

  monkeypatch.setattr(plots, "draw", draw)
  config = full_config(data__memorise=True, stream__tasks=3)
  files.write(tmp_path, make_history(), config, {}, [])
  assert [history.evaluated_on for history in seen] == ["training"]


def test_a_finished_run_gets_its_page_anew(tmp_path, make_history, no_plots, capsys):
  folder = store(tmp_path / "run", make_history(), full_config(stream__tasks=3))
  first = (folder / "report.html").read_bytes()
  (folder / "report.html").unlink()
  assert main([str(folder)]) == 0
  assert (folder / "report.html").read_bytes() == first
  printed = capsys.readouterr().out
  assert "Average accuracy (%)" in printed
  assert f"Page: {folder / 'report.html'}" in printed


def test_a_line_stands_where_its_values_are():
  values = np.array([0.0, 50.0, 100.0])
  steps = np.array([0.0, 100.0, 200.0])
  line = Line(steps, values, None, "red")
  made = line_chart([line], alt="a", y_title="b", top=100, last=200)
  points = re.search(r'points="([^"]+)"', made)
  assert points is not None
  x, y = np.array([p.split(",") for p in points[1].split()], float).T
  assert x[1] - x[0] == x[2] - x[1] > 100
  assert y[0] - y[1] == y[1] - y[2] > 80
  assert ticks(100, 6) == [0, 20, 40, 60, 80, 100]
  assert ticks(0.7, 6) == pytest.approx([0, 0.2, 0.4, 0.6])
  assert ticks(100, 6, 70) == [70, 75, 80, 85, 90, 95, 100]
  assert ticks(2.5, 6, -9.45) == [-8, -6, -4, -2, 0, 2]


@pytest.mark.parametrize(
  ("values", "shown"),
  [
    ((-1, -5, -9), ("0", "\N{MINUS SIGN}8")),
    ((3, -5, 8), ("\N{MINUS SIGN}5", "0", "5")),
    ((4, 2, 1), ("0", "4")),
    ((-2e5, -1e5, -3e4), ("0", "\N{MINUS SIGN}5e4", "\N{MINUS SIGN}1.5e5")),
    ((0, 0, 0), ("0", "1")),
  ],
  ids=str,
)
def test_losses_of_any_sign_stay_in_the_picture(values, shown):
  curve = np.array(list(zip((100, 200, 300), values, strict=True)), float)
  made = pictures.loss({0: curve, 1: curve})
  assert f'viewBox="0 0 {WIDTH} {HEIGHT}"' in made
  drawn = " ".join(re.findall(r'points="([^"]+)"', made)).split()
  x, y = np.array([point.split(",") for point in drawn], float).T
  assert len(x) == 9  # two seeds and their mean
  assert (x >= 0).all() and (x <= WIDTH).all()
  assert (y >= 0).all() and (y <= HEIGHT).all()
  heights = [float(y) for y in re.findall(r'class="grid"[^>]*y1="([^"]+)"', made)]
  assert all(0 <= height <= HEIGHT for height in heights)
  for name in shown:
    assert f">{name}</text>" in made


def test_every_cell_can_be_read():
  inks = {"#000": 0.0, "#fff": 1.0}
  for share in np.linspace(0, 1, 1001):
    ground, ink = cell_colours(float(share))
    channels = [str(int(ground[place : place + 2], 16)) for place in (1, 3, 5)]
    found = sorted((luminance(f"rgb({', '.join(channels)})"), inks[ink]))
    assert (found[1] + 0.05) / (found[0] + 0.05) >= 4.5, share


def test_names_at_the_ends_of_lines_are_ink_and_tied_to_their_lines():
  steps, values = np.array([0.0, 100.0]), np.array([40.0, 50.0])
  lines = [Line(steps / 2, values, None, "red", "r0")]  # ends early
  lines += [Line(steps, values, None, "red", f"r{run}") for run in range(1, 6)]
  made = line_chart(lines, alt="a", y_title="b", top=100, last=100)
  texts = re.findall(r"<text([^>]*)>r(\d)</text>", made)
  assert [run for _, run in texts] == list("012345")
  assert not any("style" in attributes for attributes, _ in texts)
  places = [float(re.findall(r' y="([^"]+)"', text)[0]) for text, _ in texts]
  assert min(np.diff(places)) >= 12
  ties = re.findall(r'class="tie" x1="([^"]+)"', made)
  assert len(ties) == 6 and float(ties[0]) < float(ties[1])


def test_a_large_map_becomes_a_picture_of_its_values():
  shares = np.array([[0.0, 1.0], [np.nan, 0.5]])
  address = picture(shares, zoom=3)
  image = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
  assert image.size == (6, 6)
  pixels = np.asarray(image.convert("RGB")).astype(int)
  viridis = [(68, 1, 84), (253, 231, 37), (150, 150, 150), (33, 145, 140)]
  corners = [pixels[0, 0], pixels[2, 3], pixels[3, 2], pixels[5, 5]]
  np.testing.assert_allclose(corners, viridis, atol=3)


def test_the_reader_finds_faults():
  bad = '<table><tr><th>a</th></tr></table><script src="http://a.b"></script><p id=a>'
  faults = " ".join(Reader(f'{bad}<i id="a">').faults)
  for fault in ("loads http", "<script>", "no caption", "no scope", "repeats", "never"):
    assert fault in faults
