"""The launchers, with stand-ins for the clusters' own commands and for pip alone.

The scripts run for real under bash and make, and so does the program they start.
"""

import importlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ebmjax.errors import ConfigError
from ebmjax.runtime import cluster
from ebmjax.tools import processes
from tests.helpers import ROOT, SPLIT, environment, overrides, read_results, write_idx

LAUNCH = ROOT / "launch"
SCRIPTS = sorted([*LAUNCH.glob("*.sh"), *LAUNCH.glob("*.sbatch")])
# Long enough to be interrupted: 12 checkpoints.
LONG = {"stream__iterations": 60, "checkpoint__every": 10, "runner__chunk": 10}

# Each writes its arguments, one a line, to $CALLS/NAME, in front of what it does.
RECORD = '#!/usr/bin/env bash\nprintf "%s\\n" "$@" >>"$CALLS/$(basename "$0")"\n'
STAND_INS = {
  # A single task on this machine, with the variables that JAX's detection reads.
  "srun": """
    while [[ $1 == --* ]]; do shift; done
    export SLURM_STEP_NODELIST=localhost SLURM_STEP_NUM_NODES=1 SLURM_NTASKS=1
    export SLURM_PROCID=0 SLURM_LOCALID=0
    exec "$@"
  """,
  "scontrol": 'exit "${SCONTROL_STATUS:-0}"',
  # A worker is the folder $WORKER.
  "gcloud": """
    cd "$WORKER"
    for argument; do
      case $argument in --command=*) exec bash -c "${argument#--command=}" ;; esac
    done
    cp "$5" "${6#*:}"
  """,
  "xpk": "exit 0",
  # Makes a .venv whose pip does nothing.
  "python3": f"""
    case "$1 $2" in
      "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
      "-m pip") ;;
      *) exec {shlex.quote(sys.executable)} "$@" ;;
    esac
  """,
}


@pytest.fixture
def calls(tmp_path: Path) -> Path:
  folder = tmp_path / "calls"
  folder.mkdir()
  return folder


