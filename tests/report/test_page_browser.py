"""The pages in a real browser: light and dark, on a phone and on a desk."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ebmjax import config as configuration
from ebmjax.report import page
from ebmjax.tools.report import main
from tests.chromium import Chromium, find
from tests.report.histories import make_history
from tests.report.pages import FACTS, luminance, store

PHONE, DESK = (390, 844), (1280, 900)

# What is wrong with the page as it is laid out, found in one go.
PROBE = """
(() => {
  const sizes = (name) => [...document.querySelectorAll(name)].map((element) => {
    const box = element.getBoundingClientRect();
    return [box.width, box.height, box.right];
  });
  const style = getComputedStyle(document.body);
  const texts = [...document.querySelectorAll('svg text')];
  return {
    width: window.innerWidth,
    scroll: document.documentElement.scrollWidth,
    figures: sizes('figure'),
    pictures: sizes('figure svg'),
    images: sizes('svg image'),
    outside: texts.filter((text) => {
      const box = text.getBoundingClientRect();
      const whole = text.ownerSVGElement.getBoundingClientRect();
      return box.left < whole.left - 1 || box.right > whole.right + 1
        || box.top < whole.top - 1 || box.bottom > whole.bottom + 1;
    }).map((text) => text.textContent),
    ink: style.color,
    ground: style.backgroundColor,
    label: getComputedStyle(texts[0]).fill,
  };
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Chromium]:
  program = find()
  if program is None:
    pytest.skip("no Chromium is installed (chromium, chromium-browser, google-chrome)")
  with Chromium(program, tmp_path_factory.mktemp("profile")) as browser:
    yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
  """Returns the pages of a small and of a large run, and of their comparison."""
  folder = tmp_path_factory.mktemp("runs")
  config = configuration.default()
  config.data.dir = "a/very/long/path/" * 8  # must not widen a phone's page
  command = {"command": "python -m ebmjax.main --config=" + "x" * 300}
  names = ("airplane", "automobile", *(f"class {i}" for i in range(8)))
  small = make_history(tasks=5, classes=10, runs=3, names=names)
  store(folder / "small", small, config.to_dict(), FACTS | command)
  config.stream.tasks = 50
  large = make_history(tasks=50, classes=100, runs=2, per_task=1)
  facts = FACTS | {"data_full": False}
  store(folder / ("a_long_name_" * 6), large, config.to_dict(), facts)
  runs = [folder / "small", folder / ("a_long_name_" * 6)]
  assert main([*map(str, runs), f"--out={folder / 'compare.html'}"]) == 0
  return {
    "small": runs[0] / page.NAME,
    "large": runs[1] / page.NAME,
    "comparison": folder / "compare.html",
  }


# Heat maps and their bars of colours, and the bar of many tasks.
IMAGES = {"small": 8, "large": 9, "comparison": 0}
FIGURES = {"small": 6, "large": 6, "comparison": 2}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("name", FIGURES)
def test_a_page_in_the_browser(name, size, scheme, browser, pages, tmp_path):
  browser.complaints.clear()
  browser.show(pages[name], width=size[0], height=size[1], scheme=scheme)
  found = browser.ask(PROBE)
  assert browser.complaints == []
  assert found["width"] == size[0]
  assert found["scroll"] <= size[0]
  assert len(found["figures"]) == len(found["pictures"]) == FIGURES[name]
  assert len(found["images"]) == IMAGES[name]
  for width, height, right in found["figures"] + found["pictures"]:
    assert width > 200 and height > 50 and right <= size[0]
  assert found["outside"] == []
  ink, ground, label = (luminance(found[key]) for key in ("ink", "ground", "label"))
  assert (ground > 0.8) if scheme == "light" else (ground < 0.05)
  for written in (ink, label):
    light, dark = max(written, ground), min(written, ground)
    assert (light + 0.05) / (dark + 0.05) > 7  # the contrast of the strictest rule
  check_screenshot(browser.screenshot(tmp_path / "page.png"), scheme)


def test_the_browser_reports_what_is_wrong(browser, tmp_path):
  bad = tmp_path / "bad.html"
  bad.write_text("<div style='width:999px'>a</div><script>nothing.here</script>")
  browser.complaints.clear()
  browser.show(bad, width=390, height=844, scheme="light")
  assert browser.ask("document.documentElement.scrollWidth") > 390
  assert browser.complaints != []


def check_screenshot(content: bytes, scheme: str) -> None:
  """Asserts that something is drawn, mostly on the ground of the scheme."""
  grey = np.asarray(Image.open(io.BytesIO(content)).convert("L"))
  assert (np.median(grey) > 200) == (scheme == "light")
  assert np.ptp(grey) > 150
