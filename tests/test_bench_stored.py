"""The stored figures of the benchmark, and the tables of BENCHMARKS.md made of them."""

import re
import shutil

import jax
import pytest

from ebmjax.errors import UserError
from ebmjax.tools.bench import peer, roofline, sections
from ebmjax.tools.bench.cases import TRAINING
from ebmjax.tools.bench.measuring import Options

STORED = sorted(sections.MEASURED.glob("*.json"))
ENERGIES = [case for case in TRAINING if case.name.startswith("EBM")]


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_stored_file_says_what_it_was_made_with(path):
  figures = sections.read(path)
  made = figures["environment"]
  assert not figures["quick"] and not figures["failures"]
  assert re.fullmatch("[0-9a-f]{12}", made["commit"])  # of files as they were committed
  assert made["packages"]["jax"] and made["device"] and made["cores"] >= 1
  assert figures["rounds"] >= 1
  with_peer = any(
    "pass_per_label" in row["rate"] for row in figures.get("training", ())
  )
  assert re.match("PyTorch [0-9]", figures["peer"] or "") or not with_peer


def test_files_do_not_share_a_table(tmp_path):
  path = next(path for path in STORED if path.stem == "training")
  for name in ("morning", "evening"):
    shutil.copy(path, tmp_path / f"{name}.json")
  (one,) = sections.blocks(tmp_path).values()
  (_, alone) = next(iter(sections.blocks().items()))
  assert one == f"{alone}\n{alone}"


def test_a_damaged_file_is_named(tmp_path):
  (tmp_path / "torn.json").write_text("{")
  with pytest.raises(UserError, match=r"torn\.json does not hold figures of the bench"):
    sections.blocks(tmp_path)


def test_a_python_without_torch_is_found_before_hours_of_work():
  with pytest.raises(UserError, match="false has no PyTorch; --peer must name"):
    peer.describe_python("false")


@pytest.mark.parametrize("case", ENERGIES, ids=lambda case: case.name)
def test_a_step_takes_no_more_than_the_stated_bytes(case, few_images):
  """Neither FLOPs nor bytes have grown since they were stated."""
  rows = [row for path in STORED for row in sections.read(path).get("roofline", ())]
  (row,) = [row for row in rows if row["case"] == case.name]
  found = roofline.measure(case, Options())
  assert found["flops"] <= row["flops"] and found["bytes"] <= row["bytes"]
  jax.clear_caches()
