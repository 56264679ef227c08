"""Runs one of the package's commands: ebmjax VERB [flags], or python -m ebmjax."""

import importlib
import sys

from ebmjax.errors import UsageError
from ebmjax.runtime.terminal import ignore_broken_pipe, run_cli

# Each verb: the module whose main(arguments) runs it, imported when it is asked for.
VERBS = {
  "run": ("ebmjax.main", "train and evaluate a configuration"),
  "report": ("ebmjax.tools.report", "rewrite the page of a run, or compare runs"),
  "figures": ("ebmjax.paper.figures.__main__", "draw the paper's figures from runs"),
  "reproduce": (
    "ebmjax.paper.reproduce",
    "list the paper's tables, run what is missing",
  ),
  "sweep": ("ebmjax.tools.sweep.__main__", "search hyperparameters"),
  "capacity": ("ebmjax.tools.capacity", "run the capacity study and draw its curves"),
  "launch": ("ebmjax.tools.processes", "run several processes on this machine"),
  "bench": ("ebmjax.tools.bench.command", "measure speed"),
  "predict": ("ebmjax.tools.predict", "label new inputs with a finished run"),
  "export": (
    "ebmjax.tools.export",
    "write a finished run to one file that needs only JAX",
  ),
}


def main(arguments: list[str]) -> int:
  """Runs the verb that `arguments` begin with and returns the exit code.

  Without a verb, flags are those of `run`.
  """
  verb, *rest = arguments or ["--help"]
  if verb in VERBS:
    code: int = importlib.import_module(VERBS[verb][0]).main(rest)
    return code
  if not rest and verb in ("--help", "-help", "-h"):
    print(usage())
    return 0
  if verb.startswith("-"):
    return main(["run", *arguments])
  return run_cli("ebmjax", lambda: _refuse(verb))


def usage() -> str:
  """Returns the list of verbs."""
  verbs = [f"  {verb:<12}{text}" for verb, (_, text) in VERBS.items()]
  return "\n".join(
    [
      "usage: ebmjax VERB [flags]",
      "",
      *verbs,
      "",
      "`ebmjax VERB --help` lists the flags of a verb. Without a verb, `run` is meant:",
      "  ebmjax --config=configs/permmnist.py --config.seeds=3 --workdir=runs/ebm",
    ]
  )


def _refuse(verb: str) -> int:
  from ebmjax.config.schema import nearest

  near = nearest(verb, VERBS)
  hint = f"did you mean {near!r}? See" if near else "see"
  raise UsageError(f"there is no verb {verb!r}; {hint} ebmjax --help.")


def cli() -> None:
  """Runs the `ebmjax` command; it finds components in the current folder."""
  sys.path.append("")  # as `python -m ebmjax` does
  sys.exit(ignore_broken_pipe(lambda: main(sys.argv[1:])))


if __name__ == "__main__":
  cli()
