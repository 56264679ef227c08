"""Downloads official files: bounded in time and size, resumed, verified.

A thread talks to the server and hands over the data. The caller waits for it with
time-outs, so neither a server nor a DNS look-up can block a run or its Ctrl-C.
"""

import contextlib
import hashlib
import logging
import os
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from ebmjax.data.spec import Download
from ebmjax.errors import WorkdirError
from ebmjax.runtime import locks
from ebmjax.runtime.console import shows_bars

CONNECT_SECONDS = 5.0  # until a server begins to answer
STALL_SECONDS = 20.0  # in which `_STEP` bytes must arrive
TRIES = 3  # for each address that answers
PAUSE_SECONDS = 1.0  # between two tries
_STEP = 1 << 16  # bytes
_log = logging.getLogger(__name__)


class DownloadError(Exception):
  """No address delivered a file; the message is part of a sentence."""


class _FailedTry(Exception):
  """A try that failed; `final` if retrying the same address is pointless."""

  def __init__(self, reason: str, final: bool = False) -> None:
    super().__init__(reason)
    self.final = final


class _Part(NamedTuple):
  """A partial download."""

  path: Path
  official: Download
  bar: tqdm
  before: int  # bytes of earlier files, which the bar also counts

  def have(self) -> int:
    return self.path.stat().st_size if self.path.exists() else 0

  def show(self, have: int) -> None:
    self.bar.update(self.before + have - self.bar.n)


def fetch(
  addresses: Sequence[str], downloads: dict[str, Download], folder: Path
) -> dict[str, Path]:
  """Downloads the files that are missing in `folder`, and returns the paths of all.

  `addresses` are folders that hold all files; if one fails, the next one is used. Bytes
  that an earlier process received are kept.
  """
  folder.mkdir(parents=True, exist_ok=True)
  paths = {name: folder / name for name in downloads}
  with contextlib.ExitStack() as held:
    with contextlib.suppress(WorkdirError):  # no locks here; the checksums protect
      held.enter_context(locks.exclusive(folder / ".lock", ""))
    wanted = {n: d for n, d in downloads.items() if not is_whole(paths[n], d)}
    total, before = sum(official.size for official in wanted.values()), 0
    shown = {"disable": not shows_bars(), "unit": "B", "unit_scale": True}
    with tqdm(total=total, dynamic_ncols=True, **shown) as bar:
      for name, official in wanted.items():
        bar.set_description(name)
        part = _Part(folder / f"{name}.partial", official, bar, before)
        _complete(part, [address + name for address in addresses])
        os.replace(part.path, paths[name])
        before += official.size
  return paths


def is_whole(path: Path, official: Download) -> bool:
  """Returns whether a file exists and is the official one."""
  if not path.is_file() or path.stat().st_size != official.size:
    return False
  with path.open("rb") as file:
    return hashlib.file_digest(file, "sha256").hexdigest() == official.sha256


def _complete(part: _Part, urls: Sequence[str]) -> None:
  """Completes a part from the first address that works, or raises DownloadError."""
  failures = []
  for url in urls:
    for left in reversed(range(TRIES)):
      try:
        return _try(url, part)
      except _FailedTry as failure:
        again, reason = left > 0 and not failure.final, str(failure)
      _log.warning(
        "%s: %s; %d of %d bytes are here%s.",
        *(url, reason, part.have(), part.official.size),
        "; trying again" if again else "",
      )
      if not again:
        break
      time.sleep(PAUSE_SECONDS)
    failures.append(reason if len(urls) == 1 else f"{reason} from {url}")
  raise DownloadError("; ".join(failures))


def _try(url: str, part: _Part) -> None:
  """Requests the missing bytes of a part once, and verifies the whole file."""
  size, begin = part.official.size, part.have()
  if begin < size:
    _log.info("Downloading %s (%.1f MB) from byte %d.", url, size / 1e6, begin)
    begin = _receive(url, begin, part)
  if is_whole(part.path, part.official):
    return
  if part.have() < size:
    raise _FailedTry("the connection ended early")
  part.path.unlink()
  # The cause may be bytes that an earlier process received: then retry from the start.
  raise _FailedTry("the file does not match its official checksum", final=begin == 0)


def _receive(url: str, begin: int, part: _Part) -> int:
  """Appends what a server sends to a part; returns the offset that it began at."""
  chunks = _chunks(url, begin)
  have = begin = int(next(chunks))
  with part.path.open("ab") as file:
    file.truncate(begin)
    for chunk in chunks:
      have += len(chunk)
      if have > part.official.size:
        file.truncate(0)
        raise _FailedTry("it sends more than the official size", final=True)
      file.write(chunk)
      part.show(have)
  return begin


def _chunks(url: str, begin: int) -> Iterator[bytes]:
  """Yields the offset that a server begins at, in digits, then the data."""
  found: queue.Queue[bytes | _FailedTry] = queue.Queue(maxsize=64)
  left = threading.Event()
  threading.Thread(target=_ask, args=(url, begin, found, left), daemon=True).start()
  try:
    until = time.monotonic() + CONNECT_SECONDS
    yield _next(found, until, f"no answer within {CONNECT_SECONDS:g} seconds", True)
    came = _STEP
    while True:
      if came >= _STEP:
        until, came = time.monotonic() + STALL_SECONDS, 0
      chunk = _next(found, until, f"nothing came for {STALL_SECONDS:g} seconds", False)
      if not chunk:
        return
      came += len(chunk)
      yield chunk
  finally:
    left.set()


def _next(
  found: "queue.Queue[bytes | _FailedTry]", until: float, late: str, final: bool
) -> bytes:
  """Returns the next chunk, or raises _FailedTry: after `until` with reason `late`."""
  try:
    chunk = found.get(timeout=max(until - time.monotonic(), 0))
  except queue.Empty:
    raise _FailedTry(late, final) from None
  if isinstance(chunk, _FailedTry):
    raise chunk
  return chunk


def _ask(
  url: str,
  begin: int,
  found: "queue.Queue[bytes | _FailedTry]",
  left: threading.Event,
) -> None:
  """Puts the items of `_chunks` into a queue, then b"" or the failure."""

  def put(chunk: bytes | _FailedTry) -> None:
    while not left.is_set():
      with contextlib.suppress(queue.Full):
        return found.put(chunk, timeout=1)

  headers = {"User-Agent": "ebmjax"} | ({"Range": f"bytes={begin}-"} if begin else {})
  try:
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=2 * STALL_SECONDS) as response:
      sent = str(response.headers.get("Content-Range", ""))
      resumes = response.status == 206 and sent.startswith(f"bytes {begin}-")
      put(str(begin if resumes else 0).encode())
      while not left.is_set() and (chunk := response.read1(_STEP)):
        put(chunk)
    put(b"")
  except Exception as error:  # any error means that the server cannot be used
    if begin and getattr(error, "code", None) == 416:  # the offset is beyond its file
      return _ask(url, 0, found, left)
    put(_failure(error))


def _failure(error: Exception) -> _FailedTry:
  if isinstance(error, urllib.error.HTTPError):
    error.close()
    passing = error.code >= 500 or error.code in (408, 429)
    return _FailedTry(f"HTTP {error.code} {error.reason}", final=not passing)
  reason = str(getattr(error, "reason", error)) or type(error).__name__
  return _FailedTry(reason, final=isinstance(error, urllib.error.URLError))
