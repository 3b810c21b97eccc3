"""Markdown of agents and users: no HTML, no images, links only to the web; sanitised all the same."""

from collections.abc import Sequence
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from apps.trajectories.rendering.code import code_html
from apps.trajectories.rendering.safe import escape, may_colour, shown
from workers.schema.patterns import TextPattern

_TEXT = {"a", "br", "code", "del", "em", "s", "span", "strong"}
_BLOCKS = {"blockquote", "hr", "li", "ol", "p", "pre", "table", "tbody", "td", "th", "thead", "tr", "ul"}
_ATTRIBUTES = {"a": {"href"}, "ol": {"start"}, "p": {"class"}, "span": {"class"}}
_WEB = ("http://", "https://", "mailto:")
# What anything but plain words has: where none of it occurs there is nothing to parse.
_MARKS = TextPattern(r"(?m)[*_`#>\[\]|~<&\\]|^\s*(?:[-+]|\d+[.)])\s|^\s*(?:---|===)|^ {4}|^\t|  $|://|@")


def markdown_html(text: str) -> SafeString:
    """Line breaks stay; headings are bold paragraphs, so that no card changes the outline of the page."""
    if not may_colour(text) or not _MARKS.search(text):
        return escape(text)
    html = _PARSER.render(shown(text))
    clean = nh3.clean(
        html,
        tags=_TEXT | _BLOCKS,
        attributes=_ATTRIBUTES,
        attribute_filter=_filter,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    return mark_safe(f'<div class="markdown" dir="auto">{clean}</div>')  # noqa: S308


def _filter(tag: str, attribute: str, value: str) -> str | None:
    """No address within this application: a link of an agent's never looks like one of ours."""
    return value if attribute != "href" or value.lower().startswith(_WEB) else None


def _heading_open(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    return f'<p class="heading heading-{tokens[place].tag[1:]}">'


def _heading_close(*_: Any) -> str:
    return "</p>"


def _fence(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    words = tokens[place].info.split()
    return f"<pre>{code_html(tokens[place].content, words[0] if words else '')}</pre>"


def _code_block(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    return f"<pre>{escape(tokens[place].content)}</pre>"


_PARSER = (
    MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": 20})
    .enable(["table", "strikethrough"])
    .disable(["image", "html_block", "html_inline"])
)
for _name, _rule in (
    ("heading_open", _heading_open),
    ("heading_close", _heading_close),
    ("fence", _fence),
    ("code_block", _code_block),
):
    _PARSER.add_render_rule(_name, _rule)
