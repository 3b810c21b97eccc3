"""Transcripts of Antigravity's agent (`.system_generated/logs/transcript.jsonl`), a step a line.

{"step_index", "source": "USER_EXPLICIT" | "MODEL" | "SYSTEM", "type", "status", "created_at", "content"}. A
PLANNER_RESPONSE is what the model says, with its `thinking` and `tool_calls`, whose arguments are JSON in texts; every
other step of the MODEL is what a tool gave back: of the first call without a result that its type names (VIEW_FILE of
view_file, LIST_DIRECTORY of list_dir), else of the first one.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.coding_agents.session import prompt_task
from apps.trajectories.formats.event_log import event_log, same_file
from apps.trajectories.formats.placed import Placed, objects, steps_of, storable, text_at
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, parse_json
from workers.schema.decode import require_list
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "steps with a `step_index`, `source`, `type` and `status` of Antigravity"
Message = dict[str, Any]
_KEYS = frozenset(("step_index", "source", "type", "status"))
_ANSWER, _PROMPT = "PLANNER_RESPONSE", "USER_INPUT"
_KNOWN = ("content", "thinking", "tool_calls")
_ASKED = ("<USER_REQUEST>", "</USER_REQUEST>")
READ = ("/*/tool_calls/*/args", "/*/tool_calls/*/args/*")


def _is_step(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() >= _KEYS
        and isinstance(value["step_index"], int)
        and all(isinstance(value[key], str) and value[key].isupper() for key in ("source", "type"))
    )


def _is_answer(step: Any) -> bool:
    return isinstance(step, dict) and step.get("type") == _ANSWER


Gathered = event_log(answers=_is_answer, within=same_file)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_step, document[:3]))
    return _is_step(document)


@storable
def read(document: Any) -> Trajectory:
    messages: list[Placed] = []
    others: list[Message] = []
    calls = _OpenCalls()
    for index, step in enumerate(objects(require_list(document))):
        found = _messages(step, calls)
        messages += [(f"/{index}", message) for message in found]
        if not found:
            others.append(step)
    if not messages:
        raise InvalidRecord("has no messages, so it holds no run; leave it out.")
    steps = steps_of(messages)
    return build_trajectory(
        steps,
        _task(prompt_task(steps)),
        agent="Antigravity",
        metadata={"events": others} if others else {},
    )


def _task(task: Task) -> Task:
    """Without what the client tells next to the request."""
    _, begins, rest = task.instruction.partition(_ASKED[0])
    asked, ends, _ = rest.partition(_ASKED[1])
    return replace(task, instruction=asked.strip()) if begins and ends and asked.strip() else task


class _OpenCalls:
    """The calls since the last request that have no result, each with the id that ties its result to it."""

    def __init__(self) -> None:
        self._waiting: list[Message] = []
        self._count = 0

    def add(self, calls: list[Message]) -> None:
        for call in calls:
            self._count += 1
            call["id"] = text_at(call, "id") or f"call-{self._count}"
        self._waiting += calls

    def clear(self) -> None:
        self._waiting = []

    def answered_by(self, kind: str) -> str | None:
        """The id of the call that a step of the type `kind` answers; None where none waits."""
        named = [call for call in self._waiting if kind.startswith(str(call["function"]["name"]).upper())]
        call = next(iter([*named, *self._waiting]), None)
        if call is None:
            return None
        self._waiting.remove(call)
        return str(call["id"])


def _messages(step: Message, waiting: _OpenCalls) -> list[Message]:
    about = {
        key: value for key, value in step.items() if key not in _KNOWN and value not in (None, "", [], {})
    }
    content, kind, source = step.get("content"), text_at(step, "type"), text_at(step, "source")
    calls = [_call(call) for call in objects(step.get("tool_calls"))]
    thoughts = {"reasoning_content": step["thinking"]} if text_at(step, "thinking") else {}
    if kind == _ANSWER:
        waiting.add(calls)
        called = {"tool_calls": calls} if calls else {}
        return [{"role": "assistant", "content": content, "event": about} | thoughts | called]
    if content in (None, "", [], {}) and not calls:
        return []
    if kind == _PROMPT or source.startswith("USER"):
        waiting.clear()
        return [{"role": "user", "content": content, "event": about}]
    if source == "SYSTEM":
        return [{"role": "system", "content": content, "event": about}]
    called_here = [{"role": "assistant", "content": None, "tool_calls": calls} | thoughts] if calls else []
    waiting.add(calls)
    result = {"role": "tool", "tool_call_id": waiting.answered_by(kind), "content": result_content(content)}
    return [*called_here, result | {"event": about}]


def _call(call: Message) -> Message:
    args = call.get("args")
    arguments = {key: _decoded(value) for key, value in args.items()} if isinstance(args, dict) else args
    rest = {key: value for key, value in call.items() if key not in ("id", "name", "args")}
    function = {"name": call.get("name"), "arguments": arguments or {}}
    return {"id": call.get("id"), "type": "function", "function": function} | rest


def _decoded(value: Any) -> Any:
    """An argument, which is JSON in a text; what is none stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except InvalidRecord:
        return value
