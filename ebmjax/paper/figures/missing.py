"""Messages and captions about runs that are missing, partial or unusual."""

import shlex
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from ebmjax.config import loading
from ebmjax.errors import UserError
from ebmjax.paper.figures.pooling import choose
from ebmjax.paper.figures.spec import FigureSpec, Role, Run, Runs
from ebmjax.paper.store import Entry
from ebmjax.report.labels import listed


def runs_of(
  name: str,
  spec: FigureSpec,
  root: Path,
  entries: Sequence[Entry],
  allow_partial: bool = False,
) -> Runs:
  """Returns the runs of a figure among `entries`: those under `root`, and stored ones.

  If runs are missing, raises a UserError with the commands that make them. A figure
  that allows missing runs needs one. Stored entries serve only figures of final
  accuracies.
  """
  if spec.needs != "final":
    entries = [entry for entry in entries if entry.folder]
  runs = choose(entries, spec, allow_partial)
  absent = [role for role in spec.roles if not runs[role.name]]
  if not absent or (spec.allow_missing and any(runs.values())):
    return runs
  asked = absent[:1] if spec.allow_missing else absent
  needed = f"{'one of its' if spec.allow_missing else 'finished'} runs"
  names = " and ".join(role.description for role in asked)
  lines = " and ".join(command(role, root) for role in asked)
  only = spec._replace(roles=tuple(absent))
  partial = "" if allow_partial else _partial_ones(only, entries)
  raise UserError(
    f"{name} needs {needed}, and {root} holds none of {names}{partial}; make "
    f"{'it' if len(asked) == 1 else 'them'} with {lines}"
  )


def command(role: Role, root: Path) -> str:
  """Returns the command that makes a run of `role` under `root`."""
  file = role.file(next(iter(role.values), None))
  make = role.make or f"python -m ebmjax.main --config={file}"
  folder = role.folder or Path(loading.default_workdir(file)).name
  return f"{make} --workdir={shlex.quote(str(root / folder))}"


def caption(spec: FigureSpec, runs: Runs) -> str:
  """Returns the figure's caption with notes on the runs drawn."""
  notes = [spec.caption, _seeds(runs)]
  for role in spec.roles:
    notes += _unusual(role, runs[role.name])
  partial = {run.source for found in runs.values() for run in found if run.partial}
  if partial:
    notes.append(f"On part of the data: {'; '.join(sorted(partial))}.")
  absent = [text for role in spec.roles if (text := _left_out(role, runs))]
  if absent:
    notes.append(f"No run is stored of {'; '.join(absent)}.")
  return " ".join(notes)


def folders(runs: Runs) -> str:
  """Returns the names of the folders of runs."""
  names = {path.name for found in runs.values() for run in found for path in run.paths}
  return ", ".join(sorted(names))


def _seeds(runs: Runs) -> str:
  """Returns a sentence about the numbers of seeds."""
  counts = {
    name: sorted({len(run.history.seeds) for run in found})
    for name, found in runs.items()
    if found
  }
  numbers = {number for several in counts.values() for number in several}
  if numbers == {1}:
    return "One seed."
  if len(numbers) == 1:
    return f"{numbers.pop()} seeds."
  spans = (
    f"{name}: {' to '.join(str(n) for n in dict.fromkeys((few[0], few[-1])))}"
    for name, few in counts.items()
  )
  return f"Seeds: {'; '.join(spans)}."


def _unusual(role: Role, runs: Sequence[Run]) -> list[str]:
  """Returns a sentence for each way in which a role's runs differ from its command."""
  groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
  for run in runs:
    groups[run.differences].append(str(run.value))
  sentences = []
  for changed, values in groups.items():
    # Where the runs of a role differ, each is named by its value.
    whose = f" at {role.split_by} {', '.join(values)}" if len(groups) > 1 else ""
    if changed:
      sentences.append(f"{role.name}{whose} with {listed(changed)}.")
  return sentences


def _left_out(role: Role, runs: Runs) -> str:
  """Names the role, or those of its values, without a run; empty if all have one."""
  found = {run.value for run in runs[role.name]}
  if not found:
    return role.name
  lacking = [str(value) for value in role.values if value not in found]
  return f"{role.name} with {role.split_by} {', '.join(lacking)}" if lacking else ""


def _partial_ones(spec: FigureSpec, entries: Sequence[Entry]) -> str:
  """Returns a clause that names the runs left out only for their part of the data."""
  runs = choose(entries, spec, allow_partial=True)
  names = [path.name for found in runs.values() for run in found for path in run.paths]
  if not names:
    return ""
  return f" ({', '.join(names)}: part of the data alone, used with --allow_partial)"
