"""Formulas as MathML, which browsers draw without a script or a network."""

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx


def _inline(writer: Any, node: nodes.math) -> None:
  writer.body.append(_tree(node.astext(), as_block=False))
  raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
  writer.body.append(f'<div class="math">{_tree(node.astext(), as_block=True)}</div>')
  raise nodes.SkipNode


def _tree(latex: str, *, as_block: bool) -> str:
  return str(latex2mathml.tex2mathml(latex.strip(), as_block=as_block))


def setup(app: Sphinx) -> dict[str, Any]:
  """Makes it the way that formulas are written."""
  app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
  return {"parallel_read_safe": True, "parallel_write_safe": True}
