"""What is said of runs that are missing, partial or unusual."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from ebmjax.errors import UserError
from ebmjax.paper.figures.departures import departures_told
from ebmjax.paper.figures.pooling import choose, seeds_told
from ebmjax.paper.figures.spec import FigureSpec, Finished, Role, Runs


def runs_of(
  name: str,
  spec: FigureSpec,
  root: Path,
  finished: Sequence[Finished],
  allow_partial: bool = False,
  scores: Sequence[Finished] = (),
) -> Runs:
  """Returns the runs of a figure among those `finished` under `root`.

  UserError with the commands that make the missing ones. A figure that can do without
  some of them needs one; one of final accuracies is content with `scores`, too.
  """
  if spec.shown == "final":
    finished = [*finished, *scores]
  runs = choose(finished, spec.roles, shown=spec.shown, allow_partial=allow_partial)
  absent = [role for role in spec.roles if not runs[role.name]]
  if not absent or (spec.some and any(runs.values())):
    return runs
  asked = absent[:1] if spec.some else absent
  needed = f"{'one of its' if spec.some else 'finished'} runs"
  told = " and ".join(role.says for role in asked)
  commands = " and ".join(command(role, root) for role in asked)
  partial = _partial_ones(spec, absent, finished, allow_partial)
  raise UserError(
    f"{name} needs {needed}, and {root} holds none of {told}{partial}; make "
    f"{'it' if len(asked) == 1 else 'them'} with {commands}"
  )


def command(role: Role, root: Path) -> str:
  """Returns the command that makes a run of `role` under `root`."""
  return f"{role.make} --workdir={shlex.quote(str(root / role.folder))}"


def caption(spec: FigureSpec, runs: Runs) -> str:
  """Returns the figure's caption with what must be known of the runs drawn."""
  notes = [spec.caption, seeds_told(runs)]
  for role in spec.roles:
    notes += departures_told(role, runs[role.name])
  partial = {
    run.results["facts"]["data_source"]
    for found in runs.values()
    for run in found
    if run.partial
  }
  if partial:
    notes.append(f"On part of the data: {'; '.join(sorted(partial))}.")
  absent = [text for role in spec.roles if (text := _left_out(role, runs))]
  if absent:
    notes.append(f"No run is stored of {'; '.join(absent)}.")
  return " ".join(notes)


def folders_told(runs: Runs) -> str:
  """Returns the names of the folders of runs."""
  names = {path.name for found in runs.values() for run in found for path in run.paths}
  return ", ".join(sorted(names))


def _left_out(role: Role, runs: Runs) -> str:
  """Returns the role or those of its values that no run plays, or nothing."""
  found = {run.value for run in runs[role.name]}
  if not found:
    return role.name
  lacking = [str(value) for value in role.values if value not in found]
  return f"{role.name} with {role.apart} {', '.join(lacking)}" if lacking else ""


def _partial_ones(
  spec: FigureSpec,
  absent: list[Role],
  finished: Sequence[Finished],
  allow_partial: bool,
) -> str:
  """Returns a clause that names runs which only part of the data keeps out."""
  if allow_partial:
    return ""
  runs = choose(finished, absent, shown=spec.shown, allow_partial=True)
  names = [path.name for found in runs.values() for run in found for path in run.paths]
  if not names:
    return ""
  return f" ({', '.join(names)}: part of the data alone, used with --allow_partial)"
