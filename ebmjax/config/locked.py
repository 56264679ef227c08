"""Groups of keys that refuse a mistyped name in one sentence."""

from typing import Any

from ml_collections import ConfigDict

from ebmjax.config.schema import choices_sentence
from ebmjax.errors import ConfigError


class LockedDict(ConfigDict):
  """A ConfigDict that, once it is locked, says which of its keys was meant."""

  def __setitem__(self, key: str, value: Any) -> None:
    if self.is_locked and key not in self:
      raise ConfigError(f"{key!r} is no key here; {choices_sentence(key, self)}")
    super().__setitem__(key, value)
