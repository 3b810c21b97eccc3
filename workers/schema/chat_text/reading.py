"""From rendered text to chat messages, with flags for what could not be read back."""

from dataclasses import dataclass, field
from typing import Any

from workers.schema.chat_text.formats import TRAILING_MARKS, ChatFormat, detect_format
from workers.schema.chat_text.messages import MessageReader
from workers.schema.chat_text.turns import Turns, split_turns

Json = dict[str, Any]
IN_TEXT = "template_in_text"


@dataclass(frozen=True, slots=True)
class ReadText:
    """prompt, response: chat messages. flags: what the text does not tell, or what was left as text."""

    prompt: list[Json]
    response: list[Json]
    flags: tuple[str, ...] = ()
    format: ChatFormat | None = field(default=None, compare=False)

    @property
    def messages(self) -> list[Json]:
        return [*self.prompt, *self.response]


def read_pair(prompt: str, response: str, named: ChatFormat | None = None) -> ReadText | None:
    """A rendered prompt with its response; None where the prompt is plain text. named: the policy's template, which the
    endpoint knows: only then do marks in a response begin turns of others."""
    format_ = named if named is not None and named.header.search(prompt) else detect_format(prompt)
    if format_ is None:
        return None
    text = prompt + response
    turns = split_turns(text, format_, boundary=len(prompt), trusts_response=format_ is named)
    if not any(turn.role == "assistant" and turn.is_own for turn in turns.turns):
        # The prompt has no open turn of the agent's, so what follows it is one.
        turns = split_turns(prompt, format_, boundary=len(prompt), trusts_response=True)
        before, flags = _messages(turns, format_)
        body, has_marks = _plain_response(response, format_)
        flags |= {IN_TEXT} if has_marks else set()
        return ReadText(before, [{"role": "assistant", "content": body}], tuple(sorted(flags)), format_)
    reader = MessageReader(format_)
    own = next(place for place, turn in enumerate(turns.turns) if turn.role == "assistant" and turn.is_own)
    before = reader.read(turns.turns[:own], is_followed=True)
    after = reader.read(turns.turns[own:])
    return ReadText(before, after, _flags(turns, reader), format_)


def read_whole(text: str, named: ChatFormat | None = None) -> ReadText | None:
    """A rendered conversation, which ends with a turn of the agent's; None for plain text, and for a prompt alone.

    Flagged where several turns of the agent's are read: nothing distinguishes the policy's words from others'.
    """
    format_ = named if named is not None and named.header.search(text) else detect_format(text)
    if format_ is None:
        return None
    turns = split_turns(text, format_, boundary=len(text), trusts_response=True)
    reader = MessageReader(format_)
    messages = reader.read(turns.turns)
    agent = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    if not agent:
        return None
    flags = set(_flags(turns, reader))
    if format_ is not named and any(
        message["role"] != "assistant" for message in messages[agent[0] : agent[-1]]
    ):
        flags.add("turns_in_text")
    return ReadText([], messages, tuple(sorted(flags)), format_)


def strip_end_marks(text: str) -> str:
    """A response without the end and pad marks that a tokenizer's decoding leaves."""
    trailing = TRAILING_MARKS.search(text)
    return text if trailing is None else text[: trailing.start()]


def _messages(turns: Turns, format_: ChatFormat) -> tuple[list[Json], set[str]]:
    reader = MessageReader(format_)
    messages = reader.read(turns.turns)
    return messages, set(_flags(turns, reader))


def _flags(turns: Turns, reader: MessageReader) -> tuple[str, ...]:
    flags = set(reader.flags)
    if turns.has_marks:
        flags.add(IN_TEXT)
    if turns.is_cut:
        flags.add("prompt_cut")
    return tuple(sorted(flags))


def _plain_response(response: str, format_: ChatFormat) -> tuple[str, bool]:
    body = strip_end_marks(response)
    has_marks = format_.header.search(body) is not None or any(mark in body for mark in format_.ends)
    return body.strip() if format_.strips else body, has_marks
