"""Escaping, characters that would make a text look like another, and how much of a page is coloured."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.utils.html import escape as django_escape
from django.utils.safestring import SafeString

MOST = 60_000  # characters up to which a text is coloured; a longer one is shown as it is
MOST_OF_A_PAGE = 300_000  # of all texts of a page; those after them are shown as they are
_left: ContextVar[list[int] | None] = ContextVar("left", default=None)
# Overrides, embeddings and isolates of direction: what follows them is read in another order than it is stored in.
_BIDI = {code: f"[U+{code:04X}]" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def shown(text: str) -> str:
    """The text with controls of direction written out, so that what is read is what is there."""
    return text if text.isascii() else text.translate(_BIDI)


def escape(text: str) -> SafeString:
    return django_escape(shown(text))


@contextmanager
def one_page() -> Iterator[None]:
    """Colour MOST_OF_A_PAGE characters within the block, however many texts they are in. Pages in pages share it."""
    if _left.get() is not None:
        yield
        return
    token = _left.set([MOST_OF_A_PAGE])
    try:
        yield
    finally:
        _left.reset(token)


def may_colour(text: str) -> bool:
    """Whether a text is short enough to be parsed, on its own and with all before it on the page."""
    if len(text) > MOST:
        return False
    left = _left.get()
    if left is not None:
        left[0] -= len(text)
    return left is None or left[0] >= 0
