"""The keys of a configuration, with type, range, default and a line of help.

A component's keyword-only parameters are its keys, so that each is defined only once:

>>> from typing import Annotated, Literal
>>> from ebmjax.config.schema import NonNegative, keys_of
>>> def method(problem, *,
...            strength: Annotated[NonNegative, "weight of the penalty"] = 1.0,
...            form: Annotated[Literal["sum", "mean"], "over classes"] = "sum"): ...
>>> keys = keys_of(method)
>>> keys["form"].default, keys["form"].choices, keys["strength"].help
('sum', ('sum', 'mean'), 'weight of the penalty')
>>> keys["strength"].fault(-1.0)
'is too small; give 0.0 or more.'
"""

import difflib
import functools
import inspect
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, NamedTuple


class Range(NamedTuple):
  """The numbers that a key allows; `above` and `below` exclude the bound itself."""

  least: float | None = None
  most: float | None = None
  above: float | None = None
  below: float | None = None


class Free(NamedTuple):
  """Marks a key that changes neither the training nor its final scores."""


class Traced(NamedTuple):
  """Marks a number that may differ between runs of one compiled program.

  A component may compute with such a parameter, but must not branch on it.
  """


# Whether a configuration breaks a rule, and the sentence that says so.
Rule = tuple[bool, str]


def no_rules(config: Any) -> list[Rule]:
  """Returns the rules of a component that any configuration may use."""
  del config
  return []


class Key(NamedTuple):
  """One key of a group."""

  name: str
  default: Any
  help: str = ""
  choices: tuple[str, ...] = ()
  range: Range = Range()
  free: bool = False  # changes no result
  traced: bool = False  # settings that differ only in it share a program
  open_choices: bool = False  # an import path is also a valid choice

  def fault(self, value: Any) -> str | None:
    """Describes what is wrong with `value`; None if it is valid."""
    if self.choices and value not in self.choices:
      if self.open_choices and ":" in str(value):
        return None
      return f"is unknown; {choices_sentence(value, self.choices)}"
    return _range_fault(self.range, value)


def _range_fault(allowed: Range, value: Any) -> str | None:
  least, most, above, below = allowed
  # These comparisons are False for NaN, so NaN is refused.
  if least is not None and not value >= least:
    return f"is too small; give {least} or more."
  if most is not None and not value <= most:
    return f"is too large; give {most} or less."
  low, high = above is None or value > above, below is None or value < below
  if low and high:
    return None
  if above is not None and below is not None:
    return f"is out of range; give a number between {above:g} and {below:g}."
  bound = f"more than {above:g}" if above is not None else f"less than {below:g}"
  return f"is out of range; give {bound}."


# Types of parameters that components share.
Count = Annotated[int, Range(least=1)]
Number = Annotated[int, Range(least=0)]  # 0 usually means all, or never
NonNegative = Annotated[float, Range(least=0.0)]
Positive = Annotated[float, Range(above=0.0, below=1e9)]
Fraction = Annotated[float, Range(least=0.0, most=1.0)]
Share = Annotated[float, Range(least=0.0, below=1.0)]  # less than the whole
Rate = Annotated[float, Range(above=0.0, below=10.0)]


@functools.cache
def keys_of(make: Callable[..., Any]) -> dict[str, Key]:
  """Lists the keys of a component: the keyword-only parameters of its factory."""
  hints = typing.get_type_hints(make, include_extras=True)
  parameters = inspect.signature(make).parameters.values()
  return {
    p.name: _key(p.name, hints[p.name], p.default)
    for p in parameters
    if p.kind is inspect.Parameter.KEYWORD_ONLY
  }


def _key(name: str, hint: Any, default: Any) -> Key:
  if default is inspect.Parameter.empty:
    raise TypeError(f"the keyword {name!r} of a component needs a default")
  notes = hint.__metadata__ if typing.get_origin(hint) is Annotated else ()
  bare = typing.get_args(hint)[0] if notes else hint
  choices = typing.get_args(bare) if typing.get_origin(bare) is Literal else ()
  texts = [note for note in notes if isinstance(note, str)]
  return Key(
    name,
    default,
    help=texts[-1] if texts else "",
    choices=choices,
    range=next((note for note in notes if isinstance(note, Range)), Range()),
    free=any(isinstance(note, Free) for note in notes),
    traced=any(isinstance(note, Traced) for note in notes),
  )


def nearest(name: str, names: Iterable[str]) -> str | None:
  """Finds the most similar name, compared by the last part of dotted names.

  Names of the same group come first.
  """
  group, _, last = name.rpartition(".")
  every = list(names)
  for among in ([n for n in every if n.rpartition(".")[0] == group], every):
    tails = {n: n.rpartition(".")[2] for n in among}
    close = difflib.get_close_matches(last, tails.values(), 1, cutoff=0.6)
    if close:
      alike = [full for full, tail in tails.items() if tail == close[0]]
      return difflib.get_close_matches(name, alike, 1, cutoff=0.0)[0]
  return None


def choices_sentence(value: Any, choices: Iterable[str]) -> str:
  """Lists the valid choices in a sentence, and suggests the nearest one."""
  choices = list(choices)
  hint = nearest(str(value), choices)
  start = f"did you mean {hint!r}? The" if hint else "the"
  return f"{start} choices are {', '.join(choices)}."
