"""Terminal output: its colours and weights in classes, everything else a terminal would obey left out."""

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from rich.ansi import AnsiDecoder
from rich.color import ColorSystem
from rich.style import Style
from rich.text import Text

from apps.trajectories.rendering.safe import escape, may_colour

_MIDDLE, _LAST = (
    "0123456789:;<=>?",
    " !\"#$%&'()*+,-./",
)  # of a control sequence, in this order, before what ends it
_STYLE = set("0123456789:;")


def terminal_html(text: str) -> SafeString:
    if not may_colour(text):
        return escape(_obeyed(text, keep_style=False))
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # a terminal would write over what stood there
    lines = (_line(line) for line in AnsiDecoder().decode(_obeyed(text, keep_style=True)))
    return mark_safe("\n".join(lines))  # noqa: S308  (each was escaped)


def _obeyed(text: str, *, keep_style: bool) -> str:
    """Without escape sequences (ECMA-48), but for those of colours and weights where they are kept. What only begins
    like one stays. Each piece is looked at once."""
    first, *pieces = text.split("\x1b")
    kept = [first]
    for piece in pieces:
        size = _sequence(piece)
        if (
            keep_style
            and piece[:1] == "["
            and piece[size - 1 : size] == "m"
            and _STYLE.issuperset(piece[1 : size - 1])
        ):
            size = 0
        kept.append(piece[size:] if size else f"\x1b{piece}")
    return "".join(kept)


def _sequence(piece: str) -> int:
    """How long the sequence is that began with an escape before `piece`; 0 where it is none."""
    kind = piece[:1]
    if kind == "[":
        rest = piece[1:].lstrip(_MIDDLE).lstrip(_LAST)
        return len(piece) - len(rest) + 1 if "@" <= rest[:1] <= "~" else 0
    if kind == "]":
        bell = piece.find("\x07")
        return bell + 1 if bell >= 0 else len(piece)
    return 1 if kind and ("@" <= kind <= "Z" or kind in "\\^_") else 0


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
