"""Random keys with random values: resolved, or refused in a sentence."""

import random
from functools import partial
from pathlib import Path
from typing import Any

from ebmjax.config import flat_keys, loading
from ebmjax.config.groups import keys_of
from ebmjax.config.validation import resolve
from tests.faults.tally import Tally
from tests.helpers import ROOT

_ODD = ("", "nan", "inf", "-1", "0", "1", "2", "3.5", "1e30", "True", "()", "auto")
_MORE = ("(0.1,)", "None", "x:y", "os:path", "\x1b[31m", "ebm", "10", "100000000000")


def attack(tally: Tally, _: Path) -> None:
  """Parses and resolves command lines with one to four overrides each."""
  rng = random.Random(random.getrandbits(32))
  files = sorted(str(path) for path in (ROOT / "configs").glob("*.py"))
  for _number in tally.tries():
    argv = _random_arguments(rng, rng.choice(files))
    tally.judge(" ".join(argv), partial(_resolves, argv))


def _random_arguments(rng: random.Random, file: str) -> list[str]:
  variants = list(loading.variants_of(file))
  chosen = rng.sample(variants, min(rng.randrange(3), len(variants)))
  named = f"{file}:{','.join(chosen)}" if chosen else file
  keys = keys_of(flat_keys(loading.load(file)))
  flags = [
    f"--config.{name}={_random_value(rng, keys[name])}"
    for name in rng.sample(sorted(keys), rng.randrange(1, 5))
  ]
  return ["ebmjax", f"--config={named}", *flags]


def _random_value(rng: random.Random, key: Any) -> str:
  usual = [*key.choices, str(key.default)]
  return rng.choice([*_ODD, *_MORE] if rng.random() < 0.3 else usual)


def _resolves(argv: list[str]) -> bool:
  config, _ = loading.parse(argv)
  resolve(config)
  return True
