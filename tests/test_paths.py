"""Paths as users write them: at home, or on no disk of this machine."""

from pathlib import Path

import pytest

import ebmjax
from ebmjax import EnergyClassifier, __main__, report
from ebmjax.errors import ConfigError
from ebmjax.paths import expand

CONFIG = "--config=configs/splitmnist.py:smoke"
FLAGS = [
  ["run", CONFIG, "--workdir=gs://bucket/x"],
  ["sweep", CONFIG, "--grid", "config.seed=1,2", "--out=gs://bucket/x"],
  ["capacity", "--out=gs://bucket/x"],
  ["reproduce", "--table=all", "--runs=gs://bucket/x"],
  ["figures", "--runs=gs://bucket/x"],
  ["report", "gs://bucket/x"],
  ["predict", "gs://bucket/x", "x.npz"],
  ["export", "gs://bucket/x", "m.npz"],
]


def test_a_path_may_begin_at_home(monkeypatch, tmp_path):
  monkeypatch.setenv("HOME", str(tmp_path))
  assert expand("~/x") == tmp_path / "x"
  for name in ("y/~", "gs:1/x", "a:b", "[1]/x\\", "caf\udce9", "/x//y"):
    assert expand(name) == Path(name)
  with pytest.raises(ConfigError, match="is in the home of an unknown user; give"):
    expand("~no.such.user/x")


def test_a_name_that_no_disk_takes_is_told(capsys):
  for arguments in (["report", "x" * 300], ["predict", "x" * 300, "y"]):
    assert __main__.main(arguments) == 1
    assert "xx cannot be looked up (File name too long); " in capsys.readouterr().err
  long = " ".join(f"config.method.strength={value}" for value in range(30))
  assert __main__.main(["sweep", CONFIG, "--list", long]) == 1
  assert "config.method.strength" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", FLAGS, ids=lambda given: given[0])
def test_no_verb_writes_to_a_bucket(arguments, monkeypatch, tmp_path, capsys):
  monkeypatch.chdir(tmp_path)
  assert __main__.main(arguments) == 1
  told = capsys.readouterr().err
  assert "gs://bucket/x is no folder of this machine; mount the bucket, by gcs" in told
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("read", [ebmjax.load, report.read, EnergyClassifier.load])
@pytest.mark.parametrize("given", [Path("s3://bucket/run"), "s3://bucket/run"])
def test_no_function_reads_a_bucket(read, given):
  with pytest.raises(ConfigError, match=r"^s3://bucket/run is no folder .* mount the"):
    read(given)
