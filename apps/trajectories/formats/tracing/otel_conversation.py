"""One conversation of the calls of a model that an agent made, each of which was sent all that came before it.

Clocks of several hosts differ and instrumentations disagree, so the histories that were sent say more than times do:
a call whose history ends with the answer of another came after it. A call that two instrumentations recorded, one
within the other, counts once. Of a history only what is new is added: what follows the longest end of the conversation
that it repeats, wherever its window begins.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from apps.trajectories.formats.tracing import otel_messages
from apps.trajectories.formats.tracing.otel_messages import Message
from apps.trajectories.formats.tracing.otel_spans import Span
from workers.schema.messages import decode_arguments

Key = tuple[Any, ...]


@dataclass(eq=False, slots=True)
class _ModelCall:
    span: Span
    asked: list[Message]
    answer: list[Message]
    history: list[Key] = field(default_factory=list)
    answer_key: Key = ()

    def __post_init__(self) -> None:
        self.history = [message_key(message) for message in self.asked]
        self.answer_key = tuple(message_key(message) for message in self.answer)


def conversation(spans: list[Span]) -> tuple[list[Message], dict[int, Span], list[Span]]:
    """The messages; by the index of each answer the span of its call; spans left out as copies of another."""
    calls, results = [], []
    for span in spans:
        if (tool := otel_messages.tool_result(span)) is not None:
            results.append((span, tool))
        elif answer := otel_messages.output_messages(span):
            calls.append(_ModelCall(span, otel_messages.input_messages(span), answer))
    calls, copies = _without_copies(calls, spans)
    messages: list[Message] = []
    keys: list[Key] = []
    answers: dict[int, Span] = {}  # by id() of the message
    for call in _in_order(calls):
        for message, key in _new_messages(call, keys):
            messages.append(message)
            keys.append(key)
        for message in call.answer:
            messages.append(message)
            keys.append(message_key(message))
            answers[id(message)] = call.span
    messages = _with_results(messages, results, answers)
    of_answer = {
        index: answers[id(message)] for index, message in enumerate(messages) if id(message) in answers
    }
    return messages, of_answer, copies


def message_key(message: Message) -> Key:
    """Equal for messages that say the same: instrumentations tell less of a message that was sent than of an answer,
    and differ in the space around a text."""
    content = message.get("content")
    text = (
        content.strip()
        if isinstance(content, str)
        else json.dumps(content, sort_keys=True)
        if content
        else ""
    )
    calls = tuple(
        (call["id"], call["function"]["name"], _arguments_key(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    )
    return message["role"], text, message.get("tool_call_id") or "", calls


def _arguments_key(arguments: Any) -> str:
    decoded = decode_arguments(arguments)[0]
    return decoded if isinstance(decoded, str) else json.dumps(decoded, sort_keys=True)


def _without_copies(calls: list[_ModelCall], spans: list[Span]) -> tuple[list[_ModelCall], list[Span]]:
    """Without calls within another call that has the same answer; and what was left out."""
    parents = {span["id"]: span["parent"] for span in spans}
    kept: dict[str, _ModelCall] = {}
    copies = []
    for call in sorted(calls, key=lambda call: _depth(call.span["id"], parents)):
        above, seen = call.span["parent"], {call.span["id"]}
        while above in parents and above not in seen:
            if above in kept and kept[above].answer_key == call.answer_key:
                break
            seen.add(above)
            above = parents[above]
        else:
            kept[call.span["id"]] = call
            continue
        copies.append(call.span)
    return [call for call in calls if kept.get(call.span["id"]) is call], copies


def _depth(name: str, parents: dict[str, str]) -> int:
    seen: set[str] = set()
    while name in parents and name not in seen:
        seen.add(name)
        name = parents[name]
    return len(seen)


def _in_order(calls: list[_ModelCall]) -> list[_ModelCall]:
    """By their start, but never before the call whose answer is the last in their history."""
    by_answer: dict[Key, list[_ModelCall]] = {}
    for call in calls:
        by_answer.setdefault(call.answer_key[-1] if call.answer_key else (), []).append(call)
    before: dict[int, _ModelCall] = {}
    for call in calls:
        for key in reversed(call.history):
            found = [
                other
                for other in by_answer.get(key, ())
                if other is not call and len(other.history) < len(call.history)
            ]
            if key[0] == "assistant" and found:
                before[id(call)] = max(found, key=lambda other: len(other.history))
                break
    out: list[_ModelCall] = []
    done: set[int] = set()

    def place(call: _ModelCall) -> None:
        chain: list[_ModelCall] = []
        waiting: _ModelCall | None = call
        while waiting is not None and id(waiting) not in done:
            done.add(id(waiting))  # a circle ends where it began
            chain.append(waiting)
            waiting = before.get(id(waiting))
        out.extend(reversed(chain))

    for call in calls:
        place(call)
    return out


def _new_messages(call: _ModelCall, keys: list[Key]) -> list[tuple[Message, Key]]:
    """What of a call's history is not in the conversation yet, which ends with an answer."""
    asked = list(zip(call.asked, call.history, strict=True))
    start, length = _overlap(call.history, keys)
    if length:
        known = Counter(keys)
        return [*(pair for pair in asked[:start] if pair[1] not in known), *asked[start + length :]]
    shared = 0
    while shared < min(len(asked), len(keys)) and call.history[shared] == keys[shared]:
        shared += 1
    rest = Counter(keys[shared:])
    found = []
    for message, key in asked[shared:]:
        if rest[key] > 0:
            rest[key] -= 1
        else:
            found.append((message, key))
    return found


