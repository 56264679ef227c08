"""What a run was and what came of it, in words."""

from collections.abc import Mapping
from typing import Any

from ebmjax.report.history import evaluated_on

NETWORKS = {"ebm": "energy-based model", "sbc": "softmax-based classifier"}
METHODS = {
  "finetune": "plain training",
  "ewc": "elastic weight consolidation",
  "online_ewc": "online elastic weight consolidation",
  "si": "synaptic intelligence",
  "mas": "memory aware synapses",
  "lwf": "learning without forgetting",
  "bgd": "Bayesian gradient descent",
  "er": "experience replay",
  "gss_greedy": "GSS-Greedy",
  "icarl": "iCaRL",
  "ctn": "contextual transformation networks",
  "dgr": "deep generative replay",
  "bir": "brain-inspired replay",
  "pgma": "parameter generation and model adaptation",
}
DATA = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
OBJECTIVES = {"ce": "cross-entropy", "joint_pairs": "joint-pairs"}
SETTINGS = {
  "boundary_aware": "one after another, with known boundaries",
  "boundary_free": "one flowing into the next, without boundaries",
  "joint": "all at once",
}
SPACE, MINUS, DASH = "\N{NO-BREAK SPACE}", "\N{MINUS SIGN}", "\N{EN DASH}"
PERCENT = f"{SPACE}%"


def network(config: Mapping[str, Any]) -> str:
  """Returns the kind of network, such as "energy-based model"."""
  return _word(NETWORKS, config["network"]["name"])


def method(config: Mapping[str, Any]) -> str:
  """Returns the method, such as "plain training"."""
  return _word(METHODS, config["method"]["name"])


def data(config: Mapping[str, Any]) -> str:
  """Returns the data as tasks, such as "split MNIST"."""
  return f"{config['stream']['name']} {_word(DATA, config['data']['name'])}"


def setting(config: Mapping[str, Any]) -> str:
  """Returns setting and scenario, such as "boundary-aware, class-incremental"."""
  stream = config["stream"]
  return f"{stream['setting'].replace('_', '-')}, {stream['scenario']}-incremental"


def title(results: Mapping[str, Any]) -> str:
  """Returns the run and its outcome in a line."""
  config, average = results["config"], results["average_accuracy"]
  name = network(config)
  how = "" if config["method"]["name"] == "finetune" else f" with {method(config)}"
  outcome = "no" if average is None else f"{average['mean']:.1f}{PERCENT}"
  run = f"{name[0].upper()}{name[1:]}{how} on {data(config)}"
  return f"{run}: {outcome} average accuracy"


def story(results: Mapping[str, Any]) -> list[str]:
  """Returns sentences that tell what was run and what came out."""
  config = results["config"]
  stream, tasks = config["stream"], config["stream"]["tasks"]
  count = "is 1 task" if tasks == 1 else f"are {tasks} tasks"
  what = (
    f"{_article(network(config))} learned {data(config)} by {method(config)} with the "
    f"{_word(OBJECTIVES, config['objective'])} objective. There {count}, "
    f"{_word(SETTINGS, stream['setting'])}, {stream['scenario']}-incremental."
  )
  return [what, _outcome(results)]


def score(summary: Mapping[str, Any] | None, undefined: str = "not defined") -> str:
  """Returns "mean ± SEM", the mean alone of a single seed, or `undefined`."""
  if summary is None:
    return undefined
  if summary["sem"] is None:
    return decimal(summary["mean"])
  return f"{decimal(summary['mean'])} ± {summary['sem']:.2f}"


def cited(cell: Mapping[str, Any] | None, missing: str = DASH) -> str:
  """Returns the paper's figure, or `missing`."""
  if cell is None:
    return missing
  sem = "" if cell["sem"] is None else f" ± {cell['sem']:.2f}"
  return f"{cell['accuracy']:.2f}{sem}"


def decimal(value: float) -> str:
  """Returns a number with two decimals and a minus sign as wide as a digit."""
  return f"{value:.2f}".replace("-", MINUS)


def duration(seconds: float) -> str:
  """Returns a time such as "6 min 4 s"."""
  if seconds < 60:
    return f"{seconds:.1f} s"
  minutes, rest = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _outcome(results: Mapping[str, Any]) -> str:
  average, cell = results["average_accuracy"], results["paper"]
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


def _article(noun: str) -> str:
  return f"{'An' if noun[0] in 'aeiou' else 'A'} {noun}"


def _word(words: Mapping[str, str], name: Any) -> str:
  return words.get(str(name), str(name).replace("_", " "))
