"""Rendered text as its turns. Whose a turn is, the prompt says; a response is the agent's, whatever marks it holds."""

from dataclasses import dataclass, field, replace

from workers.schema.chat_text.formats import TOKENIZER_MARKS, ChatFormat
from workers.schema.patterns import PatternMatch


@dataclass(slots=True)
class Turn:
    """role: of a chat message, or `tools`. written: the role as the template writes it; header: all that it writes.
    name, recipient, channel: what Harmony writes next to the role. opened: what the prompt has of the body."""

    role: str
    body: str
    written: str = ""
    header: str = ""
    name: str = ""
    recipient: str = ""
    channel: str = ""
    opened: str = ""


@dataclass(slots=True)
class Turns:
    """open: the agent's turn that a prompt ends with, its body as it stands. has_marks: marks of turns that stay text.
    is_cut: the first turn has lost its beginning; is_led: no mark tells where the conversation begins."""

    turns: list[Turn] = field(default_factory=list)
    open: Turn | None = None
    has_marks: bool = False
    is_cut: bool = False
    is_led: bool = False

    def add(self, turn: Turn, format_: ChatFormat, *, may_be_open: bool = False) -> None:
        """With its body as the template was given it. may_be_open: it is the last one of a prompt."""
        closing = format_.closing.search(turn.body)
        is_closed = closing is not None and bool(closing[1])
        if may_be_open and turn.role == "assistant" and not is_closed:
            self.open = turn
            return
        body = turn.body if closing is None else turn.body[: closing.start()]
        self.has_marks |= format_.marks.search(body) is not None
        self.turns.append(replace(turn, body=body.strip() if format_.strips else body))


def split_text(text: str, format_: ChatFormat, *, is_prompt: bool = False) -> Turns:
    """A prompt, or a whole conversation: every header begins a turn. `Turns.open` is that of a prompt only."""
    found = Turns()
    headers = [
        (header, role)
        for header in format_.header.finditer(text)
        if (role := format_.role(header)) is not None
    ]
    start = headers[0][0].start() if headers else len(text)
    edge = format_.edge.match(text)
    at = 0 if edge is None else min(edge.end(), start)
    if text[at:start].strip():
        role, found.is_led = _leading_role(text[:start], headers, format_)
        found.is_cut = role != "system"
        found.add(Turn(role, text[at:start]), format_)
    elif headers and headers[0][1] == "assistant":
        found.is_cut = any(mark in text[:at] for mark in format_.ends if mark not in TOKENIZER_MARKS)
    if format_.spoken is not None and headers and not headers[0][0][0].startswith(format_.opens):
        found.is_led = True  # people write such headers too
    _add_turns(found, text, headers, format_, is_prompt=is_prompt)
    return found


def split_response(text: str, format_: ChatFormat, open_turn: Turn | None, *, trusts_marks: bool) -> Turns:
    """What a policy wrote. open_turn: the agent's turn that the prompt ends with. trusts_marks: headers begin turns of
    others too; without it they are text."""
    if open_turn is not None:
        open_turn, text = _continued(open_turn, text, format_)
    text = without_stop(text, format_)
    found, headers = Turns(), []
    is_begun = open_turn is not None and bool(open_turn.body.strip())
    for place, header in enumerate(format_.header.finditer(text)):
        role = format_.role(header)
        is_first = place == 0 and not is_begun and not text[: header.start()].strip()
        is_own = role == "assistant" and (format_.continues or is_first)
        if role is not None and (trusts_marks or is_own):
            headers.append((header, role))
    first = text[: headers[0][0].start()] if headers else text
    if is_begun or first.strip() or not headers or headers[0][1] != "assistant":
        turn = open_turn or Turn("assistant", "")
        found.add(replace(turn, body=turn.body + first, opened=turn.body), format_)
    _add_turns(found, text, headers, format_)
    return found


def without_stop(text: str, format_: ChatFormat) -> str:
    """Without the mark of the next turn at which a policy stopped."""
    stop = format_.stopping.search(text) if format_.stops else None
    return text if stop is None else text[: stop.start()]


def _add_turns(
    found: Turns,
    text: str,
    headers: list[tuple[PatternMatch, str]],
    format_: ChatFormat,
    *,
    is_prompt: bool = False,
) -> None:
    for place, (header, role) in enumerate(headers):
        is_last = place + 1 == len(headers)
        end = len(text) if is_last else headers[place + 1][0].start()
        turn = _turn(header, role, text[header.end() : end], format_)
        if role == "between" and turn.body.strip():
            turn.role, found.has_marks = "user", True  # no template writes text there
        is_empty = not turn.body.strip() and not is_last
        if turn.role != "between" and not (is_empty and is_inline(turn)):
            found.add(turn, format_, may_be_open=is_prompt and is_last)


def is_inline(turn: Turn) -> bool:
    """Whether the agent goes on there after the results of its calls, in the same turn."""
    return turn.written in ("<tool_response|>", "/TOOL_RESULTS", "tool▁output▁end", "tool▁outputs▁end")


def _turn(header: PatternMatch, role: str, body: str, format_: ChatFormat) -> Turn:
    turn = Turn(role, body, header[1].strip(), header[0])
    if format_.continues:
        written, name, to, channel, addressed = header.groups()
        turn.name = name or ("" if written == "tool" else written)
        turn.recipient, turn.channel = to or addressed or "", channel or ""
    return turn


def _leading_role(
    leading: str, headers: list[tuple[PatternMatch, str]], format_: ChatFormat
) -> tuple[str, bool]:
    """Whose the text before the first header is, and whether no mark says so."""
    if not headers or headers[0][1] != "user" or format_.leading is None:
        return "user", True
    if (known := format_.leading.match(leading)) is not None:
        return "system", known.end() < len(leading)
    closing = format_.closing.search(leading)
    return ("assistant" if closing is not None and closing[1] else "user"), True


def _continued(turn: Turn, response: str, format_: ChatFormat) -> tuple[Turn, str]:
    """The agent's turn with what the response completes of its header, and the rest of the response."""
    if turn.body:
        return turn, response
    text = turn.header + response
    header = format_.header.match(text)
    if header is None or header[1].strip() != turn.written or format_.role(header) != "assistant":
        return turn, response
    return _turn(header, "assistant", "", format_), text[header.end() :]
