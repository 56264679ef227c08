"""Several finished runs side by side: a row each, and differences from the first."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ebmjax.config.identity import differences
from ebmjax.errors import printable
from ebmjax.report import labels, paper_comparison, scores, significance
from ebmjax.report.stored import StoredRun
from ebmjax.runtime.workdir import WEIGHTS

# Keys that decide which images are scored; the keys that comparable runs share.
_SCORED_DATA = ("data.name", "data.memorise", "data.validation")
_SHARED = ("data.", "stream.")
OTHER_DATA = "other data: no test"
NOT_RANKED = (
  "The runs were not all scored on the same data, so none is called the highest and "
  "those on other data than the first have no p-value."
)


class Comparison(NamedTuple):
  """Runs side by side."""

  runs: Sequence[StoredRun]
  rows: list[dict[str, Any]]  # what CSV and JSON hold about each
  differing: dict[str, list[Any]]  # {key: its value in each run} where any differs
  same_data: bool  # whether all were scored on the same data, as far as is known


def compare(runs: Sequence[StoredRun]) -> Comparison:
  """Returns a row for each run; all but the first have a difference from that one."""
  differing = _differing(runs)
  rows = [
    _row(name, run, {key: values[i] for key, values in differing.items()})
    for i, (name, run) in enumerate(zip(names(runs), runs, strict=True))
  ]
  for row, run in zip(rows[1:], runs[1:], strict=True):
    row["difference"] = _difference(run, runs[0])
  found = (row["difference"] for row in rows[1:])
  tested = [difference for difference in found if difference["p"] is not None]
  corrected = significance.holm([difference["p"] for difference in tested])
  for difference, p in zip(tested, corrected, strict=True):
    difference["p_holm"] = p
  return Comparison(runs, rows, differing, _same_data(runs, differing))


def _row(name: str, run: StoredRun, differing: Mapping[str, Any]) -> dict[str, Any]:
  results, config = run.results, run.results["config"]
  return {
    "name": name,
    "method": config["method"]["name"],
    "network": config["network"]["name"],
    "objective": config["objective"],
    "data": labels.data(config),
    "setting": labels.setting(config),
    "tasks": config["stream"]["tasks"],
    "seeds": results["seeds"],
    "n": len(results["seeds"]),
    "metrics": {spec.name: found for spec, found in scores.rows(results)},
    "budget": results.get("budget"),
    "paper": paper_comparison.figure(results),
    "departures": paper_comparison.remarks(results),
    "data_full": results["facts"].get("data_full"),
    "differing": dict(differing),
    "difference": None,
  }


def _difference(run: StoredRun, first: StoredRun) -> dict[str, Any]:
  """Returns the difference from the first run; on other data without a p-value."""
  own, other = (
    dict(zip(each.results["seeds"], each.results["per_seed"], strict=True))
    for each in (run, first)
  )
  found = significance.compare(own, other)
  both = (run, first)
  if not _same_data(both, _differing(both)):
    found = found._replace(low=None, high=None, p=None, test=OTHER_DATA)
  return found._asdict() | {"p_holm": None}


def _same_data(runs: Sequence[StoredRun], differing: Collection[str]) -> bool:
  """Returns whether runs with these differing keys were scored on the same data."""
  apart = set(_SCORED_DATA).intersection(differing)
  return not apart and not _disagree(runs, "data_digest")


def notes(found: Comparison) -> list[str]:
  """Returns a sentence for each reason why the runs are not comparable."""
  reasons = [
    f"the runs differ in {key} ({', '.join(dict.fromkeys(map(labels.shown, values)))})"
    for key, values in found.differing.items()
    # A key that a run lacks follows from a choice, which is listed itself.
    if key.startswith(_SHARED) and None not in values
  ]
  if _disagree(found.runs, "data_digest"):
    reasons.append("the images of the runs are not the same")
  if _disagree(found.runs, WEIGHTS):
    reasons.append("the runs start from different pre-trained weights")
  sentences = [f"Not directly comparable: {reason}." for reason in reasons]
  if not found.same_data:
    sentences.append(NOT_RANKED)
  part = ", ".join(row["name"] for row in found.rows if row["data_full"] is False)
  if part:
    sentences.append(f"Not the full data set: {part}; not comparable with the paper's.")
  return sentences


def story(found: Comparison) -> str:
  """Says which run has the highest accuracy, or why none is named."""
  if not found.same_data:
    return "The runs were scored on different data; their accuracies are not ranked."
  best = max(found.rows, key=lambda row: row["metrics"][scores.HEADLINE]["mean"])
  score = labels.score(best["metrics"][scores.HEADLINE]) + labels.PERCENT
  return f"The highest average accuracy is that of {best['name']}: {score}."


def names(runs: Sequence[StoredRun]) -> list[str]:
  """Returns a name for each run: its folder's, with the parent's if that repeats."""
  paths = [run.path.resolve() for run in runs]
  same = Counter(path.name for path in set(paths))
  chosen = [
    f"{path.parent.name}/{path.name}" if same[path.name] > 1 else path.name
    for path in paths
  ]
  chosen = printable(chosen)
  return [
    f"{name} ({chosen[: i + 1].count(name)})" if chosen.count(name) > 1 else name
    for i, name in enumerate(chosen)
  ]


def _disagree(runs: Sequence[StoredRun], fact: str) -> bool:
  """Returns whether the runs that recorded a fact disagree on it."""
  return len({run.results["facts"].get(fact) for run in runs} - {None}) > 1


def _differing(runs: Sequence[StoredRun]) -> dict[str, list[Any]]:
  """Returns {key: its value in each run} for the keys in which any run differs.

  Keys that every run has come first; a run without a key has None.
  """
  configs = [run.results["config"] for run in runs]
  found = [{d.key: d for d in differences(configs[0], other)} for other in configs]
  keys = sorted({key for run in found for key in run})
  usual = {key: run[key].first for run in found for key in run}
  values = {
    key: [run[key].second if key in run else usual[key] for run in found]
    for key in keys
  }
  return dict(sorted(values.items(), key=lambda item: None in item[1]))
