"""Code with its words in classes, by Pygments; what the classes look like is trajectory.css's."""

from functools import lru_cache

from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from apps.trajectories.rendering.safe import MOST, escape, shown

_FORMATTER = HtmlFormatter(nowrap=True)


def code_html(text: str, language: str) -> SafeString:
    """language: a name or alias of Pygments; text in an unknown one, or a very long one, is only escaped."""
    lexer = _lexer(language.lower()) if language and len(text) <= MOST else None
    if lexer is None:
        return escape(text)
    html = highlight(shown(text), lexer, _FORMATTER)
    return mark_safe(html if text.endswith("\n") else html.removesuffix("\n"))  # noqa: S308  (the formatter escapes)


@lru_cache(maxsize=1000)
def language_of(path: str) -> str:
    """The language a file of this name is written in; empty where nobody knows."""
    try:
        return str(get_lexer_for_filename(path).aliases[0])
    except (ClassNotFound, IndexError):
        return ""


@lru_cache(maxsize=200)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None
