"""Which chat template rendered a text. A text that only mentions marks is not rendered."""

from collections.abc import Callable

from workers.schema.chat_text.formats import FORMATS, TOKENIZER_MARKS, ChatFormat, any_of
from workers.schema.patterns import PatternMatch, TextPattern

_FAMILIES = FORMATS.values()
_OF_TURNS = {
    mark: None for made in _FAMILIES for mark in (*made.opens, *made.ends) if mark not in TOKENIZER_MARKS
}
# Those of templates that are not known look alike.
_MARKS = TextPattern(rf"{any_of(tuple(_OF_TURNS))}|<\|[\pL\pN_:./-]{{1,40}}\|>|<｜[\pL\pN_▁-]{{1,40}}｜>")
_ENDS = tuple(dict.fromkeys(mark for made in _FAMILIES for mark in made.ends))
_CLOSING = TextPattern(rf"(?:(?:{any_of((*_ENDS, *TOKENIZER_MARKS))})\s*)+\z")
# What a template may write into the agent's turn before its first word.
_OPENED = TextPattern(
    r"\A\s*(?:<think>\s*(?:</think>)?|</think>|\[THINK\]|<seed:think>|<\|START_RESPONSE\|>|<\|START_THINKING\|>|"
    r"<\|channel>thought\s*(?:<channel\|>)?)?\s*\z"
)
Evidence = Callable[[ChatFormat, str, list[PatternMatch]], bool]


def detect_format(
    text: str, *, is_prompt: bool = False, named: ChatFormat | None = None
) -> ChatFormat | None:
    """The format of a rendered conversation, of a prompt that may have lost its beginning, or None.

    named: the policy's format, which is tried first.
    """
    known = [*_FAMILIES] if mentions_marks(text) else []
    formats = [made for made in (named, *known) if made is not None]
    headers = {made.name: list(made.header.finditer(text)) for made in formats}
    evidence: tuple[Evidence, ...] = (_begins, _is_led_prompt, _is_cut) if is_prompt else (_begins, _is_led)
    for made in formats[:1] if named is not None else []:
        if headers[made.name] and any(shows(made, text, headers[made.name]) for shows in evidence):
            return made
    for shows in evidence:
        for made in known:
            if headers[made.name] and shows(made, text, headers[made.name]):
                return made
    return None


def mentions_marks(text: str) -> bool:
    """Whether a text has marks of turns, in any format, whether or not these are whole headers; or special tokens."""
    return _MARKS.search(text) is not None


def strip_end_marks(text: str) -> str:
    """A response without the end and pad marks that a tokenizer's decoding leaves."""
    closing = _CLOSING.search(text)
    return text if closing is None else text[: closing.start()]


def _begins(format_: ChatFormat, text: str, headers: list[PatternMatch]) -> bool:
    """Whether it begins with a turn."""
    first, edge = headers[0], format_.edge.match(text)
    if edge is None or first.start() > edge.end() or format_.role(first) in (None, "between"):
        return False
    if format_.spoken is None or first[0].startswith(format_.opens):
        return True
    end = text.find(format_.ends[0])
    return end >= 0 and format_.spoken.search(text[first.end() : end]) is None


def _is_led(format_: ChatFormat, text: str, headers: list[PatternMatch]) -> bool:
    """Whether it begins with text that the template writes before the first turn."""
    leads = format_.leading is not None and format_.leading.match(text[: headers[0].start()]) is not None
    return leads and [format_.role(header) for header in headers[:2]] == ["user", "assistant"]


def _is_led_prompt(format_: ChatFormat, text: str, headers: list[PatternMatch]) -> bool:
    return _is_opened(format_, text, headers) and _is_led(format_, text, headers)


def _is_cut(format_: ChatFormat, text: str, headers: list[PatternMatch]) -> bool:
    """Whether it is the end of a prompt: the agent's turn is open, and another turn is before it."""
    if format_.spoken is not None or not _is_opened(format_, text, headers):
        return False
    return len(headers) > 1 or any(mark in text[: headers[-1].start()] for mark in format_.ends)


def _is_opened(format_: ChatFormat, text: str, headers: list[PatternMatch]) -> bool:
    last = headers[-1]
    return format_.role(last) == "assistant" and _OPENED.match(text[last.end() :]) is not None
