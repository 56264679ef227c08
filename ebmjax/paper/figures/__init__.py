"""Draws the paper's figures from finished runs.

Each figure states the configuration of the runs it needs and looks for them in a folder
of workdirs. Runs that differ only in their seeds are pooled. A figure is written as SVG
(text as outlines, so it looks the same everywhere), PDF (text in an embedded font) and
PNG. The same runs give the same bytes.
"""

from ebmjax.paper.figures.files import FIGURES, draw, draw_each
from ebmjax.paper.figures.spec import FigureSpec, Role, Run

__all__ = ["FIGURES", "FigureSpec", "Role", "Run", "draw", "draw_each"]
