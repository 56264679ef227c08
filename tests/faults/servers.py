"""Servers on this machine that cheat: a download is whole, or one sentence."""

import hashlib
import http.server
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ebmjax.data import download
from ebmjax.data.spec import Download
from ebmjax.errors import DataError
from tests.faults.tally import Tally

_CONTENT = bytes(range(256)) * 2000
_Act = Callable[[Any, float], None]


def _send(handler: Any, body: bytes, length: Any = None, code: int = 200) -> None:
  handler.send_response(code)
  handler.send_header("Content-Length", str(len(body) if length is None else length))
  handler.end_headers()
  handler.wfile.write(body)


def _trickle(handler: Any, share: float) -> None:
  _send(handler, b"", len(_CONTENT))
  for place in range(40):
    handler.wfile.write(_CONTENT[place : place + 1])
    handler.wfile.flush()
    time.sleep(0.05)


def _stall(handler: Any, share: float) -> None:
  _send(handler, _CONTENT[: int(share * len(_CONTENT))], len(_CONTENT))
  time.sleep(2)


def _chunked(handler: Any, share: float) -> None:
  handler.protocol_version = "HTTP/1.1"
  handler.send_response(200)
  handler.send_header("Transfer-Encoding", "chunked")
  handler.end_headers()
  handler.wfile.write(b"zz\r\n" if share < 0.5 else b"ffffffffff\r\nabc")


# What a handler does, given a random share.
ACTS: dict[str, _Act] = {
  "honest": lambda h, s: _send(h, _CONTENT),
  "breaks off": lambda h, s: _send(h, _CONTENT[: int(s * 9e4)], len(_CONTENT)),
  "short": lambda h, s: _send(h, _CONTENT[: int(s * len(_CONTENT))]),
  "long": lambda h, s: _send(h, _CONTENT * 9),
  "other": lambda h, s: _send(h, _CONTENT[::-1]),
  "sign in": lambda h, s: _send(h, b"<html>sign in"),
  "empty": lambda h, s: _send(h, b""),
  "length of text": lambda h, s: _send(h, _CONTENT, "many"),
  "negative length": lambda h, s: _send(h, _CONTENT, -5),
  "false range": lambda h, s: _send(h, _CONTENT, code=206),
  "unsatisfied": lambda h, s: _send(h, b"", code=416),
  "unavailable": lambda h, s: _send(h, b"", code=503),
  "forbidden": lambda h, s: _send(h, b"", code=403),
  "unknown code": lambda h, s: _send(h, b"", code=799),
  "no HTTP": lambda h, s: h.wfile.write(b"SSH-2.0-x\r\n" * 9),
  "closes": lambda h, s: h.connection.close(),
  "long header": lambda h, s: h.wfile.write(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 99999),
  "broken chunks": _chunked,
  "stalls": _stall,
  "trickles": _trickle,
  "says nothing": lambda h, s: time.sleep(2),
}


def attack(tally: Tally, base: Path) -> None:
  """Downloads from each kind of server in turn, sometimes from a part on the disk."""
  download.CONNECT_SECONDS = download.STALL_SECONDS = 0.3
  download.PAUSE_SECONDS = 0.0
  for number in tally.tries():
    name = list(ACTS)[number % len(ACTS)]
    tally.judge(name, partial(_download, name, base / str(number), number))


def _download(name: str, folder: Path, number: int) -> bool:
  wanted = {"x": Download(len(_CONTENT), hashlib.sha256(_CONTENT).hexdigest())}
  share = number * 0.618 % 1
  if number % 2:
    folder.mkdir()
    (folder / "x.partial").write_bytes(_CONTENT[: int(share * 1e5)])

  class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
      ACTS[name](self, share)

    def log_message(self, *args: Any) -> None:
      pass

  server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
  server.daemon_threads = True
  server.handle_error = lambda *_: None  # type: ignore[method-assign]
  threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
  try:
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    paths = download.fetch((url,), wanted, folder)
    return paths["x"].read_bytes() == _CONTENT
  except download.DownloadError as error:
    assert not (folder / "x").exists()
    raise DataError(str(error)) from error
  finally:
    server.shutdown()
    server.server_close()
