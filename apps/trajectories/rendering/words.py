"""Two versions of a text with the words marked that only one of them has."""

import re

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from rapidfuzz.distance import LCSseq

from apps.trajectories.rendering.safe import escape

_TOKENS = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
_HTML_PIECES = re.compile(r'<(?:[^"<>]|"[^"]*")*>|&#?\w+;\s*|\w+\s*|[^\w\s<]\s*|\s+|.', re.DOTALL)
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


def marked_html(html: SafeString, other: SafeString) -> SafeString:
    """`html` with the words marked that the text of `other` does not have: both rendered, with tags that are closed."""
    ours, theirs = _html_pieces(html), _html_pieces(other)
    words = [piece for piece in ours if not piece.startswith("<")]
    their_words = [piece for piece in theirs if not piece.startswith("<")]
    if max(len(words), len(their_words)) > _MOST:
        return html
    opcodes = LCSseq.opcodes(words, their_words)
    equal = {at for code in opcodes if code.tag == "equal" for at in range(code.src_start, code.src_end)}
    if len(equal) < _LEAST * min(len(words), len(their_words)):
        return html
    out: list[str] = []
    place, is_open = 0, False
    for piece in ours:
        is_tag = piece.startswith("<")
        is_marked = not is_tag and place not in equal
        if is_open != is_marked:
            out.append("<mark>" if is_marked else "</mark>")
            is_open = is_marked
        out.append(piece)
        place += not is_tag
    return mark_safe("".join([*out, "</mark>"] if is_open else out))  # noqa: S308  (safe, and marks between its pieces)


def _html_pieces(html: str) -> list[str]:
    """Tags, and the words and signs between them; a sign may be written as an entity."""
    return _HTML_PIECES.findall(html)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
