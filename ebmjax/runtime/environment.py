"""What a run is made with: versions, device, commit, the cache of programs."""

import logging
import os
import platform
import subprocess
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

from ebmjax.errors import ConfigError

_log = logging.getLogger("ebmjax")
_USUAL = {"jax_enable_x64": False, "jax_numpy_dtype_promotion": "standard"}
_PACKAGES = ("ebmjax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")


def use_compilation_cache() -> None:
  """Keeps compiled programs between processes, where JAX has not been given a place.

  JAX_COMPILATION_CACHE_DIR moves them, JAX_ENABLE_COMPILATION_CACHE=false forgets them.
  """
  if not jax.config.values["jax_compilation_cache_dir"]:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    jax.config.update("jax_compilation_cache_dir", str(Path(home) / "ebmjax" / "xla"))
  least = "jax_persistent_cache_min_compile_time_secs"
  if least.upper() not in os.environ:  # JAX has read it
    jax.config.update(least, 0.2)


@contextmanager
def doubt_cache() -> Iterator[None]:
  """Adds to an error within JAX that exchanged programs of the cache may be its cause.

  JAX runs what a file of the cache holds, whatever it was compiled from.
  """
  try:
    yield
  except Exception as error:
    frames = traceback.extract_tb(error.__traceback__)
    place = jax.config.values["jax_compilation_cache_dir"]
    if f"{os.sep}jax{os.sep}" in frames[-1].filename and place:
      error.add_note(
        f"If files of compiled programs in {place} were copied or exchanged, delete "
        "that folder and run again."
      )
    raise


def require_usual() -> None:
  """Refuses settings of JAX that no learner can have; warns of one that is slow."""
  for name, usual in _USUAL.items():
    if (found := getattr(jax.config, name)) != usual:
      raise ConfigError(
        f"{name.upper()} is {found}, and ebmjax computes with {usual}; unset it."
      )
  if jax.config.jax_disable_jit:  # type: ignore[attr-defined]
    _log.warning("JAX_DISABLE_JIT is set: no step is compiled; unset it for speed.")


def describe() -> dict[str, Any]:
  """Returns versions, device and commit, for the results of a run."""
  device = jax.devices()[0]
  return {
    "python": platform.python_version(),
    "packages": {name: _version(name) for name in _PACKAGES},
    "device": device.device_kind,
    "backend": device.platform,
    "devices": jax.device_count(),
    "processes": jax.process_count(),
    "commit": commit(),
  }


def commit() -> str | None:
  """Returns the commit the package stands at, marked where files differ from it."""
  here = Path(__file__).parent
  try:
    found = subprocess.run(
      ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
      cwd=here,
      capture_output=True,
      text=True,
      timeout=10,
      check=True,
    )
  except (OSError, subprocess.SubprocessError):
    return None  # installed without its repository, or no git
  return found.stdout.strip()


def commits(first: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
  """Returns the commits of all starts without repeats, from the facts of two of them.

  `first`, of an earlier version, may know none but its own.
  """
  found = first.get("commits") or [(first.get("environment") or {}).get("commit")]
  found = [*found, (now.get("environment") or {}).get("commit")]
  return list(dict.fromkeys(each for each in found if each))


def _version(name: str) -> str | None:
  try:
    return metadata.version(name)
  except metadata.PackageNotFoundError:
    return None
