"""A preparation that is killed is never taken for a whole one."""

import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from ebmjax import data
from ebmjax.data import registry, tfds_prepare
from ebmjax.errors import DataError


def prepare_in_child(info: Any, data_dir: Path, pause_after: int, ready: Any) -> None:
  """Prepares a set, and pauses for ever after some examples."""
  from ebmjax.data import tfds_builder

  generate = tfds_builder._Builder._generate_examples

  def pausing(self: Any, split: Any) -> Any:
    for count, example in enumerate(generate(self, split)):
      if count == pause_after:
        ready.set()
        time.sleep(600)
      yield example

  tfds_builder._Builder._generate_examples = pausing  # type: ignore[method-assign]
  registry.DATASETS["mnist"] = info
  tfds_prepare.prepare(info, tfds_prepare.own_folder(info, data_dir))


@pytest.mark.parametrize("moment", ["downloading", "writing"])
def test_killed_preparation(tiny, config, tmp_path: Path, moment):
  context = multiprocessing.get_context("spawn")
  ready = context.Event()
  server = tiny.server
  if moment == "downloading":
    server.stalls_at = "t10k-images-idx3-ubyte.gz"
  arguments = (tiny.info, tmp_path, 40, ready)
  child = context.Process(target=prepare_in_child, args=arguments)
  child.start()
  assert child.pid is not None
  reached = server.stalled if moment == "downloading" else ready
  assert reached.wait(60)
  os.kill(child.pid, signal.SIGKILL)
  child.join(60)
  assert child.exitcode == -signal.SIGKILL
  begun = "downloads/ebmjax_mnist/*.gz", "ebmjax_mnist/*incomplete*"
  assert list(tmp_path.glob(begun[moment == "writing"])), "killed too early"
  server.stalls_at = ""
  server.release.set()

  with pytest.raises(DataError, match="no array_record set"):
    data.load(config("tfds", tmp_path, download=False))
  tiny.assert_holds(data.load(config("tfds", tmp_path)))
