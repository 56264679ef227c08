"""Prepares a set for TFDS by download, and fails fast and clearly where it cannot."""

import contextlib
import logging
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ebmjax.data.spec import DatasetSpec
from ebmjax.errors import DataError

PROBE_SECONDS = 3.0
_MAX_RETRIES = 2  # TFDS' own 10 take 205 s to fail where connections are refused
_log = logging.getLogger(__name__)


class UnavailableError(DataError):
  """A set that cannot be downloaded here and now, though nothing on disk is damaged."""

  def __init__(self, spec: DatasetSpec, reason: str):
    """Keeps the problem apart from its remedy, for sentences with other remedies."""
    self.problem = f"{spec.name} cannot be downloaded from {spec.url} ({reason})"
    super().__init__(f"{self.problem}: go online and run again, or {spec.by_hand}.")


def own_folder(spec: DatasetSpec, data_dir: Path) -> Path:
  """Returns the version folder of our own preparation; its parent names the builder."""
  return data_dir / f"ebmjax_{spec.name}" / "1.0.0"


def prepare(spec: DatasetSpec, folder: Path) -> None:
  """Downloads a set and stores it in `folder`, a whole set or none, or raises."""
  _make_way(folder)
  problem = probe(spec)
  if problem:
    raise UnavailableError(spec, problem)
  _log.info("Downloading %s and preparing it in %s", spec.name, folder)
  with quiet_tfds() as tfds:
    _download_and_prepare(spec, folder, tfds)


def probe(spec: DatasetSpec) -> str:
  """Returns why the server of a set cannot be reached, or "" where it can be.

  A thread bounds the time, because looking up a host name obeys no time-out.
  """
  found = [f"no answer within {PROBE_SECONDS:g} seconds"]

  def ask() -> None:
    found[0] = _ask(spec.url + next(iter(spec.downloads)))

  thread = threading.Thread(target=ask, daemon=True)
  thread.start()
  thread.join(PROBE_SECONDS)
  return found[0]


def _ask(url: str) -> str:
  """Returns why a server does not answer a request for the head of a file, or ""."""
  request = urllib.request.Request(url, method="HEAD")
  try:
    with urllib.request.urlopen(request, timeout=PROBE_SECONDS):
      return ""
  except urllib.error.HTTPError as error:
    error.close()
    return ""  # It answers; whether the files can be had, the download finds out.
  except Exception as error:  # whatever it is, the server cannot be used
    return str(getattr(error, "reason", error))


def _make_way(folder: Path) -> None:
  """Removes an empty folder; raises where something that is not a set is in the way.

  TFDS takes any existing folder for a prepared set and returns silently.
  """
  if not folder.exists() or is_prepared(folder):
    return  # prepared: by another process, since we looked
  try:
    folder.rmdir()
  except OSError:
    raise DataError(
      f"{folder} exists, but is not a whole prepared set: delete it and run again."
    ) from None


@contextlib.contextmanager
def quiet_tfds() -> Iterator[Any]:
  """Yields TFDS without progress bars and long retries, and with nothing on stdout."""
  import tensorflow_datasets as tfds
  from tensorflow_datasets.core.download import downloader

  retries = downloader.MAX_RETRIES
  downloader.MAX_RETRIES = _MAX_RETRIES
  tfds.disable_progress_bar()
  try:
    # What TFDS prints is no result of ours, and stdout is for results.
    with contextlib.redirect_stdout(sys.stderr):
      yield tfds
  finally:
    tfds.enable_progress_bar()
    downloader.MAX_RETRIES = retries


def _download_and_prepare(spec: DatasetSpec, folder: Path, tfds: Any) -> None:
  """Runs the builder, and tells each of its failures in a sentence."""
  import requests
  from tensorflow_datasets.core.download import download_manager, util

  from ebmjax.data import tfds_builder

  config = tfds.download.DownloadConfig(
    force_checksums_validation=True, try_download_gcs=False
  )
  try:
    builder = tfds_builder.make_builder(spec, folder)
    builder.download_and_prepare(download_config=config)
  except download_manager.NonMatchingChecksumError:
    problem = "a downloaded file does not match its official checksum"
    raise UnavailableError(spec, problem) from None
  except (util.DownloadError, requests.RequestException) as error:
    raise UnavailableError(spec, _first_line(error)) from None
  except ImportError as error:  # of what TFDS writes with, on some platforms
    raise UnavailableError(spec, _first_line(error)) from None
  except OSError as error:
    # Another process may have finished the same set first, and that is as good.
    if not is_prepared(folder):
      raise DataError(
        f"{spec.name} cannot be prepared in {folder} ({_first_line(error)}): set "
        "config.data.dir to a folder that can be written and has 500 MB free."
      ) from None
  if not is_prepared(folder):
    raise DataError(f"TFDS left no whole set in {folder}: delete it and run again.")


def is_prepared(folder: Path) -> bool:
  """Returns whether a version folder of TFDS holds a set that was finished.

  TFDS writes into a folder `incomplete.*` and renames it last, so a killed preparation
  never gets here.
  """
  names = ("dataset_info.json", "features.json")
  return all((folder / name).is_file() for name in names)


def _first_line(error: Exception) -> str:
  """Returns the first line of an error's text, without the dot at its end."""
  return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
