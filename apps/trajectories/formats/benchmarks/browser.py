"""What agents in a browser have in common: an action is a line of code, what is seen is a tree and a picture."""

from typing import Any

from workers.schema import ObservationResult, Part, ToolCall
from workers.schema.patterns import SPACE, TextPattern

_ACTION = TextPattern(rf"(?s)[{SPACE}]*([A-Za-z_]\w{{0,60}})[{SPACE}]*\((.*)\)[{SPACE}]*")
_CALL = TextPattern(rf"(?s)[{SPACE}]*[a-z_]\w*\(.*\)[{SPACE}]*")


def is_call(action: str) -> bool:
    """Whether a line is code alone, such as `click('a51')`, and no sentence."""
    return _CALL.fullmatch(action) is not None


def called(action: str) -> ToolCall:
    """`click('a51')` as a call of `click`; what is no single call, as code that was run."""
    match = _ACTION.fullmatch(action)
    if match is None:
        return ToolCall(name="code", arguments={"code": action})
    return ToolCall(name=match[1], arguments=match[2])


def seen(text: str, screenshot: str, about: dict[str, Any]) -> ObservationResult:
    """text: the page's tree. screenshot: a URL, a data URL, or the name of a file; none where empty."""
    parts = [Part(text=text)] if text else []
    if screenshot:
        parts.append(Part(type="image", source=screenshot))
    return ObservationResult(content=tuple(parts), extra=about)
