"""Colours of numbers and of lines, and pictures made of colours."""

import base64
import struct
import zlib

import numpy as np

# Matplotlib's viridis at ten even places; between them it is all but straight.
_VIRIDIS = np.array(
  [
    (68, 1, 84),
    (72, 40, 120),
    (62, 73, 137),
    (49, 104, 142),
    (38, 130, 142),
    (31, 158, 137),
    (53, 183, 121),
    (110, 206, 88),
    (181, 222, 43),
    (253, 231, 37),
  ],
  float,
)
# As light as can be told from white and from a dark ground alike, from blue to red.
_RAMP = np.array(
  [(59, 111, 214), (26, 140, 138), (88, 140, 40), (184, 122, 16), (206, 68, 60)], float
)
LINES = 6  # the style sheet's --line-0 and so on: told apart in light and in dark
_GREY = 255  # the place of "no value" in a palette
_LEVELS = 255


def line_colours(count: int) -> list[str]:
  """Returns a CSS colour for each of `count` lines; many run from blue to red."""
  if count <= LINES:
    return [f"var(--line-{line})" for line in range(count)]
  return [_css(_between(_RAMP, share)) for share in np.linspace(0, 1, count)]


def cell_colours(share: float) -> tuple[str, str]:
  """Returns the CSS colours of a cell and of the text on it, for a share of 0..1."""
  colour = _between(_VIRIDIS, share)
  light = _luminance(colour) + 0.05
  black, white = light / 0.05, 1.05 / light  # WCAG's contrast of either ink
  return _css(colour), "#000" if black > white else "#fff"


def picture(shares: np.ndarray, zoom: int) -> str:
  """Returns the address of an embedded PNG of `shares` [rows, columns] of 0..1.

  NaN becomes grey. Every value is `zoom` pixels wide and high, so that browsers that
  smooth pictures do not blur the values into each other.
  """
  known = np.isfinite(shares)
  levels = np.round(np.where(known, shares, 0).clip(0, 1) * (_LEVELS - 1))
  pixels = np.where(known, levels, _GREY).astype(np.uint8)
  pixels = pixels.repeat(zoom, axis=0).repeat(zoom, axis=1)
  return "data:image/png;base64," + base64.b64encode(_png(pixels)).decode()


def _png(pixels: np.ndarray) -> bytes:
  """Returns a PNG of `pixels` [height, width], places in the palette of viridis."""
  palette = [_between(_VIRIDIS, share) for share in np.linspace(0, 1, _LEVELS)]
  colours = np.round([*palette, (150, 150, 150)]).astype(np.uint8)
  height, width = pixels.shape
  lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels], axis=1)
  parts = (
    (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
    (b"PLTE", colours.tobytes()),
    (b"IDAT", zlib.compress(lines.tobytes(), 9)),
    (b"IEND", b""),
  )
  return b"\x89PNG\r\n\x1a\n" + b"".join(_png_part(*part) for part in parts)


def _png_part(name: bytes, body: bytes) -> bytes:
  content = name + body
  return struct.pack(">I", len(body)) + content + struct.pack(">I", zlib.crc32(content))


def _between(stops: np.ndarray, share: float) -> np.ndarray:
  """Returns the colour [3] at a share of 0..1 of the way along `stops` [N, 3]."""
  places = np.linspace(0, 1, len(stops))
  return np.array([np.interp(share, places, channel) for channel in stops.T])


def _luminance(colour: np.ndarray) -> float:
  """Returns WCAG's relative luminance, from 0 for black to 1 for white."""
  share = colour / 255
  linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
  return float(linear @ (0.2126, 0.7152, 0.0722))


def _css(colour: np.ndarray) -> str:
  red, green, blue = np.round(colour).astype(int)
  return f"#{red:02x}{green:02x}{blue:02x}"
