"""Two versions of a text with the words marked that only one of them has."""

import re

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from rapidfuzz.distance import LCSseq

from apps.trajectories.rendering.safe import escape

_TOKENS = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
_MOST = 6000  # words that are compared; of longer texts it is lines, and of texts of more lines nothing
_LEAST = 0.3  # share of words in common below which marking them would mark everything


def marked(text: str, other: str) -> SafeString:
    """`text` with what `other` does not have in `<mark>`. Nothing is marked where they have little in common."""
    split = _TOKENS.findall if max(len(text), len(other)) <= 2 * _MOST else _lines
    ours, theirs = split(text), split(other)
    if max(len(ours), len(theirs)) > _MOST:
        return escape(text)
    opcodes = LCSseq.opcodes(ours, theirs)
    same = sum(code.src_end - code.src_start for code in opcodes if code.tag == "equal")
    if same < _LEAST * min(len(ours), len(theirs)):
        return escape(text)
    pieces = []
    for code in opcodes:
        piece = "".join(ours[code.src_start : code.src_end])
        if piece:
            html = escape(piece)
            pieces.append(html if code.tag == "equal" else format_html("<mark>{}</mark>", html))
    return mark_safe("".join(pieces))  # noqa: S308  (each was escaped)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
