"""Draws the paper's figures from finished runs: python -m ebmjax.paper.figures

Each figure says which runs it needs, as values of their configuration. They are looked
for in a folder of workdirs; runs that differ in nothing but their seeds are pooled. A
figure is written as SVG (its letters are outlines, so it looks alike everywhere), PDF
(letters are text, the font is embedded) and PNG, the same bytes for the same runs.
"""

from ebmjax.paper.figures.files import FIGURES, draw, draw_each
from ebmjax.paper.figures.spec import FigureSpec, Role, Run

__all__ = ["FIGURES", "FigureSpec", "Role", "Run", "draw", "draw_each"]
