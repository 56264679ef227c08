"""A finished run reads back as what its report was made from."""

import numpy as np
import pytest

from ebmjax import experiment, report
from ebmjax.errors import WorkdirError
from ebmjax.report import plots, stored
from ebmjax.report.history import matrices
from tests.helpers import SPLIT, make_config, write_idx


def test_a_finished_run_reads_back(tmp_path, monkeypatch):
  monkeypatch.setattr(plots, "draw", lambda history, scalars: {})
  data = write_idx(tmp_path / "data")
  config = make_config(f"{SPLIT}:smoke", data, seeds=2)
  results = experiment.run(config, tmp_path / "runs" / "one")
  assert stored.find(tmp_path) == [tmp_path / "runs" / "one"]
  run = report.read(tmp_path / "runs" / "one")
  assert run.results == results
  accuracy = 100 * matrices(run.history)[0]
  given = np.array(results["accuracy_matrix"], float)
  np.testing.assert_allclose(accuracy, given, atol=1e-4)
  assert {line["seed"] for line in run.scalars} == {0, 1}


def test_a_folder_without_a_finished_run_is_refused(tmp_path):
  with pytest.raises(WorkdirError, match=r"no finished run \(no results.json\)"):
    report.read(tmp_path)
