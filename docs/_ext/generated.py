"""Tables that the library itself fills: the directive `generated NAME`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ebmjax import data, methods, networks
from ebmjax.__main__ import VERBS
from ebmjax.config.groups import keys_of
from ebmjax.config.schema import Key
from ebmjax.methods import optimisers
from ebmjax.report import METRICS
from ebmjax.runtime import tabular
from ebmjax.streams.spec import SETTINGS, STREAMS, stream_keys


def verbs() -> str:
  """Returns the verbs of the command."""
  return tabular.markdown(
    ("verb", "what it does"), [(f"`{verb}`", text) for verb, (_, text) in VERBS.items()]
  )


def metrics() -> str:
  """Returns the metrics of a run."""
  rows = [(m.title, f"`{m.name}`", m.unit, m.definition) for m in METRICS]
  return tabular.markdown(("metric", "in results.json", "unit", "definition"), rows)


def keys_of_run() -> str:
  """Returns the keys that every configuration has, beside those of the stream."""
  groups = ("", "data", "eval", "checkpoint", "runner")
  default = keys_of({"data.name": "own"})
  found = {n: key for n, key in default.items() if n.rpartition(".")[0] in groups}
  return _keys({n: k for n, k in found.items() if n not in _of(data.DATASETS, "data")})


def keys_of_stream() -> str:
  """Returns the keys of config.stream, of every kind and setting."""
  found: dict[str, Key] = {}
  for name in STREAMS:
    for setting in SETTINGS:
      found |= stream_keys(name, setting)
  return _keys({f"stream.{name}": key for name, key in found.items()})


def keys_of_methods() -> str:
  """Returns each method's own keys."""
  return _components("method", methods.METHODS)


def keys_of_networks() -> str:
  """Returns each network's own keys."""
  return _components("network", networks.NETWORKS)


def keys_of_data() -> str:
  """Returns the own keys of the data sets that have some."""
  return _components("data", data.DATASETS)


def keys_of_optimisers() -> str:
  """Returns each optimiser's keys."""
  return _components("optimiser", optimisers.OPTIMISERS)


TABLES: dict[str, Callable[[], str]] = {
  table.__name__: table
  for table in (
    *(verbs, metrics, keys_of_run, keys_of_stream, keys_of_data),
    *(keys_of_networks, keys_of_methods, keys_of_optimisers),
  )
}


def _of(registry: Mapping[str, Any], group: str) -> set[str]:
  return {f"{group}.{name}" for spec in registry.values() for name in spec.keys}


def _keys(keys: Mapping[str, Key]) -> str:
  rows = [(f"`config.{name}`", *_described(key)) for name, key in keys.items()]
  return tabular.markdown(("key", "default", "meaning"), rows)


def _components(group: str, registry: Mapping[str, Any]) -> str:
  """Returns a table of all components' keys; one that has none is left out."""
  rows = [
    (f"`{name}`" if place == 0 else "", f"`{key.name}`", *_described(key))
    for name, spec in registry.items()
    for place, key in enumerate(spec.keys.values())
  ]
  header = (f"`config.{group}.name`", "key", "default", "meaning")
  return tabular.markdown(header, rows)


def _described(key: Key) -> tuple[str, str]:
  choices = f": {_listed(key.choices)}" if key.choices else ""
  return f"`{key.default!r}`", f"{key.help}{choices}"


def _listed(names: Iterable[str]) -> str:
  return ", ".join(f"`{name}`" for name in names)


class Generated(SphinxDirective):
  """Puts a table of `TABLES` in its place."""

  required_arguments = 1

  def run(self) -> list[nodes.Node]:
    """Returns the table, as if it stood in the page."""
    return self.parse_text_to_nodes(TABLES[self.arguments[0]]())


def setup(app: Sphinx) -> dict[str, Any]:
  """Makes the directive known."""
  app.add_directive("generated", Generated)
  return {"parallel_read_safe": True, "parallel_write_safe": True}
