"""Events of a run of Agno or of one of its teams, as `agent.run(stream=True)` gives them: {"event": "RunContent" |
"ToolCallStarted" | "ToolCallCompleted" | "RunCompleted" | ..., "run_id", "agent_id" | "team_id", "content", "tool"}.

What was asked is in no event. Pieces of what was said are put together; what `RunCompleted` repeats is not read again.
"""

from typing import Any

from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import metered, object_at, objects, spoken, storable, text_at
from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, from_messages
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "events with an `event` such as RunContent or ToolCallStarted, a `run_id` and an `agent_id`, of Agno"
_PREFIXES = tuple(
    f"{of}{kind}" for of in ("", "Team") for kind in ("Run", "ToolCall", "Reasoning", "ModelRequest")
)
_ANSWERS = ("RunContent", "RunCompleted", "ToolCallStarted")
_PIECE = "a piece of the run, which is read put together"
LEFT_OUT = {
    f"/*/{key}": _PIECE for key in ("event", "content", "created_at", "content_type", "reasoning_content")
}
REPEATED = (
    "/*/tool",
    "/*/run_id",
    "/*/session_id",
    "/*/agent_id",
    "/*/agent_name",
    "/*/team_id",
    "/*/team_name",
)
_SHARED = ("session_id", "agent_id", "team_id", "workflow_id", "parent_run_id", "model_provider")


def _kind(event: Any) -> str:
    """The kind of an event, without the mark of a team; empty for what is none of Agno's."""
    name = event.get("event") if isinstance(event, dict) else None
    if not isinstance(name, str) or not isinstance(event.get("run_id"), str):
        return ""
    is_named = any(
        isinstance(event.get(key), str) for key in ("agent_id", "team_id", "agent_name", "team_name")
    )
    return name.removeprefix("Team") if is_named and name.startswith(_PREFIXES) else ""


def _run(event: Any) -> str | None:
    return str(event["run_id"]) if _kind(event) else None


Gathered = event_log(key=_run, answers=lambda event: _kind(event) in _ANSWERS)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_kind, document[:3]))
    return bool(_kind(document))


class _AgnoRun:
    """The messages of a run, while its events come."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._turn: dict[str, Any] | None = None
        self._written = ""

    def turn(self) -> dict[str, Any]:
        if self._turn is None:
            self._turn = {"role": "assistant", "content": None}
            self.messages.append(self._turn)
        return self._turn

    def say(self, event: dict[str, Any]) -> None:
        if (content := event.get("content")) not in (None, ""):
            turn = self.turn()
            turn["content"] = (turn["content"] or "") + _text(content)
            self._written += _text(content)
        if thought := text_at(event, "reasoning_content"):
            turn = self.turn()
            turn["reasoning_content"] = turn.get("reasoning_content", "") + thought

    def call(self, tool: dict[str, Any]) -> None:
        turn = self.turn()
        if turn["content"] is not None and self.messages[-1] is not turn:
            self._turn = None
            turn = self.turn()
        arguments = tool.get("tool_args")
        function = {
            "name": text_at(tool, "tool_name") or "unnamed",
            "arguments": arguments if isinstance(arguments, dict | str) else {},
        }
        call = {"id": text_at(tool, "tool_call_id") or None, "type": "function", "function": function}
        turn["tool_calls"] = [*turn.get("tool_calls", ()), call]

    def result(self, event: dict[str, Any], tool: dict[str, Any]) -> None:
        gave = (
            tool.get("result") if tool.get("result") is not None else event.get("error", event.get("content"))
        )
        failed = {"is_error": True} if tool.get("tool_call_error") or event.get("error") else {}
        identity = text_at(tool, "tool_call_id") or None
        self.messages.append(
            {
                "role": "tool",
                "tool_call_id": identity,
                "name": text_at(tool, "tool_name"),
                "content": result_content(gave),
            }
            | failed
        )
        self._turn = None

    def complete(self, event: dict[str, Any]) -> None:
        content = event.get("content")
        if content not in (None, "") and _text(content).strip() not in self._written:
            self._turn = None
            self.say(event)


def _text(value: Any) -> str:
    found = result_content(value)
    return found if isinstance(found, str) else str(found)


@storable
def read(document: Any) -> Trajectory:
    events = objects(document) if isinstance(document, list) else objects([document])
    run, facts = _AgnoRun(), {}
    about: dict[str, Any] = {}
    for event in events:
        kind, tool = _kind(event), object_at(event, "tool")
        about |= {key: event[key] for key in _SHARED if event.get(key)}
        about |= {"model": event["model"]} if text_at(event, "model") else {}
        if kind in ("RunContent", "RunIntermediateContent"):
            run.say(event)
        elif kind == "ToolCallStarted":
            run.call(tool)
        elif kind in ("ToolCallCompleted", "ToolCallError"):
            run.result(event, tool)
        elif kind == "RunCompleted":
            run.complete(event)
            facts = object_at(event, "metrics")
        elif kind == "RunError":
            about["error"] = event.get("content")
    if not run.messages:
        raise InvalidRecord("the events hold nothing that the agent said or did.")
    first = events[0] if events else {}
    name = text_at(first, "agent_name", "team_name")
    steps = from_messages(run.messages)
    if facts and steps:
        last = max((step.extra["source_index"] for step in steps if step.source == "agent"), default=-1)
        steps = metered(steps, {last: facts})
    return build_trajectory(
        spoken(steps, dict.fromkeys(range(len(run.messages)), name)),
        Task(id=""),
        id=text_at(first, "run_id") or None,
        agent=name,
        metadata=run_facts(facts, model=str(about.pop("model", ""))) | about,
    )
