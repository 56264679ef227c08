"""Imports go one way: each layer may import those above it in `LAYERS`, and its own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ebmjax

ROOT = Path(ebmjax.__file__).parent
# From left to right, as the package's data flow. A module belongs to the layer of the
# longest name that it is, or lies under.
LAYERS = (
  ("errors", "paths", "types", "prediction", "losses", "negatives", "metrics"),
  ("runtime.console", "runtime.locks"),  # a download has what a run has
  # What the components state their keys with, and the configuration's public functions.
  ("config.schema", "config.components", "config.__init__"),
  ("objectives",),
  ("data",),
  ("streams",),
  ("networks",),
  ("methods",),
  ("config",),  # the rest of it spans the components
  ("runtime",),
  ("report",),
  ("models",),
  ("tools.bench",),  # its figures stand beside the paper's
  ("paper",),
  ("experiment",),
  ("main",),
  ("tools", "tools.bench.probe", "testing"),
  ("__main__", "bench", "reproduce", "report.__main__"),  # names of commands
)
# Imports to the right that are made on demand, with their reasons.
ON_DEMAND = {
  ("config.__init__", "config.groups"): "the defaults of a run are its components'",
}


def module_name(path: Path) -> str:
  return ".".join(path.relative_to(ROOT).with_suffix("").parts)


MODULES = {module_name(path): path for path in ROOT.rglob("*.py")}


def layer(module: str) -> int:
  """Returns the place of a module in `LAYERS`."""
  found = {
    len(name): place
    for place, names in enumerate(LAYERS)
    for name in names
    if f"{module}.".startswith(f"{name}.")
  }
  return found[max(found)]


def imports(path: Path) -> Iterator[tuple[str, bool]]:
  """Yields the modules that a file imports, and whether it does so with its own."""
  tree = ast.parse(path.read_text("utf-8"))
  at_once = set(map(id, tree.body))
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f"{path} has a relative import"
      names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
      continue
    for name in names:
      if name.startswith("ebmjax."):
        yield resolve(name.removeprefix("ebmjax.")), id(node) in at_once


def resolve(name: str) -> str:
  """Returns the module that `name`, or what it is taken from, stands for."""
  if name in MODULES:
    return name
  package = f"{name}.__init__"
  return package if package in MODULES else resolve(name.rpartition(".")[0])


def to_the_right(module: str) -> list[tuple[str, bool]]:
  return [
    (other, at_once)
    for other, at_once in imports(MODULES[module])
    if layer(other) > layer(module)
  ]


OWN = sorted(name for name in MODULES if name != "__init__")


@pytest.mark.parametrize("module", OWN)
def test_a_module_imports_nothing_to_its_right(module):
  wrong = [
    other
    for other, at_once in to_the_right(module)
    if at_once or (module, other) not in ON_DEMAND
  ]
  assert wrong == [], f"ebmjax.{module} imports what lies to its right"


def test_every_exception_is_in_use():
  used = {(module, other) for module in OWN for other, _ in to_the_right(module)}
  assert used == set(ON_DEMAND)
