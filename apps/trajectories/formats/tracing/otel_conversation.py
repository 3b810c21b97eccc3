"""One conversation of the calls of a model that an agent made, each of which was sent all that came before it.

Clocks of several hosts differ and instrumentations disagree, so the histories that were sent say more than times do:
a call whose history ends with the answer of another came after it. A call that two instrumentations recorded, one
within the other, counts once. Of a history only what is new is added: what follows the longest end of the conversation
that it repeats, wherever its window begins.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from apps.trajectories.formats.tracing.otel_spans import Span
from apps.trajectories.formats.tracing.span_content import Message, SpanContent
from apps.trajectories.formats.tracing.tool_spans import call_id, calls_in, function_name, with_results
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


def conversation(
    spans: list[Span], contents: dict[str, SpanContent]
) -> tuple[list[Message], dict[int, Span], list[Span]]:
    """The messages; by the index of each answer the span of its call; spans left out as copies of another.

    contents: of each span, by its id.
    """
    calls, results = [], []
    for span in spans:
        found = contents[span["id"]]
        if found.kind == "tool" and found.result is not None:
            results.append((span, found.result))
        elif found.kind == "model" and found.answer:
            calls.append(_ModelCall(span, found.asked, found.answer))
    if not calls:
        return _without_calls(spans, contents)
    results += _functions(spans, contents, calls)
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
    messages = with_results(messages, results, answers)
    of_answer = {
        index: answers[id(message)] for index, message in enumerate(messages) if id(message) in answers
    }
    return messages, of_answer, copies


def _functions(
    spans: list[Span], contents: dict[str, SpanContent], calls: list[_ModelCall]
) -> list[tuple[Span, Message]]:
    """Spans that nothing says are tools, but that have the name of a function that the model called."""
    names = {function_name(call) for each in calls for said in each.answer for call in calls_in(said)}
    return [
        (
            span,
            {
                "role": "tool",
                "tool_call_id": None,
                "name": span["name"],
                "content": found.answer[-1]["content"],
            },
        )
        for span in spans
        if (found := contents[span["id"]]).kind == "chain" and found.answer and span["name"] in names
    ]


def whole_run(spans: list[Span], contents: dict[str, SpanContent]) -> Span | None:
    """The outermost span that says what an agent was given and gave back, where no call of a model does."""
    parents = {span["id"]: span["parent"] for span in spans}
    found = [
        span
        for span in spans
        if contents[span["id"]].kind in ("agent", "chain", "") and contents[span["id"]].answer
    ]
    return min(found, key=lambda span: (_depth(span["id"], parents), span["start"]), default=None)


def _without_calls(
    spans: list[Span], contents: dict[str, SpanContent]
) -> tuple[list[Message], dict[int, Span], list[Span]]:
    """Of a run whose calls of a model were not recorded: what went in, the tools that ran, and what came out."""
    run = whole_run(spans, contents)
    if run is None:
        return [], {}, []
    given = contents[run["id"]]
    messages = list(given.asked)
    if not any(message["role"] == "assistant" for message in messages):
        for span in spans:
            tool = contents[span["id"]]
            if tool.kind == "tool" and tool.result is not None:
                messages += _ran(span, tool)
    return [*messages, *given.answer], {len(messages): run}, []


def _ran(span: Span, tool: SpanContent) -> list[Message]:
    """A tool that ran, as the call that must have been and its result."""
    result = tool.result or {}
    identity = result.get("tool_call_id") or span["id"]
    name = result.get("name") or span["name"]
    arguments = tool.arguments if isinstance(tool.arguments, dict | str) else json.dumps(tool.arguments)
    call = {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": identity, "content": result.get("content")},
    ]


def message_key(message: Message) -> Key:
    """Equal for messages that say the same: instrumentations tell less of a message that was sent than of an answer,
    and differ in the space around a text, and in whether a text is a list of one part."""
    calls = tuple(
        (call_id(call), function_name(call), _arguments_key(_function(call).get("arguments")))
        for call in calls_in(message)
    )
    return (
        message["role"],
        _text_key(message.get("content")),
        _plain(message.get("tool_call_id")) or "",
        calls,
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | None) else json.dumps(value, sort_keys=True)


def _function(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    return function if isinstance(function, dict) else {}


def _text_key(content: Any) -> str:
    if isinstance(content, list) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in content
    ):
        content = "\n".join(part["text"] for part in content)
    return (
        content.strip()
        if isinstance(content, str)
        else json.dumps(content, sort_keys=True)
        if content
        else ""
    )


def _arguments_key(arguments: Any) -> str:
    if not isinstance(arguments, str | dict):
        return json.dumps(arguments, sort_keys=True)
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
