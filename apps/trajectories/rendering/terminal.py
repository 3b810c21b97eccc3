"""Terminal output: its colours and weights in classes, everything else a terminal would obey left out."""

import re

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from rich.ansi import AnsiDecoder
from rich.color import ColorSystem
from rich.style import Style
from rich.text import Text

from apps.trajectories.rendering.safe import MOST, escape

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_STYLE = re.compile(r"\x1b\[[\d;:]*m")


def terminal_html(text: str) -> SafeString:
    if len(text) > MOST:
        return escape(_ESCAPES.sub("", text))
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # a terminal would write over what stood there
    kept = _ESCAPES.sub(lambda found: found[0] if _STYLE.fullmatch(found[0]) else "", text)
    lines = (_line(line) for line in AnsiDecoder().decode(kept))
    return mark_safe("\n".join(lines))  # noqa: S308  (each was escaped)


def _line(line: Text) -> str:
    """The decoder gives each stretch of one style a span of its own, in order."""
    pieces, end = [], 0
    for span in line.spans:
        pieces.append(escape(line.plain[end : span.start]))
        piece, end = escape(line.plain[span.start : span.end]), span.end
        classes = _classes(span.style) if isinstance(span.style, Style) else ""
        pieces.append(format_html('<span class="{}">{}</span>', classes, piece) if classes else piece)
    return "".join([*pieces, escape(line.plain[end:])])


def _classes(style: Style) -> str:
    names = [
        name for name in ("bold", "dim", "italic", "underline", "strike", "reverse") if getattr(style, name)
    ]
    for prefix, color in (("fg", style.color), ("bg", style.bgcolor)):
        if color is not None and not color.is_default:
            names.append(f"{prefix}-{color.downgrade(ColorSystem.STANDARD).number}")
    return " ".join(f"ansi-{name}" for name in names)
