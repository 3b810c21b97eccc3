"""From rendered text to chat messages, with flags for what could not be read back."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from workers.schema.chat_text.detection import detect_format
from workers.schema.chat_text.formats import ChatFormat
from workers.schema.chat_text.messages import MessageReader
from workers.schema.chat_text.tool_calls import mentions_calls
from workers.schema.chat_text.turns import Turns, split_response, split_text, without_stop

Json = dict[str, Any]
IN_TEXT, TURNS_IN_TEXT = "template_in_text", "turns_in_text"


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
    format_ = detect_format(prompt, is_prompt=True, named=named)
    if format_ is None:
        return None
    before = split_text(prompt, format_, is_prompt=True)
    after = split_response(response, format_, before.open, trusts_marks=format_ is named)
    reader = MessageReader(format_)
    asked = reader.read(before.turns, is_followed=True)
    answered = reader.read(after.turns)
    return ReadText(asked, answered, _flags(reader, before, after, response=answered), format_)


def read_response(response: str, named: ChatFormat) -> ReadText | None:
    """A response to chat messages, by the policy's template, which the endpoint names; None for plain text."""
    if named.marks.search(response) is None and not mentions_calls(response):
        return None
    after = split_response(response, named, None, trusts_marks=True)
    reader = MessageReader(named)
    answered = reader.read(after.turns)
    return ReadText([], answered, _flags(reader, after, response=answered), named)


def read_prompt(prompt: str, named: ChatFormat | None = None) -> ReadText | None:
    """A rendered prompt whose response is known as messages. Words that open the agent's turn are a message."""
    format_ = detect_format(prompt, is_prompt=True, named=named)
    if format_ is None:
        return None
    before = split_text(prompt, format_, is_prompt=True)
    reader = MessageReader(format_)
    asked = reader.read(before.turns, is_followed=True)
    if before.open is not None:
        before.add(before.open, format_)
        opened = reader.read(before.turns[-1:])
        asked += [message for message in opened if any(message.get(key) for key in _SAID)]
    return ReadText(asked, [], _flags(reader, before), format_)


def read_whole(text: str, named: ChatFormat | None = None) -> ReadText | None:
    """A rendered conversation, which ends with a turn of the agent's; None for plain text, and for a prompt alone.

    Flagged where anything follows the agent's first turn, or no mark tells where the conversation begins: nothing
    distinguishes the policy's words from others'.
    """
    format_ = detect_format(text, named=named)
    if format_ is None:
        return None
    turns = split_text(without_stop(text, format_), format_)
    reader = MessageReader(format_)
    messages = reader.read(turns.turns)
    agent = next((place for place, message in enumerate(messages) if message["role"] == "assistant"), None)
    if agent is None:
        return None
    flags = set(_flags(reader, turns))
    if format_ is not named and (turns.is_led or len(messages) > agent + 1):
        flags.add(TURNS_IN_TEXT)
    return ReadText([], messages, tuple(sorted(flags)), format_)


_SAID = ("content", "reasoning_content", "tool_calls")


def _flags(reader: MessageReader, *parts: Turns, response: Iterable[Json] = ()) -> tuple[str, ...]:
    """response: its messages; those of a user or a system in it the policy may have written."""
    flags = set(reader.flags)
    if any(message["role"] in ("user", "system") for message in response):
        flags.add(TURNS_IN_TEXT)
    if any(part.has_marks for part in parts):
        flags.add(IN_TEXT)
    if any(part.is_cut for part in parts):
        flags.add("prompt_cut")
    return tuple(sorted(flags))
