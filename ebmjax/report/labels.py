"""A run and its outcome as titles, sentences and numbers."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ebmjax.config.groups import COMPONENTS
from ebmjax.errors import ConfigError
from ebmjax.report.history import evaluated_on
from ebmjax.runtime import tabular

_SETTINGS = {
  "boundary_aware": "one after another, with known boundaries",
  "boundary_free": "one flowing into the next, without boundaries",
  "joint": "all at once",
}
_OBJECTIVES = {"ce": "cross-entropy"}
FEW = 4  # texts that a sentence lists; it counts the others
SPACE, MINUS, DASH = "\N{NO-BREAK SPACE}", "\N{MINUS SIGN}", "\N{EN DASH}"
PERCENT = f"{SPACE}%"
_PLAIN = {ord(a): b for a, b in (("±", "+-"), (MINUS, "-"), (DASH, "-"), (SPACE, " "))}


def title(group: str, name: Any) -> str:
  """Returns the title of a component, such as "iCaRL"; its name if there is none.

  A stored run may name a component of a package that is not installed here.
  """
  try:
    spec = COMPONENTS[group].find(str(name))
  except ConfigError:
    return str(name).replace("_", " ")
  return str(spec.title)


def data(config: Mapping[str, Any]) -> str:
  """Returns the stream and its data, such as "split MNIST"."""
  return f"{config['stream']['name']} {title('data', config['data']['name'])}"


def setting(config: Mapping[str, Any]) -> str:
  """Returns the setting and scenario, such as "boundary-aware, class-incremental"."""
  stream = config["stream"]
  return f"{stream['setting'].replace('_', '-')}, {stream['scenario']}-incremental"


def heading(results: Mapping[str, Any]) -> str:
  """Returns the run and its outcome in one line."""
  config, average = results["config"], results["average_accuracy"]
  network, method = config["network"]["name"], config["method"]["name"]
  name = title("network", network)
  how = "" if method == "finetune" else f" with {title('method', method)}"
  outcome = "no" if average is None else f"{average['mean']:.1f}{PERCENT}"
  run = f"{name[0].upper()}{name[1:]}{how} on {data(config)}"
  return f"{run}: {outcome} average accuracy"


def story(results: Mapping[str, Any]) -> list[str]:
  """Returns sentences about what was run and its outcome."""
  config = results["config"]
  stream, tasks = config["stream"], config["stream"]["tasks"]
  count = "is 1 task" if tasks == 1 else f"are {tasks} tasks"
  network = title("network", config["network"]["name"])
  objective = _OBJECTIVES.get(config["objective"], config["objective"])
  article = "An" if network[0] in "aeiou" else "A"
  what = (
    f"{article} {network} learned {data(config)} by "
    f"{title('method', config['method']['name'])} with the "
    f"{objective.replace('_', ' ')} objective. There {count}, "
    f"{_SETTINGS.get(stream['setting'], stream['setting'])}, "
    f"{stream['scenario']}-incremental."
  )
  return [what, _outcome(results)]


def mean_sem(mean: float, sem: float | None) -> str:
  """Returns "mean ± SEM", or only the mean of a single seed."""
  return decimal(mean) if sem is None else f"{decimal(mean)} ± {sem:.2f}"


def score(summary: Mapping[str, Any] | None) -> str:
  """Returns "mean ± SEM" of a metric's summary, a dash without one."""
  return DASH if summary is None else mean_sem(summary["mean"], summary["sem"])


def counted(summary: Mapping[str, Any] | None) -> str:
  """Returns "mean ± SEM (n=3)", or a dash."""
  return DASH if summary is None else f"{score(summary)} (n={summary['n']})"


def cited(cell: Mapping[str, Any] | None, missing: str = DASH) -> str:
  """Returns the paper's number, or `missing`."""
  return missing if cell is None else mean_sem(cell["accuracy"], cell.get("sem"))


def decimal(value: float, sign: str = "") -> str:
  """Formats a number with two decimals and a typographic minus; NaN is a dash.

  With the sign "+", positive numbers have a sign too.
  """
  return DASH if math.isnan(value) else f"{value:{sign}.2f}".replace("-", MINUS)


def amount(number: float, unit: str) -> str:
  """Formats a number of 0 or more with three digits, such as "1.69 TFLOP".

  >>> [plain(amount(number, "B")) for number in (0, 31_400, 999_600)]
  ['0 B', '31.4 kB', '1 MB']
  """
  thousands = 0
  while number >= 999.5:
    number, thousands = number / 1000, thousands + 1
  return f"{number:.3g}{SPACE}{' kMGTPE'[thousands].strip()}{unit}".rstrip()


def listed(texts: Iterable[str]) -> str:
  """Joins the first `FEW` texts and counts the others."""
  every = tuple(texts)
  text, others = ", ".join(every[:FEW]), len(every) - FEW
  if others <= 0:
    return text
  return f"{text} and {others} other{'s' if others > 1 else ''}"


def shown(value: Any) -> str:
  """Formats a key's value; None becomes a dash, and empty values stay visible."""
  if value is None:
    return DASH
  if isinstance(value, list | tuple):
    return ", ".join(map(str, value)) or "()"
  return str(value) or "''"


def plain(text: str) -> str:
  """Returns the text in ASCII, for any terminal."""
  return text.translate(_PLAIN)


def columns(rows: Iterable[Iterable[str]]) -> list[str]:
  """Returns a line of ASCII for each row, with aligned columns."""
  return tabular.aligned([[plain(cell) for cell in row] for row in rows])


def duration(seconds: float) -> str:
  """Formats a time, such as "6 min 4 s"."""
  if seconds < 60:
    return f"{seconds:.1f} s"
  minutes, rest = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _outcome(results: Mapping[str, Any]) -> str:
  average, cell = results["average_accuracy"], results.get("paper")
  if average is None:
    return "Not every task was evaluated at the end, so there is no average accuracy."
  n = average["n"]
  over = "With one seed" if n == 1 else f"Over {n} seeds"
  text = (
    f"{over} the average {evaluated_on(results['config'])} accuracy at the end is "
    f"{score(average)}{PERCENT}"
  )
  if cell is None:
    return f"{text}. The paper has no figure for this run."
  gap = average["mean"] - cell["accuracy"]
  if abs(gap) < 0.005:
    return f"{text}; the paper reports the same, {cited(cell)}{PERCENT}."
  side = "above" if gap > 0 else "below"
  # Not "for this run": the paper's other settings are not compared.
  return (
    f"{text}, {abs(gap):.2f} points {side} the paper's {cited(cell)}{PERCENT} for this "
    "method and data."
  )