def _overlap(history: list[Key], keys: list[Key]) -> tuple[int, int]:
    """Where in a history the longest run lies that is also the end of the conversation: (start, length)."""
    best = (0, 0)
    if not keys:
        return best
    for end in range(len(history), 0, -1):
        if history[end - 1] != keys[-1] or end <= best[1]:
            continue
        length = 0
        while length < min(end, len(keys)) and history[end - 1 - length] == keys[-1 - length]:
            length += 1
        if length > best[1]:
            best = (end - length, length)
    return best


def _with_results(
    messages: list[Message], results: Iterable[tuple[Span, Message]], answers: dict[int, Span]
) -> list[Message]:
    """With the results of tools' spans behind the calls that no history shows a result of.

    An id that is used in several turns names another call in each: the results of its spans go to them in turn.
    """
    waiting: dict[str, list[tuple[Span, Message]]] = {}
    for span, tool in results:
        identity = tool.get("tool_call_id") or f"name:{tool.get('name')}"
        waiting.setdefault(identity, []).append((span, tool))
    places = _places(messages)
    out: list[Message] = []
    for index, message in enumerate(messages):
        out.append(message)
        for call in message.get("tool_calls") or ():
            name = str(call["function"]["name"])
            identity = call["id"] if call["id"] in waiting else f"name:{name}" if not call["id"] else ""
            queue = waiting.get(identity)
            if not queue:
                continue
            uses = places.get(call["id"] or f"name:{name}", [index])
            if len(queue) < len([place for place in uses if place >= index]) and not _is_between(
                queue[0][0], message, messages, uses, index, answers
            ):
                continue
            _, tool = queue.pop(0)
            if not _is_answered(call, message, messages, index):
                out.append(tool)
    return out


def _places(messages: list[Message]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        for call in message.get("tool_calls") or ():
            found.setdefault(call["id"] or f"name:{call['function']['name']}", []).append(index)
    return found


def _is_between(
    span: Span,
    message: Message,
    messages: list[Message],
    uses: list[int],
    index: int,
    answers: dict[int, Span],
) -> bool:
    """Whether a tool ran after this call and before the next one with its id, where there are fewer runs than calls."""
    later = next((answers.get(id(messages[place])) for place in uses if place > index), None)
    return later is None or span["start"] <= later["start"]


def _is_answered(call: dict[str, Any], message: Message, messages: list[Message], index: int) -> bool:
    """Whether a result of the call is among the messages before the next call with its id."""
    for later in messages[index + 1 :]:
        if later["role"] == "tool" and call["id"] and later.get("tool_call_id") == call["id"]:
            return True
        if later["role"] == "tool" and not call["id"] and not later.get("tool_call_id"):
            return True
        if any(other["id"] == call["id"] for other in later.get("tool_calls") or ()):
            return False
    return False