@pytest.fixture
def variables(calls: Path, tmp_path: Path, cache: Path) -> dict[str, str]:
  """Returns an environment in which the stand-ins come first."""
  commands = tmp_path / "bin"
  commands.mkdir()
  for name, body in STAND_INS.items():
    (commands / name).write_text(RECORD + body)
    (commands / name).chmod(0o755)
  path = os.pathsep.join([str(commands), os.environ["PATH"]])
  # `make test` hands its own settings down, which the make of a script would take.
  others = ("SLURM_", "MAKE", "DRY_RUN", "BASE_IMAGE", "RESTARTS")
  inherited = {
    name: value
    for name, value in environment(cache).items()
    if not name.startswith(others)
  }
  pythons = {"PYTHON": "python3", "EBMJAX_PYTHON": "python3"}
  return inherited | pythons | {"PATH": path, "CALLS": str(calls)}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
  """Returns a copy of what a user has, without a .venv."""
  copy = tmp_path / "a copy"
  ignore = shutil.ignore_patterns("__pycache__")
  for folder in ("ebmjax", "configs", "launch"):
    shutil.copytree(ROOT / folder, copy / folder, ignore=ignore)
  for file in ("Makefile", "pyproject.toml", "README.md"):
    shutil.copy(ROOT / file, copy)
  return copy


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
  return Path(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
  return write_idx(tmp_path_factory.mktemp("data"))


def start(
  script: Path | str, *arguments: str, env: dict[str, str], cwd: Path = ROOT
) -> subprocess.Popen[str]:
  return subprocess.Popen(
    ["bash", str(script), *arguments],
    env=env,
    cwd=cwd,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


def finish(
  script: Path | str, *arguments: str, env: dict[str, str], cwd: Path = ROOT
) -> str:
  """Returns what a script prints; it must end well."""
  process = start(script, *arguments, env=env, cwd=cwd)
  out, err = process.communicate(timeout=300)
  assert process.returncode == 0, err
  return out


def wait_until(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
  limit = time.monotonic() + 300
  while not reached():
    assert process.poll() is None, "the script ended too early"
    assert time.monotonic() < limit
    time.sleep(0.01)


def called(calls: Path, name: str) -> list[str]:
  path = calls / name
  return path.read_text().splitlines() if path.exists() else []


def small_run(data_dir: Path, workdir: Path) -> list[str]:
  """Returns an experiment and its flags, a workdir with a space among them."""
  return [f"{SPLIT}:smoke", *overrides(data_dir, **LONG), f"--workdir={workdir}"]


def test_every_launcher_is_listed():
  listed = (LAUNCH / "README.md").read_text()
  names = {path.name for path in LAUNCH.iterdir() if path.is_file()} - {"README.md"}
  assert [name for name in sorted(names) if f"`{name}" not in listed] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_valid_bash(script: Path):
  subprocess.run(["bash", "-n", str(script)], check=True)
  if script.suffix == ".sh":
    assert os.access(script, os.X_OK)


@pytest.mark.skipif(
  not shutil.which("shellcheck"), reason="shellcheck is not installed"
)
def test_shellcheck_finds_nothing():
  found = subprocess.run(["shellcheck", *SCRIPTS], capture_output=True, text=True)
  assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"])
def test_a_scheduler_s_number_of_processes_is_read(name):
  step = {"SLURM_STEP_NODELIST": "localhost"}
  assert cluster.has_many_tasks(step | {name: "2"})
  assert not any(cluster.has_many_tasks(step | {name: text}) for text in ("1", ""))
  with pytest.raises(ConfigError, match=f"{name}='2x' is not a number .* unset it, or"):
    cluster.has_many_tasks(step | {name: "2x"})


def test_logs_that_cannot_be_written_are_told(tmp_path, monkeypatch, capsys):
  """Before any process is started."""
  (tmp_path / "process-1.log").mkdir()
  monkeypatch.setattr(processes, "_Team", None)
  for folder, why in (("/dev/null/x", "Not a dir"), (tmp_path, "Is a dir")):
    given = ["--platform=cpu", f"--logs={folder}", "--", "--help"]
    assert processes.main([*given]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"launch: {folder} cannot be written ({why}" in line
    assert line.endswith("give another with --logs.")


def test_too_few_gpus_are_told(monkeypatch, capsys):
  monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
  assert processes.main(["--processes=2", "--", "--help"]) == 1
  assert "need 2 GPUs, and there are 1; lower" in capsys.readouterr().err


# ---- what would be run ----

GIVEN = ["configs/splitmnist.py:sbc", "--workdir=my runs/a", "--config.seeds=3"]
MAIN = ["-m", "ebmjax.main", f"--config={GIVEN[0]}", *GIVEN[1:]]
DRY: dict[str, tuple[list[str], list[list[str]]]] = {
  "local.sh": (
    GIVEN,
    [
      ["make", "--silent", f"--directory={ROOT}", ".venv/installed"],
      [f"{ROOT}/.venv/bin/python", *MAIN],
    ],
  ),
  "slurm.sbatch": (GIVEN, [["srun", "--kill-on-bad-exit=1", "python3", *MAIN]]),
  "tpu_vm.sh": (
    ["run", "my-tpu", "us-east5-b", *GIVEN],
    [
      [
        *("gcloud", "compute", "tpus", "tpu-vm", "ssh", "my-tpu"),
        *("--zone=us-east5-b", "--worker=all"),
        "--command=cd ebmjax && .venv/bin/python -m ebmjax.main --distributed=on "
        "--config=configs/splitmnist.py:sbc --workdir=my\\ runs/a --config.seeds=3",
      ]
    ],
  ),
  "gke_xpk.sh": (
    ["my-cluster", "first", "v5litepod-16", *GIVEN],
    [
      [
        *("xpk", "workload", "create", "--cluster=my-cluster", "--workload=first"),
        *("--tpu-type=v5litepod-16", "--base-docker-image=python:3.12"),
        *(f"--script-dir={ROOT}", "--max-restarts=10"),
        '--command=python3 -m pip install --quiet --editable ".[tpu]" && python3 '
        "-m ebmjax.main --config=configs/splitmnist.py:sbc --workdir=my\\ runs/a "
        "--config.seeds=3",
      ]
    ],
  ),
}


@pytest.mark.parametrize("name", [path.name for path in SCRIPTS])
def test_a_dry_run_prints_the_commands_and_runs_none(name, calls, variables):
  arguments, expected = DRY[name]
  out = finish(LAUNCH / name, *arguments, env=variables | {"DRY_RUN": "1"})
  assert [shlex.split(line) for line in out.splitlines()] == expected
  assert list(calls.iterdir()) == []


@pytest.mark.parametrize("name", [path.name for path in SCRIPTS])
def test_without_an_experiment_a_script_says_what_it_needs(name, calls, variables):
  process = start(LAUNCH / name, env=variables)
  _, err = process.communicate()
  assert process.returncode == 2
  assert "FILE[:variants]" in err or "name an experiment" in err
  assert list(calls.iterdir()) == []


# ---- the scripts, run ----


@pytest.fixture(scope="module")
def shown(data_dir, tmp_path_factory) -> list[str]:
  """Returns the arguments of one run: the first test makes it, later ones show it."""
  return small_run(data_dir, tmp_path_factory.mktemp("runs") / "a run")


def batch(calls: Path, variables: dict[str, str]) -> dict[str, str]:
  number = str(os.getpid())  # JAX makes the coordinator's port of it
  submitted = {"SLURM_JOB_ID": number, "SLURM_SUBMIT_DIR": str(ROOT)}
  return variables | submitted | {"SLURM_CPUS_PER_TASK": "2"}


def test_slurm_requeues_and_goes_on(shown, calls, variables, tmp_path):
  """The signal of the time limit asks for a requeue; the next start ends the run."""
  workdir = Path(shown[-1].partition("=")[2])
  script = shutil.copy(LAUNCH / "slurm.sbatch", tmp_path / "slurm_script")
  env = batch(calls, variables)
  process = start(script, *shown, env=env, cwd=tmp_path)
  manifests = (workdir / "checkpoints").glob
  wait_until(process, lambda: any(manifests("*/manifest.json")))
  process.send_signal(signal.SIGUSR1)
  _, err = process.communicate(timeout=60)
  assert process.returncode == 0
  assert "Requeued; the next start continues from the last checkpoint." in err
  assert called(calls, "scontrol") == ["requeue", env["SLURM_JOB_ID"]]
  assert not (workdir / "results.json").exists()
  process = start(script, *shown, env=env, cwd=tmp_path)
  out, err = process.communicate(timeout=300)
  assert process.returncode == 0, err
  assert "Continuing from the checkpoint of step " in err
  assert f"Results, tables and figures: {workdir}" in out
  facts = read_results(workdir)["facts"]
  assert facts["steps"] == 120
  assert "Memory: 0.1 MB of state for 1 seed, " in err
  assert facts["memory_bytes"]["images"] == 800 * (784 + 4)
  assert len(called(calls, "scontrol")) == 2  # no second requeue
  command = ["--kill-on-bad-exit=1", "python3", "-m", "ebmjax.main"]
  command += [f"--config={shown[0]}", *shown[1:]]
  assert called(calls, "srun") == 2 * command


def replace_srun(variables: dict[str, str], body: str) -> None:
  path = Path(variables["PATH"].split(os.pathsep)[0]) / "srun"
  path.write_text(RECORD + body)


def test_slurm_trains_on_where_a_requeue_is_refused(calls, variables):
  replace_srun(variables, 'echo "$SRUN_CPUS_PER_TASK" >"$CALLS/cpus"; sleep 0.5')
  env = batch(calls, variables) | {"SCONTROL_STATUS": "1"}
  process = start(LAUNCH / "slurm.sbatch", "configs/splitmnist.py", env=env)
  wait_until(process, lambda: called(calls, "cpus") == ["2"])
  process.send_signal(signal.SIGUSR1)
  _, err = process.communicate(timeout=60)
  assert "The requeue was refused" in err
  assert process.returncode == 0  # that of the step, which was let run to its end


@pytest.mark.parametrize(
  ("body", "status", "waits"), [("exit 3", 3, False), ("kill -TERM $$", 143, True)]
)
def test_slurm_waits_after_a_termination_alone(body, status, waits, calls, variables):
  replace_srun(variables, body)
  env = batch(calls, variables) | {"EBMJAX_GRACE": "0.01"}
  process = start(LAUNCH / "slurm.sbatch", "configs/splitmnist.py", env=env)
  _, err = process.communicate(timeout=60)
  assert process.returncode == status
  assert ("waiting for SLURM" in err) is waits
  assert called(calls, "scontrol") == []


def test_local_installs_once_and_runs(repository, calls, variables, shown):
  script = repository / "launch" / "local.sh"
  out = finish(script, *shown, env=variables)
  assert "Results, tables and figures: " in out
  arguments = called(calls, "python")
  assert arguments[:3] == ["-m", "pip", "install"]
  assert arguments[6].startswith(".[dev")
  assert arguments[7:10] == ["-m", "ebmjax.main", f"--config={shown[0]}"]
  (calls / "python").unlink()
  out = finish(script, shown[0], "--help", env=variables)
  assert f"Keys of {shown[0]}:" in out
  assert called(calls, "python")[:2] == ["-m", "ebmjax.main"]  # no pip


def test_tpu_vm_installs_and_runs(repository, calls, variables, shown, tmp_path):
  worker = tmp_path / "worker"
  worker.mkdir()
  (repository / "runs").mkdir()
  with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{free.getsockname()[1]}"
  # In place of the VM's metadata, which a single worker's JAX would ask.
  metadata = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "1"}
  env = variables | {"WORKER": str(worker), **metadata, "JAX_PROCESS_ID": "0"}
  script = repository / "launch" / "tpu_vm.sh"
  finish(script, "install", "my-tpu", "us-east5-b", env=env)
  sent = called(calls, "gcloud")[:8]
  assert sent[:4] == ["compute", "tpus", "tpu-vm", "scp"]
  assert sent[5:] == ["my-tpu:ebmjax.tar.gz", "--zone=us-east5-b", "--worker=all"]
  assert not Path(sent[4]).exists()
  assert (worker / "ebmjax" / "ebmjax" / "main.py").is_file()
  assert not (worker / "ebmjax" / "runs").exists()
  assert ".[tpu]" in called(calls, "python")
  out = finish(script, "run", "my-tpu", "us-east5-b", *shown, env=env)
  assert "Results, tables and figures: " in out


def test_xpk_gets_a_command_that_runs(repository, calls, variables):
  script = repository / "launch" / "gke_xpk.sh"
  place = ["my-cluster", "first", "v5litepod-16"]
  finish(
    script, *place, "configs/splitmnist.py", "--workdir=a b", "--help", env=variables
  )
  asked = dict(flag.partition("=")[::2] for flag in called(calls, "xpk"))
  assert asked["--script-dir"] == str(repository)
  given = ["bash", "-c", asked["--command"]]
  out = subprocess.run(given, cwd=repository, env=variables, capture_output=True)
  assert b"Keys of configs/splitmnist.py:" in out.stdout
  arguments = called(calls, "python3")
  assert ".[tpu]" in arguments
  assert "--workdir=a b" in arguments


def test_the_jobset_fits_together():
  yaml: Any = importlib.import_module("yaml")
  jobset = yaml.safe_load((LAUNCH / "gke_jobset.yaml").read_text())
  name, job = jobset["metadata"]["name"], jobset["spec"]["replicatedJobs"][0]
  spec = job["template"]["spec"]
  container = spec["template"]["spec"]["containers"][0]
  values = {variable["name"]: variable.get("value") for variable in container["env"]}
  assert spec["completionMode"] == "Indexed"
  assert spec["parallelism"] == spec["completions"] == int(values["JAX_NUM_PROCESSES"])
  port = container["ports"][0]["containerPort"]
  coordinator = f"{name}-{job['name']}-0-0.{name}:{port}"
  assert values["JAX_COORDINATOR_ADDRESS"] == coordinator
  mounted = container["volumeMounts"][0]["mountPath"]
  assert any(word.startswith(f"--workdir={mounted}/") for word in container["args"])
  command = [sys.executable, *container["command"][1:], *container["args"], "--help"]
  out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
  assert "Keys of configs/splitmnist.py:" in out.stdout
