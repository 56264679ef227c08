"""Small synthetic sets, and a server on the loopback that serves them."""

import dataclasses
import gzip
import hashlib
import http.server
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ebmjax.data import download
from ebmjax.data.arrays import Pins, content_sha256, idx_header, rows_sha256
from ebmjax.data.registry import DATASETS
from ebmjax.data.spec import DatasetSpec, Download

FILES = {
  "train-images-idx3-ubyte": "train_x",
  "train-labels-idx1-ubyte": "train_y",
  "t10k-images-idx3-ubyte": "test_x",
  "t10k-labels-idx1-ubyte": "test_y",
}


def make_arrays(num_train: int, num_test: int, seed: int = 0) -> dict[str, np.ndarray]:
  """Returns random images and labels under the names of the Dataset's fields."""
  random = np.random.default_rng(seed)
  return {
    "train_x": random.integers(0, 256, (num_train, 28, 28), np.uint8),
    "train_y": random.integers(0, 10, num_train, np.uint8),
    "test_x": random.integers(0, 256, (num_test, 28, 28), np.uint8),
    "test_y": random.integers(0, 10, num_test, np.uint8),
  }


def make_info(arrays: dict[str, np.ndarray], url: str) -> DatasetSpec:
  """Returns a row for which these arrays, packed by `pack`, are the official set."""
  packed = pack(arrays)
  pins = [
    Pins(len(x), content_sha256(x), content_sha256(y), rows_sha256(x, y))
    for x, y in (
      (arrays["train_x"], arrays["train_y"]),
      (arrays["test_x"], arrays["test_y"]),
    )
  ]
  downloads = {
    name: Download(len(content), hashlib.sha256(content).hexdigest())
    for name, content in packed.items()
  }
  return DATASETS["mnist"]._replace(
    train=pins[0], test=pins[1], url=url, downloads=downloads
  )


def encode(values: np.ndarray) -> bytes:
  """Returns values as an idx file."""
  return idx_header(values.shape) + values.astype(np.uint8).tobytes()


def pack(arrays: dict[str, np.ndarray]) -> dict[str, bytes]:
  """Returns the four gzip files of a set by name."""
  return {
    f"{name}.gz": gzip.compress(encode(arrays[key]), mtime=0)
    for name, key in FILES.items()
  }


@dataclasses.dataclass
class Server:
  """What a loopback server serves, and what it was asked for."""

  url: str
  files: dict[str, bytes] = dataclasses.field(default_factory=dict)
  requests: list[str] = dataclasses.field(default_factory=list)
  resumed: list[int] = dataclasses.field(default_factory=list)  # from which bytes
  stalls_at: str = ""  # a file that is not sent, or not beyond `stalls_after` bytes
  stalls_after: int = 0
  breaks_after: int = 0  # bytes after which a connection ends, where positive
  stalled: threading.Event = dataclasses.field(default_factory=threading.Event)
  release: threading.Event = dataclasses.field(default_factory=threading.Event)


def _make_handler(state: Server) -> type[http.server.BaseHTTPRequestHandler]:
  """Returns a handler that serves `state.files`."""

  class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
      name = self.path.lstrip("/")
      state.requests.append(f"GET {name}")
      content = state.files.get(name)
      asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
      begin = int(asked[1]) if asked and content else 0
      self.send_response(404 if content is None else 206 if begin else 200)
      rest = (content or b"")[begin:]
      self.send_header("Content-Length", str(len(rest)))
      if begin:
        state.resumed.append(begin)
        whole = len(content or b"")
        self.send_header("Content-Range", f"bytes {begin}-{whole - 1}/{whole}")
      self.end_headers()
      if name == state.stalls_at:
        self.wfile.write(rest[: state.stalls_after])
        state.stalled.set()
        state.release.wait(60)
      self.wfile.write(rest[: state.breaks_after or None])

    def log_message(self, *args: Any) -> None:
      pass

  return Handler


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
  """Yields a running server that serves nothing yet."""
  state = Server(url="")
  handler = _make_handler(state)
  http_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
  http_server.daemon_threads = True
  monkeypatch.setattr(download, "PAUSE_SECONDS", 0.0)
  state.url = f"http://127.0.0.1:{http_server.server_address[1]}/"
  thread = threading.Thread(target=http_server.serve_forever, args=(0.02,))
  thread.start()
  yield state
  state.release.set()
  http_server.shutdown()
  thread.join()
  http_server.server_close()


@dataclasses.dataclass
class Tiny:
  """A small set that stands for the official MNIST during a test."""

  arrays: dict[str, np.ndarray]
  info: DatasetSpec
  server: Server

  def write_idx(self, folder: Path, suffix: str = ".gz", dot: bool = False) -> Path:
    """Writes the four idx files, with any spelling of their names."""
    folder.mkdir(exist_ok=True)
    for name, key in FILES.items():
      content = encode(self.arrays[key])
      spelling = name.replace("-idx", ".idx") if dot else name
      content = gzip.compress(content) if suffix else content
      (folder / f"{spelling}{suffix}").write_bytes(content)
    return folder

  def write_npz(self, folder: Path, **changes: Any) -> Path:
    """Writes mnist.npz, with some arrays changed, or left out where None."""
    folder.mkdir(exist_ok=True)
    keys = {"x_train": "train_x", "y_train": "train_y", "x_test": "test_x"}
    keys["y_test"] = "test_y"
    arrays = {key: self.arrays[field] for key, field in keys.items()} | changes
    arrays = {key: value for key, value in arrays.items() if value is not None}
    np.savez(folder / "mnist.npz", **arrays)
    return folder

  def assert_holds(self, dataset: Any) -> None:
    """Asserts that a data set has exactly these arrays in this order."""
    for field, values in self.arrays.items():
      np.testing.assert_array_equal(getattr(dataset, field), values)
    assert dataset.train_x.dtype == dataset.test_x.dtype == np.uint8
    assert dataset.train_y.dtype == dataset.test_y.dtype == np.int32


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, server: Server, tmp_path: Path) -> Tiny:
  """Returns a set of 70 and 30 images, served, and registered as mnist."""
  arrays = make_arrays(70, 30)
  info = make_info(arrays, server.url)
  server.files.update(pack(arrays))
  monkeypatch.setitem(DATASETS, "mnist", info)
  monkeypatch.setenv("no_proxy", "127.0.0.1")
  monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "default_tfds"))
  return Tiny(arrays, info, server)


@pytest.fixture
def config() -> Callable[..., SimpleNamespace]:
  """Returns a maker of configurations of the data package."""

  def make(source: str, folder: Any = "", **changes: Any) -> SimpleNamespace:
    values = {"name": "mnist", "require_full": False, "download": True, **changes}
    return SimpleNamespace(source=source, dir=str(folder), **values)

  return make


@pytest.fixture
def sentence() -> Callable[[Any], str]:
  """Returns a function from a caught error to its text, asserted to be a sentence."""

  def text_of(caught: Any) -> str:
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert ": " in text or "; " in text, "a remedy follows a colon or semicolon"
    return text

  return text_of
