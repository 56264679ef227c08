"""Runs an experiment: python -m ebmjax.main --config=FILE[:variants] [flags]

  --config=FILE        the experiment, e.g. configs/permmnist.py, and after a colon its
                       variants, e.g. configs/splitmnist.py:boundary_free,sbc
  --config.KEY=VALUE   changes one key, e.g. --config.seeds=10
  --workdir=DIR        the run's folder (default: runs/NAME-VARIANTS); the same command
                       resumes an interrupted run and shows a finished one
  --distributed=auto   whether the run has several processes: auto (if the environment
                       says so), on (JAX detects them) or off
  --help               shows this text and all keys; with --config=FILE, also the
                       description of that experiment

The run writes report.html (a page to look at), results.json, accuracy_matrix.csv,
plots/, scalars.jsonl and tensorboard/. `ebmjax report DIR DIR` compares runs.
"""

import os
import sys

from ebmjax.errors import ConfigError, UserError
from ebmjax.runtime import distributed
from ebmjax.runtime.console import show_messages
from ebmjax.runtime.terminal import ignore_broken_pipe, leave_on_interrupt

_INTERRUPTED = "interrupted; the same command continues from the last checkpoint."


def main(arguments: list[str]) -> int:
  """Runs the experiment that the command line names and returns the exit code."""
  show_messages()
  argv = ["ebmjax", *arguments]  # as absl reads it
  try:
    with leave_on_interrupt(f"ebmjax: {_INTERRUPTED}"):
      # Later imports: a mistyped key should not wait for JAX.
      from ebmjax.config import loading

      if {"--help", "-help", "-h"} & set(argv):
        print(loading.help_text(__doc__ or "", argv))
        return 0
      distributed.start(loading.distributed(argv))
      config, workdir = loading.parse(argv)
      require_device()
      from ebmjax import experiment, report

    results = experiment.run(config, workdir, command=loading.command(argv))
  except UserError as error:
    return distributed.fail(f"ebmjax: {error}", error.exit_code)
  except KeyboardInterrupt:
    return distributed.fail(f"ebmjax: {_INTERRUPTED}", 130)
  except Exception as error:
    if not distributed.is_multiprocess():
      raise
    return distributed.fail(distributed.describe_fault(error), 1)
  distributed.end()
  if distributed.is_primary():
    print(report.closing_table(results))
    print(f"Results, tables and figures: {workdir}")
  return 0


def require_device() -> None:
  """Refuses platforms in JAX_PLATFORMS on which JAX cannot start."""
  import jax

  try:
    jax.devices()
  except (RuntimeError, AssertionError) as error:  # the latter: CUDA without a driver
    asked = os.environ.get("JAX_PLATFORMS", "")
    raise ConfigError(
      f"JAX finds no device with JAX_PLATFORMS={asked!r}; unset it, or set it to cpu."
    ) from error


def cli() -> None:
  """Runs `python -m ebmjax.main`."""
  sys.exit(ignore_broken_pipe(lambda: main(sys.argv[1:])))


if __name__ == "__main__":
  cli()
