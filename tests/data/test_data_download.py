"""Downloads: resumed, bounded in time and size, from the first address that can."""

import hashlib
import io
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ebmjax.config.loading import python_path
from ebmjax.data import download
from ebmjax.data.spec import Download

CONTENT = bytes(range(256)) * 1000
WANTED = {"file": Download(len(CONTENT), hashlib.sha256(CONTENT).hexdigest())}


@pytest.fixture(autouse=True)
def quick(server, monkeypatch):
  """Serves the file, to a client with little patience."""
  monkeypatch.setenv("no_proxy", "127.0.0.1")
  monkeypatch.setattr(download, "CONNECT_SECONDS", 0.5)
  monkeypatch.setattr(download, "STALL_SECONDS", 0.5)
  server.files["file"] = CONTENT


def fetch(folder: Path, *addresses: str) -> bytes:
  return download.fetch(addresses, WANTED, folder)["file"].read_bytes()


def test_a_broken_connection_goes_on_where_it_broke(server, tmp_path, caplog):
  server.breaks_after = 100_000
  with caplog.at_level(logging.INFO):
    assert fetch(tmp_path, server.url) == CONTENT
  assert server.resumed == [100_000, 200_000]
  assert "100000 of 256000 bytes are here; trying again" in caplog.text
  assert "from byte 200000" in caplog.text
  assert not list(tmp_path.glob("*.partial"))


def test_one_bar_shows_the_bytes_of_all_files(server, tmp_path, monkeypatch):
  class Notebook(io.StringIO):
    """A standard error that is no terminal, and shows bars."""

  Notebook.__module__ = "ipykernel.iostream"
  monkeypatch.setattr(sys, "stderr", bar := Notebook())
  server.files["other"] = CONTENT
  download.fetch([server.url], WANTED | {"other": WANTED["file"]}, tmp_path)
  last = bar.getvalue().strip().rsplit("\r", 1)[-1]
  assert last.startswith("other: 100%") and "512k/512k" in last and "B/s" in last


def test_another_process_goes_on_from_what_one_received(server, tmp_path):
  (tmp_path / "file.partial").write_bytes(CONTENT[:1000])
  assert fetch(tmp_path, server.url) == CONTENT
  assert server.resumed == [1000]


@pytest.mark.parametrize("part", [b"<html>", CONTENT + b"x", CONTENT[::-1]])
def test_a_wrong_part_is_replaced(server, tmp_path, part):
  (tmp_path / "file.partial").write_bytes(part)
  assert fetch(tmp_path, server.url) == CONTENT


@pytest.mark.parametrize("sent", [0, 10_000])
def test_a_stalled_server_ends_in_a_reason(server, tmp_path, sent):
  server.stalls_at, server.stalls_after = "file", sent
  begin = time.monotonic()
  with pytest.raises(download.DownloadError, match=r"nothing came for 0\.5 seconds"):
    fetch(tmp_path, server.url)
  assert time.monotonic() - begin < 4
  assert len(server.requests) == download.TRIES


def test_a_stalled_server_leads_to_the_next_address(server, tmp_path):
  server.stalls_at = "file"
  server.files["mirror/file"] = CONTENT
  assert fetch(tmp_path, server.url, server.url + "mirror/") == CONTENT


def test_a_pipe_in_place_of_the_lock_does_not_hang(server, tmp_path):
  os.mkfifo(tmp_path / ".lock")
  with pytest.raises(OSError, match="No such device"):
    fetch(tmp_path, server.url)


def test_all_addresses_are_named_where_all_fail(server, tmp_path):
  with pytest.raises(download.DownloadError) as caught:
    fetch(tmp_path, server.url + "a/", server.url + "b/")
  assert str(caught.value).count("HTTP 404 Not Found from http") == 2
  assert len(server.requests) == 2, "a file that is not there is asked for once"


def test_a_server_that_never_ends_is_left_at_the_official_size(server, tmp_path):
  server.files["file"] = CONTENT * 400
  with pytest.raises(download.DownloadError, match="more than the official size"):
    fetch(tmp_path, server.url)
  assert (tmp_path / "file.partial").stat().st_size == 0
  assert len(server.requests) == 1


def test_ctrl_c_ends_a_stalled_download_at_once(server, tmp_path):
  server.stalls_at = "file"
  code = (
    "from ebmjax.data import download, spec\n"
    f"wanted = {{'file': spec.Download(*{tuple(WANTED['file'])})}}\n"
    "try:\n"
    f"  download.fetch(({server.url!r},), wanted, __import__('pathlib').Path("
    f"{str(tmp_path)!r}))\n"
    "except KeyboardInterrupt:\n"
    "  raise SystemExit(130)\n"
  )
  environment = os.environ | {"PYTHONPATH": python_path()}
  child = subprocess.Popen([sys.executable, "-c", code], env=environment)
  assert server.stalled.wait(30)
  begin = time.monotonic()
  child.send_signal(signal.SIGINT)
  assert child.wait(10) == 130
  assert time.monotonic() - begin < 2
