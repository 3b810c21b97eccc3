"""Code with its words in classes, by Pygments; what the classes look like is trajectory.css's."""

from functools import lru_cache

from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from apps.trajectories.rendering.safe import escape, may_colour, shown

_FORMATTER = HtmlFormatter(nowrap=True)
# An agent names the language, and lexers are hundreds of expressions for the standard `re`: used are only those whose
# time was measured to grow with the text (tests/trajectories/test_hostile_text.py).
LANGUAGES = frozenset(
    {
        "bash",
        "sh",
        "shell",
        "zsh",
        "python",
        "py",
        "python3",
        "pytb",
        "diff",
        "patch",
        "json",
        "yaml",
        "yml",
        "toml",
        "sql",
        "javascript",
        "js",
        "jsx",
        "typescript",
        "ts",
        "tsx",
        "html",
        "xml",
        "css",
    }
)
_LONGEST_NAME = 200


def code_html(text: str, language: str) -> SafeString:
    """language: a name or alias of Pygments; text in an unknown one, or a very long one, is only escaped."""
    name = language.lower()
    lexer = _lexer(name) if name in LANGUAGES and may_colour(text) else None
    if lexer is None:
        return escape(text)
    html = highlight(shown(text), lexer, _FORMATTER)
    return mark_safe(html if text.endswith("\n") else html.removesuffix("\n"))  # noqa: S308  (the formatter escapes)


def language_of(path: str) -> str:
    """The language a file of this name is written in; empty if unknown."""
    return _language_of(path.replace("\\", "/").rpartition("/")[2][-_LONGEST_NAME:])


@lru_cache(maxsize=1000)
def _language_of(name: str) -> str:
    try:
        found = str(get_lexer_for_filename(name).aliases[0])
    except (ClassNotFound, IndexError):
        return ""
    return found if found in LANGUAGES else ""


@lru_cache(maxsize=200)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None
