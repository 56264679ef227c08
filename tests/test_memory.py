"""What a run says of its memory, against its arrays and the compiled program."""

import logging
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.errors import JaxRuntimeError

from ebmjax import experiment
from ebmjax.errors import UserError
from ebmjax.runtime import memory, scan, train
from ebmjax.runtime.trainer import RunSpec
from tests import programs
from tests.helpers import SPLIT, make_config, write_idx

SMALL = {"stream__batch_size": 16, "eval__batch_size": 20, "network__hidden": 8}
# A layer of 8 units, the labels' vectors and the output.
PARAMETERS = 784 * 8 + 8 + 10 * 8 + 8 + 1


@pytest.fixture(scope="module")
def spec() -> RunSpec:
  return programs.spec_of("splitmnist.py:smoke", "map", seeds=3, **SMALL)


def test_the_count_is_that_of_the_arrays(spec):
  found = memory.count(spec)
  # Adam keeps two numbers a parameter, and counts its steps.
  assert found.state == 3 * (3 * 4 * PARAMETERS + 4)
  assert found.copies == 4 * (3 * 4 * PARAMETERS + 4)
  assert found.images == 2 * 40 * (784 + 4)
  chunk = next(scan.chunks(spec.stream, 0, 20, 20))
  assert found.chunk == sum(array.nbytes for array in chunk)
  arrays = [np.asarray(table) for table in spec.tables[1:]]
  assert found.tables == sum(array.nbytes for array in arrays) + 3 * 2 * 4  # keys
  assert memory.describe(spec) == {"memory_bytes": found._asdict()}


def test_a_block_is_no_longer_than_a_task(spec):
  sizes = SMALL | {"eval__batch_size": 10**12}
  wide = programs.spec_of("splitmnist.py:smoke", "map", seeds=3, **sizes)
  assert wide.tables.test_rows.shape == spec.tables.test_rows.shape


def test_a_compiled_step_takes_what_was_counted(spec):
  """All of it but what no step of this experiment reads."""
  found = memory.count(spec)
  tables, stream = spec.tables, spec.stream
  rows = (tables.permutation, tables.train_rows, tables.test_rows)
  unread = memory.num_bytes((rows, spec.test_images, stream.horizon[:, :20]))
  compiled = programs.trace(spec, only_train=True)["train"].lower().compile()
  analysis = compiled.memory_analysis()
  assert analysis.argument_size_in_bytes == sum(found) - found.copies - unread
  assert analysis.alias_size_in_bytes == found.state  # moved on in place
  assert found.copies < analysis.temp_size_in_bytes < 1.5 * found.copies


@pytest.mark.parametrize(
  ("driver", "seeds", "states"), [("map", 2, 3), ("map", 1, 0), ("vmap", 2, 0)]
)
def test_states_are_copied_for_turns_alone(spec, driver, seeds, states):
  tables = jax.tree.map(lambda table: table[:seeds], spec.tables)
  fewer = spec._replace(driver=driver, seeds=spec.seeds[:seeds], tables=tables)
  assert memory.count(fewer).copies == states * (3 * 4 * PARAMETERS + 4)


def test_a_method_that_keeps_more_counts_more(spec):
  ewc = programs.spec_of("splitmnist.py:ewc,smoke", "map", seeds=3, **SMALL)
  more = memory.count(ewc).state - memory.count(spec).state
  assert more == 3 * 2 * 4 * PARAMETERS  # old weights and their importance


def device(**stats: int) -> Any:
  return SimpleNamespace(memory_stats=lambda: stats or None, device_kind="Small GPU")


def messages(caplog, spec: RunSpec, **stats: int) -> list[tuple[int, str]]:
  caplog.clear()
  with caplog.at_level(logging.INFO, logger="ebmjax"):
    memory.announce(spec, device(**stats))
  return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_it_is_said_in_a_line(caplog, spec):
  [(level, line)] = messages(caplog, spec)
  state = 3 * (3 * 4 * PARAMETERS + 4) / 1e6
  assert level == logging.INFO
  assert line.startswith(
    f"Memory: {state:.1f} MB of state for 3 seeds, 0.3 MB to copy it, 0.1 MB of images"
  )
  assert line.endswith("what a step computes with is not included.")


def test_a_device_that_is_too_small_is_told_of(caplog, spec):
  total = sum(memory.count(spec))
  assert len(messages(caplog, spec, bytes_limit=total)) == 1
  _, (level, line) = messages(caplog, spec, bytes_limit=total - 1)
  assert level == logging.WARNING
  assert line == "That is more than the 0.6 MB of the Small GPU; lower config.seeds."


@pytest.mark.parametrize(
  ("error", "told"),
  [
    (
      JaxRuntimeError("INTERNAL: x: Out of memory allocating 9 bytes.\nat y"),
      "9 bytes",
    ),
    (JaxRuntimeError("RESOURCE_EXHAUSTED: Failed to allocate 2.0GiB."), "2.0GiB"),
    (MemoryError(), "on the host"),
    (MemoryError("Unable to allocate 9 GiB"), "allocate 9 GiB"),
  ],
)
def test_a_shortage_is_told_in_a_sentence(error, told, tmp_path, monkeypatch):
  def short(*_: object) -> None:
    raise error

  monkeypatch.setattr(train.Trainer, "evaluate", short)
  config = make_config(f"{SPLIT}:smoke,sbc", write_idx(tmp_path / "data"))
  with pytest.raises(UserError, match=r"\); lower config\.seeds, .*\.$") as caught:
    experiment.run(config, tmp_path / "run")
  assert str(caught.value).startswith("there is not enough memory for this run (")
  assert f"{told});" in str(caught.value)


def test_other_failures_of_jax_are_not_taken_for_a_shortage():
  with pytest.raises(JaxRuntimeError), memory.explain_oom():
    raise JaxRuntimeError("INTERNAL: something else")


def test_sizes_in_words():
  assert memory.in_words(35_240_000) == "35.2 MB"
  assert memory.in_words(1_500_000_000) == "1.5 GB"


def test_keys_have_a_size():
  assert memory.num_bytes(jax.random.split(jax.random.key(0), 5)) == 5 * 8
  assert memory.num_bytes((jnp.zeros((2, 3)), np.zeros(4, np.uint8))) == 24 + 4
