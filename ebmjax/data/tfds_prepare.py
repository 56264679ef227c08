"""Downloads a set and prepares it for TFDS, or fails fast with a clear error."""

import contextlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ebmjax.data import download
from ebmjax.data.spec import DatasetSpec
from ebmjax.errors import DataError, first_line

_log = logging.getLogger(__name__)


class UnavailableError(DataError):
  """The set cannot be downloaded now, and nothing on disk is damaged."""

  def __init__(self, spec: DatasetSpec, reason: str):
    """Also keeps the problem alone, for sentences with other remedies."""
    self.problem = f"{spec.name} cannot be downloaded from {spec.url} ({reason})"
    super().__init__(f"{self.problem}: go online and run again, or {spec.by_hand}.")


def own_folder(spec: DatasetSpec, data_dir: Path) -> Path:
  """Returns the version folder of our own preparation, in a folder per builder."""
  return data_dir / f"ebmjax_{spec.name}" / "1.0.0"


def prepare(spec: DatasetSpec, folder: Path) -> None:
  """Downloads a set and stores it in `folder`, completely or not at all."""
  _make_way(folder)
  try:
    downloads = folder.parent.parent / "downloads" / folder.parent.name
    files = download.fetch((spec.url, *spec.mirrors), spec.downloads, downloads)
    _log.info("Preparing %s in %s.", spec.name, folder)
    with quiet_tfds() as tfds:
      _prepare(spec, folder, files, tfds)
  except (download.DownloadError, ImportError) as error:
    # On some platforms, a package that TFDS writes with is missing.
    raise UnavailableError(spec, first_line(error)) from None
  except OSError as error:
    # Another process may have finished the same set first.
    if not is_prepared(folder):
      raise DataError(
        f"{spec.name} cannot be prepared in {folder} ({first_line(error)}): set "
        "config.data.dir to a folder that can be written and has 500 MB free."
      ) from None
  if not is_prepared(folder):
    raise DataError(f"TFDS left no complete set in {folder}: delete it and run again.")


def _make_way(folder: Path) -> None:
  """Removes an empty folder; raises if it holds anything but a prepared set.

  TFDS would take any existing folder for a prepared set and do nothing.
  """
  if not folder.exists() or is_prepared(folder):
    return  # another process may have prepared it in the meantime
  try:
    folder.rmdir()
  except OSError:
    raise DataError(
      f"{folder} exists, but is not a complete prepared set: delete it and run again."
    ) from None


@contextlib.contextmanager
def quiet_tfds() -> Iterator[Any]:
  """Yields TFDS with progress bars off and its output on stderr."""
  import tensorflow_datasets as tfds

  tfds.disable_progress_bar()
  try:
    # stdout is only for results.
    with contextlib.redirect_stdout(sys.stderr):
      yield tfds
  finally:
    tfds.enable_progress_bar()


def _prepare(
  spec: DatasetSpec, folder: Path, files: dict[str, Path], tfds: Any
) -> None:
  from ebmjax.data import tfds_builder

  builder = tfds_builder.make_builder(spec, folder, files)
  builder.download_and_prepare(
    download_config=tfds.download.DownloadConfig(try_download_gcs=False)
  )


def is_prepared(folder: Path) -> bool:
  """Returns whether a version folder of TFDS holds a complete set.

  TFDS writes to a folder `incomplete.*` and renames it at the end, so a version folder
  is never partial.
  """
  names = ("dataset_info.json", "features.json")
  return all((folder / name).is_file() for name in names)
