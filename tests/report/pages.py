"""What the tests of pages share: runs on the disk, and a reader that finds faults."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from ebmjax.report import History, write
from ebmjax.runtime.records import Record
from ebmjax.runtime.workdir import Workdir
from ebmjax.types import Evaluation

FACTS: dict[str, Any] = {
  "data_source": "mnist, full, official idx files",
  "data_full": True,
  "data_digest": "0123456789abcdef",
  "command": "python -m ebmjax.main --config=configs/splitmnist.py",
  "environment": {
    "python": "3.11.7",
    "packages": {"jax": "0.10.2", "flax": None},
    "device": "cpu",
    "backend": "cpu",
    "devices": 1,
    "commit": "852160c8989c",
  },
  "parameters": 318401,
  "budget": {
    "parameters": 318401,
    "training_flops": 1_691_053_790_000,
    "bytes_kept": 0,
    "inference_flops": 636894,
  },
  "steps": 10000,
  "steps_per_second": 284.2754,
  "seconds": {"training": 4.23, "evaluating": 72.0},
  "memory_bytes": {"state": 35_200_000, "copies": 0, "images": 2_100_000_000},
  "placement": {"processes": 1, "devices": 2048, "batch_devices": None},
  "wall_time": 364.0,
}
LOADS = ("src", "href", "xlink:href", "srcset", "data", "action", "poster")
VOID = ("meta", "br", "hr", "img", "link", "input")


def losses(seeds: Sequence[int], points: int = 30) -> list[dict[str, Any]]:
  return [
    {"step": 100 * step, "seed": seed, "loss": 1.0 / (1 + step + seed)}
    for step in range(1, points + 1)
    for seed in seeds
  ]


def store(
  folder: Path,
  history: History,
  config: Mapping[str, Any],
  facts: Mapping[str, Any] = FACTS,
) -> Path:
  """Returns the folder, now with a finished run in it."""
  scalars = losses(history.seeds)
  with Workdir(folder) as workdir:
    for e, step in enumerate(history.steps):
      found = Evaluation(*(values[e] for values in history.evaluations))
      finished, ends = history.tasks_finished[e], history.at_task_end[e]
      workdir.add_evaluation(Record(int(step), int(finished), bool(ends), found))
    workdir.add_scalars(scalars)
  write(folder, history, config, facts, scalars)
  return folder


def luminance(colour: str) -> float:
  """Returns the relative luminance of "rgb(r, g, b)"."""
  channels = [float(part) / 255 for part in colour[4:-1].split(",")]
  curved = [((channel + 0.055) / 1.055) ** 2.4 for channel in channels]
  pairs = zip(channels, curved, strict=True)
  linear = [plain / 12.92 if plain <= 0.04045 else bent for plain, bent in pairs]
  return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


class Reader(HTMLParser):
  """Reads a page and collects its elements, its text and its faults."""

  def __init__(self, page: str) -> None:
    super().__init__()
    self.faults: list[str] = []
    self.tags: Counter[str] = Counter()
    self.elements: list[tuple[str, dict[str, str]]] = []
    self.texts: list[str] = []
    self._open: list[str] = []
    self._ids: set[str] = set()
    self._used: set[str] = set()
    self.feed(page)
    self.close()
    self.faults += [f"<{tag}> is never closed" for tag in self._open]
    self._check_parts()

  @property
  def text(self) -> str:
    return re.sub(r"\s+", " ", " ".join(self.texts))

  def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
    attributes = {name: value or "" for name, value in attrs}
    if len(attributes) < len(attrs):
      self.faults.append(f"<{tag}> repeats an attribute")
    self.tags[tag] += 1
    self.elements.append((tag, attributes))
    if tag not in VOID:
      self._open.append(tag)
    for name, value in attributes.items():
      self._check_attribute(tag, name, value)

  def handle_endtag(self, tag: str) -> None:
    if not self._open or self._open.pop() != tag:
      self.faults.append(f"</{tag}> closes nothing")

  def handle_data(self, data: str) -> None:
    if self._open and self._open[-1] == "style":
      for load in ("url(", "@import", "http"):
        if load in data:
          self.faults.append(f"the style sheet has {load}")
    else:
      self.texts.append(data)

  def _check_attribute(self, tag: str, name: str, value: str) -> None:
    local = value.replace("url(#", "")  # of a part of the same page
    if name in LOADS and not value.startswith(("data:image/png;base64,", "#")):
      self.faults.append(f"<{tag}> loads {value}")
    if name.startswith("on") or "url(" in local or "javascript:" in value:
      self.faults.append(f"<{tag} {name}={value}>")
    if name == "xlink:href" or "url(#" in value:
      self._used |= set(re.findall(r"#([^)]+)", value))
    if name == "id":
      if value in self._ids:
        self.faults.append(f"id {value} repeats")
      self._ids.add(value)

  def _check_parts(self) -> None:
    self.faults += [f"there is no id {name}" for name in self._used - self._ids]
    for tag in ("script", "link", "iframe", "object", "embed"):
      if self.tags[tag]:
        self.faults.append(f"there is a <{tag}>")
    if self.tags["figure"] != self.tags["figcaption"]:
      self.faults.append("a figure has no caption")
    if self.tags["table"] != self.tags["caption"]:
      self.faults.append("a table has no caption")
    for tag, attributes in self.elements:
      if tag == "th" and attributes.get("scope") not in ("col", "row"):
        self.faults.append("a <th> has no scope")
      if tag == "svg" and not (
        attributes.get("role") == "img" and attributes.get("aria-label")
      ):
        self.faults.append("a picture does not say what it shows")
