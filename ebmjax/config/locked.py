"""Groups of keys that refuse a mistyped name and suggest the right one."""

from typing import Any

from ml_collections import ConfigDict

from ebmjax.config.schema import choices_sentence
from ebmjax.errors import ConfigError


class LockedDict(ConfigDict):
  """A ConfigDict that, once locked, lists its keys when it gets an unknown one."""

  def __setitem__(self, key: str, value: Any) -> None:
    if self.is_locked and key not in self:
      raise ConfigError(f"{key!r} is not a key here; {choices_sentence(key, self)}")
    super().__setitem__(key, value)
