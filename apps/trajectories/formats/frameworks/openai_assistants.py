"""Threads of OpenAI's Assistants API: objects `thread.message` and `thread.run.step`, in lists ({"object": "list",
"data"}) or next to the `run` they are of. They are put in the order they were made in, which lists reverse.

A step of the type `tool_calls` has its calls with what they gave back; one of the type `message_creation` names the
message, whose usage is the step's.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.chat.openai import with_system
from apps.trajectories.formats.placed import MessageReader, Placed, object_at, objects, storable, text_at
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.decode import require_object
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "lists of objects with `object` thread.message or thread.run.step, of OpenAI's Assistants API"
Message = dict[str, Any]
_MESSAGE, _STEP, _RUN = "thread.message", "thread.run.step", "thread.run"
_TIED = ("id", "type", "function", "code_interpreter", "file_search", "retrieval")
_OUTPUTS = ("output", "outputs", "results")
_EMPTY: tuple[Any, ...] = (None, "", [], {})
READ = tuple(
    f"{at}/step_details/tool_calls/*/{key}"
    for at in ("/steps/*", "/run_steps/*", "/data/*")
    for key in ("function/arguments", "function/output", "code_interpreter/input", "type")
)


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and any(
        each.get("object") in (_MESSAGE, _STEP) for _, each in _objects(document)
    )


def _objects(document: dict[str, Any]) -> Iterator[tuple[str, Message]]:
    """The objects of its lists, each with its place."""
    for key, value in document.items():
        held = value.get("data") if isinstance(value, dict) and value.get("object") == "list" else value
        at = f"/{key}/data" if held is not value else f"/{key}"
        if isinstance(held, list):
            yield from ((f"{at}/{index}", each) for index, each in enumerate(held) if isinstance(each, dict))


@storable
def read(document: Any) -> Trajectory:
    document = require_object(document)
    found = [(at, each) for at, each in _objects(document) if each.get("object") in (_MESSAGE, _STEP)]
    found.sort(key=lambda placed: _made_at(placed[1]))
    made = {
        text_at(object_at(object_at(each, "step_details"), "message_creation"), "message_id"): each
        for _, each in found
        if each["object"] == _STEP
    }
    messages: list[Placed] = []
    for at, each in found:
        if each["object"] == _MESSAGE:
            messages.append((at, _spoken(each, made.get(text_at(each, "id"), {}))))
        else:
            messages += [(at, message) for message in _called(each)]
    if not messages:
        raise InvalidRecord("has no messages, so it holds no run; leave it out.")
    steps, facts = MessageReader(usage=lambda message: message.get("usage")).read(messages)
    run = object_at(document, "run")
    around = {
        key: value for key, value in document.items() if not isinstance(value, list) and key != "object"
    }
    failed = run.get("status") in ("failed", "expired", "cancelled", "incomplete")
    return build_trajectory(
        with_system(steps, run.get("instructions"), "instructions"),
        Task(id=""),
        id=text_at(run, "id") or text_at(found[0][1], "thread_id") or None,
        agent=text_at(run, "model"),
        success=False if failed else None,
        metadata=facts | ({"model": run["model"]} if text_at(run, "model") else {}) | around,
    )


def _made_at(item: Message) -> float:
    value = item.get("created_at")
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _spoken(message: Message, step: Message) -> Message:
    """step: that made the message; empty for none."""
    rest = {
        key: value for key, value in message.items() if key not in ("role", "content") and value not in _EMPTY
    }
    return {"role": message.get("role"), "content": message.get("content"), "message": rest} | _about(step)


def _about(step: Message) -> Message:
    """The usage of a step, and what is known of it besides."""
    rest = {
        key: value
        for key, value in step.items()
        if key not in ("step_details", "usage") and value not in _EMPTY
    }
    details = object_at(step, "step_details")
    rest |= (
        {"details": {key: value for key, value in details.items() if key != "tool_calls"}} if details else {}
    )
    usage = object_at(step, "usage")
    if others := {key: value for key, value in usage.items() if not isinstance(value, int | float)}:
        rest["usage"] = others
    return ({"step": rest} if rest else {}) | ({"usage": usage} if usage else {})


def _called(step: Message) -> Iterator[Message]:
    """Of a step that called tools, the calls and what they gave back."""
    calls = objects(object_at(step, "step_details").get("tool_calls"))
    if not calls:
        return
    made = [_call(call) for call in calls]
    yield {"role": "assistant", "content": None, "tool_calls": made} | _about(step)
    for call in calls:
        body = object_at(call, *_TIED[2:])
        output = body.get("output", body.get("outputs", body.get("results")))
        if output not in _EMPTY:
            yield {"role": "tool", "tool_call_id": call.get("id"), "content": _output(output)}


def _call(call: Message) -> Message:
    """A tool call of a step; what its tool has besides the arguments and the result is kept."""
    body = object_at(call, *_TIED[2:])
    known = ("name", "arguments", *_OUTPUTS) if "function" in call else ("input", *_OUTPUTS)
    rest = {key: value for key, value in call.items() if key != "id" and value is not body}
    rest |= {key: value for key, value in body.items() if key not in known} if "function" in call else {}
    function = {"name": _name(call), "arguments": _arguments(call)}
    return {"id": call.get("id"), "type": "function", "function": function, "called": rest}


def _name(call: Message) -> str:
    return text_at(object_at(call, "function"), "name") or text_at(call, "type") or "tool"


def _arguments(call: Message) -> Any:
    if function := object_at(call, "function"):
        return function.get("arguments") or {}
    body = object_at(call, *_TIED[3:])
    return {key: value for key, value in body.items() if key not in _OUTPUTS}


def _output(value: Any) -> Any:
    """Of the code interpreter, logs as text and pictures by the id of their file."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return result_content(value)
    return [
        {"type": "text", "text": each["logs"]}
        | {key: each[key] for key in each if key not in ("type", "logs")}
        if isinstance(each.get("logs"), str)
        else each
        for each in value
    ]
