"""Builds HTML; any text that is not `Markup` is escaped."""

import html
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any

VOID = ("meta",)  # elements without content or end


class Markup(str):
  """Text that is already markup."""


def element(tag: str, /, *children: Any, **attributes: Any) -> Markup:
  """Returns <tag attributes>children</tag>, children and values escaped.

  In names of attributes a final underscore is dropped and others become hyphens
  (`class_`, `aria_label`). An attribute that is None is left out.
  """
  written = "".join(
    f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
    for key, value in attributes.items()
    if value is not None
  )
  if tag in VOID:
    return Markup(f"<{tag}{written}>")
  return Markup(f"<{tag}{written}>{join(children)}</{tag}>")


def join(parts: Iterable[Any], between: str = "") -> Markup:
  """Joins the parts, escaping those that are not markup."""
  return Markup(
    between.join(
      part if isinstance(part, Markup) else html.escape(str(part)) for part in parts
    )
  )


def table(
  caption: str,
  header: Sequence[Any],
  rows: Iterable[Sequence[Any]],
  class_: str | None = None,
) -> Markup:
  """Returns a table whose rows begin with a header cell; a wide table scrolls."""
  head = element("tr", *(element("th", name, scope="col") for name in header))
  body = (
    element(
      "tr", element("th", first, scope="row"), *(element("td", cell) for cell in rest)
    )
    for first, *rest in rows
  )
  content = element(
    "table",
    element("caption", element("span", caption)),  # stays in view while it scrolls
    element("thead", head),
    element("tbody", *body),
    class_=class_,
  )
  # It can take the keyboard's focus, because it may scroll.
  return element(
    "div", content, class_="scroll", tabindex=0, role="region", aria_label=caption
  )


def section(title: str, *content: Any) -> Markup:
  """Returns a section of a page with its heading."""
  return element("section", element("h2", title), *content)


def folded(title: str, *content: Any) -> Markup:
  """Returns content that is hidden until its title is clicked."""
  return element("details", element("summary", title), *content)


def document(
  kind: str, heading: str, story: Iterable[str], *content: Any, title: str = ""
) -> str:
  """Returns a page that loads no other file; its `title` defaults to the heading."""
  style = resources.files("ebmjax.report").joinpath("style.css").read_text("utf-8")
  head = element(
    "head",
    element("meta", charset="utf-8"),
    element("meta", name="viewport", content="width=device-width, initial-scale=1"),
    element("meta", name="color-scheme", content="light dark"),
    element("title", title or heading),
    element("style", Markup(style)),
  )
  header = element(
    "header",
    element("p", f"ebmjax, {kind}", class_="kind"),
    element("h1", heading),
    *(element("p", sentence, class_="story") for sentence in story),
  )
  body = element("body", element("main", header, *content))
  return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"
