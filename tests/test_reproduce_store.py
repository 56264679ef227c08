"""The stored results: what is collected, what is refused, and what it says."""

import json
from pathlib import Path

from ebmjax.config.identity import differences, identity
from ebmjax.paper import commands, store
from ebmjax.paper.cells import every_cell
from tests.entries import CELLS, EBM, changed, entry, row_of


def test_the_stored_results_are_of_full_data_and_name_their_cells():
  entries = store.read()
  owners = store.owners_of(every_cell())
  assert len(entries) > 30
  for found in entries:
    assert found.data_full
    assert len(found.seeds) == len(found.accuracies)
    cell = owners.get(identity(found.run))
    assert found.cell == (cell.id if cell else None)
    if cell:
      assert commands.identity_of(found.command) == identity(found.run)
  text = store.MEASURED.read_text()
  assert all(place not in text for place in ("/work", "/tmp", "/home", "/root"))


def test_versions_of_results_part_runs_and_none_is_1():
  chosen = CELLS[EBM].command
  first = entry(chosen, {0: 50.0})
  older = {k: v for k, v in first.config.items() if not k.startswith("version.")}
  plain = first._replace(config=older)
  second = first._replace(config=first.config | {"version.method": 2})
  assert identity(plain.run) == identity(first.run)
  assert row_of(EBM, first).measured
  assert not row_of(EBM, second).measured
  (found,) = differences(second.run, plain.run)
  assert found == ("version.method", 2, 1)


def results(
  chosen: str,
  accuracies: dict[int, float],
  full: bool = True,
  validation: int = 0,
  finished: str = "2026-01-01T00:00:00Z",
) -> str:
  """Returns a results.json as a run of an older commit leaves it."""
  config = commands.load(chosen).to_dict()
  del config["data"]["augment"], config["version"]
  if validation:
    config["data"]["validation"] = validation
  return json.dumps(
    {
      "average_accuracy": {},
      "class_names": [],
      "per_seed": list(accuracies.values()),
      "seeds": list(accuracies),
      "config": config,
      "facts": {
        **{"data_source": "mnist", "data_full": full, "data_digest": "abc"},
        "command": f"python -m ebmjax.main --config=/x/{chosen} --config.seeds=2",
        "finished": finished,
      },
    }
  )


def test_collecting_is_idempotent_replaces_and_refuses(tmp_path: Path, caplog):
  stored = tmp_path / "measured.json"
  root = tmp_path / "runs"
  contents = {
    "b/one": results("configs/splitmnist.py", {0: 50.0, 1: 51.0}),
    "a": results("configs/splitmnist.py:joint", {0: 90.0}),
    "partial": results("configs/splitmnist.py:sbc", {0: 20.0}, full=False),
    "tuned": results("configs/splitmnist.py:si,sbc", {0: 20.0}, validation=500),
    "damaged": "{",
    "foreign": "{}",
  }
  for name, content in contents.items():
    (root / name).mkdir(parents=True)
    (root / name / "results.json").write_text(content)
  kept = store.collect(root, every_cell(), stored)
  assert [(found.cell, found.command) for found in kept] == [
    (EBM, "configs/splitmnist.py"),
    (None, "configs/splitmnist.py:joint"),
  ]
  assert store.read(stored) == kept
  told = [record.getMessage() for record in caplog.records]
  refused = [line for line in told if line.startswith("Refused")]
  assert len(refused) == 2
  assert "not the full data set: configs/splitmnist.py:sbc" in refused[0]
  assert "held out: configs/splitmnist.py:si,sbc" in refused[1]
  assert sum("is left out" in line for line in told) == 2
  assert not any("remove" in line for line in told)  # what may be anybody's
  before = stored.read_bytes()
  store.collect(root, every_cell(), stored)
  assert stored.read_bytes() == before
  for day, expected in (("2025-06-01", [50.0, 51.0]), ("2026-02-01", [40.0, 41.0])):
    # By the recorded time: this file is the newest in either case.
    at = f"{day}T00:00:00Z"
    again = results("configs/splitmnist.py", {0: 40.0, 1: 41.0}, finished=at)
    (root / "b/one/results.json").write_text(again)
    kept = store.collect(root, every_cell(), stored)
    assert [found.accuracies for found in kept] == [expected, [90.0]]
  assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [
    "measured.json"
  ]


def test_a_copied_run_is_as_old_as_its_start(tmp_path: Path):
  """One that recorded no end: the copy's files are new, their names are not."""
  config = json.loads(results("configs/splitmnist.py", {0: 50.0}))
  del config["facts"]["finished"]
  (tmp_path / "results.json").write_text(json.dumps(config))
  (found,) = store.find(tmp_path)
  assert found.finished == ""
  (tmp_path / "tensorboard").mkdir()
  (tmp_path / "tensorboard" / "events.out.tfevents.1700000000.host.000").touch()
  (found,) = store.find(tmp_path)
  assert found.finished == "2023-11-14T22:13:20Z"


def test_an_entry_whose_cell_has_changed_keeps_a_command_that_makes_it(tmp_path: Path):
  path = tmp_path / "measured.json"
  config = changed("configs/splitmnist.py", stream__iterations=7)
  old = entry("configs/splitmnist.py", {0: 1.0}, config=config, cell=EBM)
  store._write(path, [old], store.owners_of(every_cell()))
  (found,) = store.read(path)
  assert found.cell is None
  assert found.command == "configs/splitmnist.py --config.stream.iterations=7"
