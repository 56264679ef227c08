"""HTML and SVG as escaped text: what is not `Markup` is shown, never interpreted."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

VOID = ("meta",)  # elements without content or end


class Markup(str):
  """Text that is markup already."""


def element(tag: str, /, *children: Any, **attributes: Any) -> Markup:
  """Returns <tag attributes>children</tag>, children and values escaped.

  Names of attributes lose a final underscore and have hyphens for the others
  (`class_`, `aria_label`); one that is None is left out.
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
  """Returns the parts one after another, each escaped unless it is markup."""
  return Markup(between.join(map(_escaped, parts)))


def table(
  caption: str,
  header: Sequence[Any],
  rows: Iterable[Sequence[Any]],
  class_: str | None = None,
) -> Markup:
  """Returns a table whose rows begin with their name; a wide one scrolls.

  Cells may be ready <td> elements.
  """
  head = element("tr", *(element("th", name, scope="col") for name in header))
  body = (
    element("tr", element("th", first, scope="row"), *map(_cell, rest))
    for first, *rest in rows
  )
  content = element(
    "table",
    element("caption", element("span", caption)),  # stays in view while it scrolls
    element("thead", head),
    element("tbody", *body),
    class_=class_,
  )
  # Reached by the keyboard too, because it may scroll.
  return element(
    "div", content, class_="scroll", tabindex=0, role="region", aria_label=caption
  )


def section(title: str, *content: Any) -> Markup:
  """Returns a part of a page under its heading."""
  return element("section", element("h2", title), *content)


def folded(title: str, *content: Any) -> Markup:
  """Returns content that a click on its title shows."""
  return element("details", element("summary", title), *content)


def figure(title: str, picture: Markup, caption: str, key: Markup | None = None) -> Any:
  """Returns a picture with its title, its key and what is seen in it."""
  parts = [element("h3", title)] + ([key] if key else []) + [picture]
  return element("figure", *parts, element("figcaption", caption))


def document(title: str, style: str, *content: Any) -> str:
  """Returns a page that loads no other file."""
  head = element(
    "head",
    element("meta", charset="utf-8"),
    element("meta", name="viewport", content="width=device-width, initial-scale=1"),
    element("meta", name="color-scheme", content="light dark"),
    element("title", title),
    element("style", Markup(style)),
  )
  body = element("body", element("main", *content))
  return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _escaped(part: Any) -> str:
  return part if isinstance(part, Markup) else html.escape(str(part))


def _cell(content: Any) -> Markup:
  if isinstance(content, Markup) and content.startswith("<td"):
    return content
  return element("td", content)
