"""Rendered text as its turns. Whose a turn is, the prompt says; a response is the agent's, whatever marks it holds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workers.schema.chat_text.formats import LEADING_MARKS, TRAILING_MARKS, ChatFormat

IsTrusted = Callable[[str, int], bool]


@dataclass(slots=True)
class Turn:
    """role: of a chat message, or `tools`. head: what the template writes next to the role. is_own: of the response, or
    with a part of it; opened: what the prompt has of its body."""

    role: str
    body: str
    head: str = ""
    channel: str = ""
    is_own: bool = False
    opened: str = ""


@dataclass(slots=True)
class Turns:
    """has_marks: role marks that stay text. is_cut: the first turn has lost its beginning."""

    turns: list[Turn]
    has_marks: bool = False
    is_cut: bool = False


def split_turns(text: str, format_: ChatFormat, *, boundary: int, trusts_response: bool) -> Turns:
    """boundary: where the response begins; the length of the text where nothing distinguishes it."""
    found = Turns([])
    headers: list[tuple[Any, str, str]] = []
    matches = list(format_.header.finditer(text))
    if matches and not text[matches[-1].end() :].strip():
        last = matches.pop()
        if _role_of(last, format_, text, boundary)[0] in ("user", "tool"):
            text = text[: last.start()]  # GLM stops at the mark of the next turn
        else:
            matches.append(last)
    for match in matches:
        role, head = _role_of(match, format_, text, boundary)
        is_trusted = trusts_response or match.start() < boundary
        continues = role == "assistant" and (format_.continues or not text[boundary : match.start()].strip())
        if role is None or not (is_trusted or continues):
            found.has_marks = True
            continue
        headers.append((match, role, head))
    leading = text[: headers[0][0].start()] if headers else text
    mark = LEADING_MARKS.match(leading)
    leading = leading[mark.end() :] if mark else leading
    if leading.strip():
        found.is_cut = format_.leading is None
        found.turns.append(Turn(format_.leading or "user", _body(leading, format_, found)))
    for place, (match, role, head) in enumerate(headers):
        end = headers[place + 1][0].start() if place + 1 < len(headers) else len(text)
        start = _header_end(match, boundary)
        channel = (match[2] or "") if format_.name == "harmony" else ""
        opened = text[start:boundary] if end > boundary else ""
        body = _body(text[start:end], format_, found)
        found.turns.append(Turn(role, body, head, channel, is_own=end > boundary, opened=opened))
    found.turns = _without_between(found.turns)
    return found


def _role_of(match: Any, format_: ChatFormat, text: str, boundary: int) -> tuple[str | None, str]:
    """The role, and what is written next to it. Of a header that the response completes, the prompt's part counts."""
    if format_.name == "gemma4" and match[1] is None:
        return ("tool" if match[2] else "assistant"), "inline"
    written = match[1]
    if match.start() < boundary < match.end():
        known = text[match.start(1) : min(match.end(1), max(boundary, match.start(1)))]
        role = format_.role(known)
        return role, written if role == "assistant" else known
    role = format_.role(written)
    if role is None and format_.continues and " to=assistant" in written:
        role = "tool"  # harmony: functions.look_up to=assistant
    return role, written


def _header_end(match: Any, boundary: int) -> int:
    """A header that the prompt leaves open, and that the response does not go on with, ends with the prompt."""
    is_open = match.start() < boundary < match.end(1) and not match[0].endswith("<|message|>")
    return boundary if is_open else match.end()


def _body(text: str, format_: ChatFormat, found: Turns) -> str:
    """A turn without the marks that close it."""
    trailing = TRAILING_MARKS.search(text)
    body = text if trailing is None else text[: trailing.start()]
    while closing := next((mark for mark in format_.ends if body.rstrip().endswith(mark)), None):
        body = body.rstrip().removesuffix(closing)
    found.has_marks |= any(mark in body for mark in format_.ends)
    return body.strip() if format_.strips else body


def _without_between(turns: list[Turn]) -> list[Turn]:
    """Without what a mark between two others opens: an empty turn of the agent's that another turn follows."""
    kept = []
    for place, turn in enumerate(turns):
        is_last = place + 1 == len(turns)
        is_inline = turn.head in ("inline", "/TOOL_RESULTS", "tool▁outputs▁end")
        if turn.role == "between" or (
            is_inline and turn.role == "assistant" and not turn.body and not is_last
        ):
            continue
        kept.append(turn)
    return kept
