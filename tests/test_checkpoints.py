"""Checkpoints come back bit for bit, or are passed over, but never come back wrong."""

import gc
import hashlib
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ebmjax.errors import CheckpointError
from ebmjax.methods._gradient import GradientState
from ebmjax.runtime import atomic, json_files
from ebmjax.runtime.checkpoints import Checkpoints, leaves
from tests.helpers import assert_same_bits


def make_states(seed: int) -> GradientState:
  """Returns a state of every kind of leaf, with the floats that compare oddly."""
  kernel = jax.random.normal(jax.random.key(seed), (2, 64, 8))
  odd = jnp.array([[jnp.nan, -0.0, jnp.inf, 1e-42], [0.0, 1.0, -jnp.inf, 3.0]])
  moments = ({"mu": kernel * 2, "count": jnp.array([seed, 7], jnp.int32)}, ())
  half = {"half": jnp.array([[seed / 3], [1.0]], jnp.bfloat16)}
  return GradientState({"dense": {"kernel": kernel, "odd": odd}}, half, moments)


@pytest.fixture(scope="module")
def two_steps(tmp_path_factory) -> Path:
  """Returns a folder with the steps 10 and 20; tests work on copies."""
  folder = tmp_path_factory.mktemp("checkpoints") / "kept"
  with Checkpoints(folder, keep=2) as keeper:
    keeper.save(10, make_states(10))
    keeper.save(20, make_states(20))
  return folder


@pytest.fixture
def folder(two_steps: Path, tmp_path: Path) -> Path:
  return Path(shutil.copytree(two_steps, tmp_path / "checkpoints"))


def restore(folder: Path) -> tuple[int, GradientState] | None:
  with Checkpoints(folder, keep=2) as keeper:
    return keeper.restore(make_states(0))


def steps_on_disk(folder: Path) -> list[int]:
  return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())


