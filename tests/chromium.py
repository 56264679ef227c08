"""A headless Chromium, steered over its debugging pipe with nothing but Python."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--hide-scrollbars",
)
SECONDS = 120  # that an answer may take on a busy machine


def find() -> str | None:
  """Returns the path of an installed Chromium, or None."""
  return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
  """A browser with one open tab; use as a context manager.

  Messages are JSON with a NUL after each: to the browser's descriptor 3, from its 4.
  """

  def __init__(self, program: str, profile: Path) -> None:
    self.complaints: list[str] = []  # errors and warnings of the console
    self._program, self._profile = program, profile
    self._buffer, self._number = b"", 0
    self._session: str | None = None
    self._loaded = False

  def __enter__(self) -> "Chromium":
    to_read, self._write = os.pipe()
    self._read, to_write = os.pipe()
    # A shell moves the pipes to 3 and 4, whatever numbers they have here.
    moved = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
    flags = (*FLAGS, "--remote-debugging-pipe", f"--user-data-dir={self._profile}")
    self._process = subprocess.Popen(
      ["/bin/bash", "-c", moved, self._program, *flags, "about:blank"],
      pass_fds=(to_read, to_write),
      stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(to_write)
    target = self.call("Target.createTarget", url="about:blank")["targetId"]
    attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
    self._session = attached["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
      self.call(f"{domain}.enable")
    return self

  def __exit__(self, *exception: object) -> None:
    self._session = None
    self.call("Browser.close")
    os.close(self._write)
    self._process.wait(timeout=SECONDS)
    os.close(self._read)

  def call(self, method: str, **parameters: Any) -> dict[str, Any]:
    """Returns the browser's answer to a command of its protocol."""
    self._number += 1
    message = {"id": self._number, "method": method, "params": parameters}
    if self._session:
      message["sessionId"] = self._session
    os.write(self._write, json.dumps(message).encode() + b"\0")
    while True:
      answer = self._receive()
      if answer.get("id") == self._number:
        if "error" in answer:
          raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

  def show(self, path: Path, *, width: int, height: int, scheme: str) -> None:
    """Opens a page in a window of `width` pixels, `scheme` being light or dark."""
    self.call(
      "Emulation.setDeviceMetricsOverride",
      width=width,
      height=height,
      deviceScaleFactor=1,
      mobile=False,
    )
    feature = {"name": "prefers-color-scheme", "value": scheme}
    self.call("Emulation.setEmulatedMedia", features=[feature])
    self._loaded = False
    self.call("Page.navigate", url=path.resolve().as_uri())
    while not self._loaded:
      self._receive()

  def ask(self, expression: str) -> Any:
    """Returns the value of a JavaScript expression in the page."""
    answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
    if "exceptionDetails" in answer:
      raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
    return answer["result"].get("value")

  def screenshot(self, path: Path) -> bytes:
    """Returns a PNG of the whole page, also written to `path`."""
    shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
    content = base64.b64decode(shot["data"])
    path.write_bytes(content)
    return content

  def _receive(self) -> dict[str, Any]:
    """Returns the next message, after noting what it says of the page."""
    limit = time.monotonic() + SECONDS
    while b"\0" not in self._buffer:
      ready, _, _ = select.select([self._read], [], [], limit - time.monotonic())
      part = os.read(self._read, 1 << 20) if ready else b""
      if not part:
        raise RuntimeError("Chromium gave no answer")
      self._buffer += part
    line, _, self._buffer = self._buffer.partition(b"\0")
    message: dict[str, Any] = json.loads(line)
    self._note(message.get("method"), message.get("params", {}))
    return message

  def _note(self, event: str | None, told: dict[str, Any]) -> None:
    if event == "Page.loadEventFired":
      self._loaded = True
    elif event == "Runtime.exceptionThrown":
      self.complaints.append(str(told["exceptionDetails"].get("text")))
    elif event == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
      self.complaints.append(str(told["entry"]["text"]))
    elif event == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
      self.complaints.append(str(told["args"]))
