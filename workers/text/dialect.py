"""Detects what a chat template supports, and adapts the messages of a trajectory so that all content is shown.

Templates differ: some know no tools, some no system message, some insist that user and assistant take turns. What a
template does not support is written into the text of messages, so that no content is lost.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

from workers.errors import RewardError
from workers.schema import Step, ToolCall
from workers.schema.part_text import parts_text
from workers.schema.patterns import TextPattern, quote
from workers.schema.tool_results import call_places

Message = dict[str, Any]
Show = Callable[[list[Message]], str]

_ASK: Message = {"role": "user", "content": "QUESTION"}
_TOLD: Message = {"role": "assistant", "content": "ANSWER"}
_SYSTEM: Message = {"role": "system", "content": "POLICY"}
_CALL: Message = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "c00000001", "type": "function", "function": {"name": "FIND", "arguments": {"x": "WHERE"}}}
    ],
}
_RESULT: Message = {"role": "tool", "tool_call_id": "c00000001", "name": "FIND", "content": "RESULT"}
_THOUGHT: Message = {"role": "assistant", "content": "ANSWER", "reasoning_content": "BECAUSE"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The features of a template. parts: it takes contents as lists of parts only.

    special: text of special tokens, which content must not contain.
    """

    parts: bool
    system: bool
    tools: bool
    reasoning: bool
    free_turns: bool
    special: TextPattern | None

    @classmethod
    def of(cls, show: Show, special: Sequence[str]) -> "Dialect":
        """Raises RewardError for a template that does not even show a question and its answer."""
        parts = not _shows(show, [_ASK, _TOLD], "QUESTION", "ANSWER")
        if parts:
            plain = show

            def show(messages: list[Message]) -> str:
                return plain(in_parts(messages))

            if not _shows(show, [_ASK, _TOLD], "QUESTION", "ANSWER"):
                raise RewardError(
                    "the decoder's chat template shows no question with its answer; give it another."
                )
        return cls(
            parts=parts,
            system=_shows(show, [_SYSTEM, _ASK, _TOLD], "POLICY"),
            tools=_shows(show, [_ASK, _CALL, _RESULT, _TOLD], "FIND", "WHERE", "RESULT"),
            reasoning=_shows(show, [_ASK, _THOUGHT], "BECAUSE"),
            free_turns=_shows(show, [_TOLD, _ASK, _ASK, _TOLD, _TOLD]),
            special=TextPattern("|".join(map(quote, sorted(special, key=len, reverse=True))))
            if special
            else None,
        )

    def messages(self, steps: Sequence[Step]) -> list[list[Message]]:
        """By step. Each step's own depend on it and those before it only."""
        found = [self._of_step(step) for step in steps]
        if not self.system:
            found = _system_to_user(found)
        return found if self.free_turns else _taking_turns(found)

    def _of_step(self, step: Step) -> list[Message]:
        if step.source == "environment":
            return [self._message("user", parts_text(result.content)) for result in step.observation]
        text = parts_text(step.message)
        if step.source != "agent":
            return [self._message(step.source, text)]
        if step.reasoning and not self.reasoning:
            text = f"<think>\n{step.reasoning}\n</think>\n\n{text}"
        calls = step.tool_calls if self.tools else ()
        if not self.tools:
            text = "\n".join(
                [*([text] if text else []), *(f"{c.name}({_arguments_text(c)})" for c in step.tool_calls)]
            )
        message = self._message("assistant", text)
        if step.reasoning and self.reasoning:
            message["reasoning_content"] = self._plain(step.reasoning)
        # Nine characters: some templates insist on it.
        ids = [f"call{place:05d}" for place in range(len(calls))]
        if calls:
            message["tool_calls"] = [
                {
                    "id": id_,
                    "type": "function",
                    "function": {"name": self._plain(c.name), "arguments": self._arguments(c.arguments)},
                }
                for id_, c in zip(ids, calls, strict=True)
            ]
        results = []
        places = call_places(step) if calls else [None] * len(step.observation)
        for result, call in zip(step.observation, places, strict=True):
            result_message = self._message("tool" if calls else "user", parts_text(result.content))
            if call is not None:
                result_message |= {"tool_call_id": ids[call], "name": self._plain(calls[call].name)}
            results.append(result_message)
        return [message, *results]

    def _message(self, role: str, text: str) -> Message:
        return {"role": role, "content": self._plain(text)}

    def _arguments(self, arguments: Any) -> Any:
        """Templates take an object. Text that is none is its only member."""
        if isinstance(arguments, str):
            return {"__raw__": self._plain(arguments)}
        text = json.dumps(arguments, ensure_ascii=False)
        return arguments if self._plain(text) == text else json.loads(self._plain(text))

    def _plain(self, text: str) -> str:
        """Breaks special tokens in content, so that it cannot end a turn."""
        return (
            text
            if self.special is None
            else self.special.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)
        )


def _arguments_text(call: ToolCall) -> str:
    """One text for arguments that mean the same: how their JSON was spaced says nothing."""
    arguments = call.arguments
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def in_parts(messages: list[Message]) -> list[Message]:
    return [message | {"content": [{"type": "text", "text": message["content"]}]} for message in messages]


def _shows(show: Show, messages: list[Message], *wanted: str) -> bool:
    try:
        text = show(messages)
    except (TemplateError, TypeError, KeyError, IndexError, ValueError, AttributeError):
        return False  # what templates raise where they are not made for it
    return all(word in text for word in wanted)


def _system_to_user(found: list[list[Message]]) -> list[list[Message]]:
    return [
        [message | {"role": "user"} if message["role"] == "system" else message for message in messages]
        for messages in found
    ]


def _taking_turns(found: list[list[Message]]) -> list[list[Message]]:
    """User and assistant by turns, the user first; tool results count as the assistant's part. A turn that is missing
    says nothing; what users say one after the other is one turn."""
    out: list[list[Message]] = []
    last: Message | None = None
    for messages in found:
        mine: list[Message] = []
        for message in messages:
            role = message["role"]
            if role == "user" and last is not None and last["role"] == "user" and not _is_closed(out, mine):
                last["content"] += "\n\n" + message["content"]  # ours: created by `_message`
                continue
            if role == "user" and last is not None and last["role"] == "user":
                mine.append({"role": "assistant", "content": ""})
            elif role == "assistant" and (last is None or last["role"] not in ("user", "tool")):
                mine.append({"role": "user", "content": ""})
            mine.append(message)
            last = message
        out.append(mine)
    return out


def _is_closed(out: list[list[Message]], mine: list[Message]) -> bool:
    """Whether the last message belongs to an agent step that has ended: it may not change any more."""
    if mine:
        return False
    before = next((messages for messages in reversed(out) if messages), [])
    return any(message["role"] == "assistant" for message in before)