def flip(path: Path) -> None:
  content = bytearray(path.read_bytes())
  content[len(content) // 2] ^= 0x40
  path.write_bytes(content)


def truncate(path: Path) -> None:
  path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def delete(path: Path) -> None:
  path.unlink()


def files_of(step: Path) -> list[str]:
  return sorted(str(p.relative_to(step)) for p in step.rglob("*") if p.is_file())


def array_data(step: Path) -> Path:
  """Returns the file with the arrays' content: the largest of the data files."""
  return max(step.glob("state/**/d/*"), key=lambda path: path.stat().st_size)


def test_round_trip_is_bitwise(folder):
  restored = restore(folder)
  assert restored is not None
  step, states = restored
  assert step == 20
  assert_same_bits(states, make_states(20))
  assert isinstance(states, GradientState)


def test_without_any_there_is_nothing_to_restore(tmp_path: Path):
  assert restore(tmp_path / "none") is None


@pytest.mark.parametrize("keep", [1, 3])
def test_keeps_the_latest(keep, tmp_path: Path):
  with Checkpoints(tmp_path / "kept", keep=keep) as keeper:
    for step in (5, 10, 15, 20):
      keeper.save(step, {"w": jnp.full((2,), step)})
      assert step in steps_on_disk(tmp_path / "kept")
  assert steps_on_disk(tmp_path / "kept") == [5, 10, 15, 20][-keep:]


def test_leaves_tell_names_types_and_shapes():
  base = {"a": jnp.zeros((2, 3)), "b": jnp.ones(2)}
  others = [
    {"a": jnp.zeros((2, 3)), "c": jnp.ones(2)},
    {"a": jnp.zeros((3, 2)), "b": jnp.ones(2)},
    {"a": jnp.zeros((2, 3), jnp.int32), "b": jnp.ones(2)},
  ]
  assert leaves(base) == leaves(jax.tree.map(np.asarray, base))
  assert len({leaves(tree) for tree in [base, *others]}) == 4


@pytest.mark.parametrize("damage", [flip, truncate, delete])
def test_damaged_arrays_lead_back_to_the_step_before(folder, damage, caplog):
  damage(array_data(folder / "20"))
  with caplog.at_level(logging.WARNING, "ebmjax"):
    restored = restore(folder)
  assert restored is not None
  assert restored[0] == 10
  assert_same_bits(restored[1], make_states(10))
  (record,) = [r for r in caplog.records if r.name == "ebmjax"]
  assert record.levelno == logging.WARNING
  assert record.getMessage().startswith("The checkpoint of step 20 is damaged (")


@pytest.mark.parametrize("damage", [flip, truncate, delete])
def test_no_damaged_file_brings_back_wrong_bits(
  two_steps, damage: Callable[[Path], None], tmp_path: Path
):
  """Any file of the newest step, one at a time: its states or those before, whole."""
  names = files_of(two_steps / "20")
  assert len(names) > 5
  for number, name in enumerate(names):
    copy = Path(shutil.copytree(two_steps, tmp_path / str(number)))
    damage(copy / "20" / name)
    restored = restore(copy)
    assert restored is not None, name
    assert restored[0] in (10, 20), name
    assert_same_bits(restored[1], make_states(restored[0]))


def test_damaged_metadata_of_all(folder, caplog):
  """Orbax would read it when it opens the folder, before any step is asked for."""
  for step in ("10", "20"):
    flip(folder / step / "_CHECKPOINT_METADATA")
  with pytest.raises(CheckpointError, match="all checkpoints"):
    restore(folder)
  assert {"10", "20"} <= set(re.findall(r"step (\d+) is damaged", caplog.text))


def test_lost_state_folder(folder):
  shutil.rmtree(folder / "20" / "state")
  restored = restore(folder)
  assert restored is not None
  assert restored[0] == 10


def test_all_damaged(folder):
  for step in ("10", "20"):
    flip(array_data(folder / step))
  with pytest.raises(CheckpointError, match=r"^all checkpoints in .* are damaged; "):
    restore(folder)


def test_other_structure_is_not_taken_for_a_checkpoint(folder):
  """A changed network: nothing of another shape is handed over."""
  like = make_states(0)._replace(params={"dense": {"kernel": jnp.zeros((2, 64, 9))}})
  with (
    Checkpoints(folder, keep=2) as keeper,
    pytest.raises(CheckpointError, match=r"step 20 .* holds other arrays"),
  ):
    keeper.restore(like)


@pytest.mark.parametrize("damage", [flip, truncate, delete])
def test_a_damaged_step_is_written_anew(folder, damage):
  damage(array_data(folder / "20"))
  with Checkpoints(folder, keep=2) as keeper:
    restored = keeper.restore(make_states(0))
    assert restored is not None
    assert restored[0] == 10
    keeper.save(20, make_states(20))
    keeper.save(30, make_states(30))
  assert steps_on_disk(folder) == [20, 30]
  shutil.rmtree(folder / "30")
  restored = restore(folder)
  assert restored is not None
  assert restored[0] == 20
  assert_same_bits(restored[1], make_states(20))


def test_a_killed_save_is_ignored(folder):
  """Orbax renames a finished folder; what a kill leaves behind has another name."""
  shutil.copytree(folder / "20", folder / "30.orbax-checkpoint-tmp")
  shutil.copytree(folder / "20", folder / "30.orbax-checkpoint-tmp-17")
  restored = restore(folder)
  assert restored is not None
  assert restored[0] == 20
  with Checkpoints(folder, keep=2) as keeper:
    keeper.save(30, make_states(30))
  restored = restore(folder)
  assert restored is not None
  assert restored[0] == 30


def test_a_save_killed_before_its_manifest_is_ignored(folder, caplog):
  """Orbax has renamed the folder, the manifest is not written yet."""
  (folder / "20" / "manifest.json").unlink()
  restored = restore(folder)
  assert restored is not None
  assert restored[0] == 10
  assert "step 20 was not finished; it is dropped" in caplog.text
  with Checkpoints(folder, keep=2) as keeper:
    keeper.save(20, make_states(20))
  restored = restore(folder)
  assert restored is not None
  assert_same_bits(restored[1], make_states(20))


def test_the_first_save_killed_before_its_manifest_is_none(folder):
  (folder / "10" / "manifest.json").unlink()
  shutil.rmtree(folder / "20")
  assert restore(folder) is None


def test_lost_manifests_are_damage(folder):
  """No kill takes two of them, so nothing is started anew in silence."""
  for step in ("10", "20"):
    (folder / step / "manifest.json").unlink()
  with pytest.raises(CheckpointError, match="are damaged"):
    restore(folder)
  assert (folder / "10.damaged").is_dir()


def test_a_manifest_without_its_parts_is_damage(folder, caplog):
  (folder / "20" / "manifest.json").write_text('{"files": {}}')
  restored = restore(folder)
  assert restored is not None
  assert restored[0] == 10
  assert "manifest.json is not the manifest" in caplog.text


def test_a_file_in_the_folder_s_place_is_told(tmp_path: Path):
  (tmp_path / "checkpoints").touch()
  with pytest.raises(
    CheckpointError, match="is not a folder of checkpoints; remove it"
  ):
    restore(tmp_path / "checkpoints")


def test_a_disk_that_refuses_is_told(folder, monkeypatch):
  def full(*_: object) -> None:
    raise OSError(28, "No space left on device")

  with Checkpoints(folder, keep=2) as keeper:
    monkeypatch.setattr(atomic, "write", full)
    with pytest.raises(CheckpointError, match=r"step 30 was not written .* the disk"):
      keeper.save(30, make_states(30))


@pytest.mark.parametrize(
  "content",
  [
    {"files": 3, "leaves": "a"},
    {"files": {"a": 1}, "leaves": "a"},
    {"files": {}, "leaves": 1},
    {"files": {}, "leaves": "a", "spent": {"wall_time": "long", "seconds": {}}},
    {"files": {}, "leaves": "a", "spent": [1]},
  ],
  ids=str,
)
def test_a_manifest_of_odd_types_is_damage(folder, content):
  json_files.write(folder / "20" / "manifest.json", content)
  restored = restore(folder)
  assert restored is not None and restored[0] == 10


# The coroutines that orbax leaves behind end with this test, not in a later one.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_files_that_fit_their_manifest_and_are_no_checkpoint(folder):
  """As somebody may hand one on: orbax raises many kinds of errors on them."""
  path = folder / "20" / "manifest.json"
  manifest = json_files.read(path, {}, "")
  data = array_data(folder / "20")
  data.write_bytes(b"other")
  name = str(data.relative_to(folder / "20"))
  manifest["files"][name] = hashlib.blake2b(b"other").hexdigest()[:32]
  json_files.write(path, manifest)
  with pytest.raises(CheckpointError, match="is not a readable checkpoint"):
    restore(folder)
  gc.collect()


@pytest.mark.parametrize("name", ["a[1]", "back\\slash", "*?", "caf\udce9", "\x1b[31m"])
def test_any_name_of_a_folder_comes_back(tmp_path, name):
  folder = tmp_path / name / "checkpoints"
  with Checkpoints(folder, keep=2) as keeper:
    keeper.save(10, make_states(10))
  restored = restore(folder)
  assert restored is not None
  assert_same_bits(restored[1], make_states(10))
