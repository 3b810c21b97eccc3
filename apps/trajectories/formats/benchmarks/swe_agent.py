"""SWE-agent's .traj: {"trajectory": [{action, observation, response, thought, state}], "history": [...], "info"}.

`history` is the input and output of the model; its demonstrations (`is_demo`) are no steps of this trajectory. What it
lacks (the last observation, and how the agent was stopped) is in `trajectory`. Without it, the prompt is what the first
step of `trajectory` was asked with: its `query`, before SWE-agent 1.1 its `messages`.
"""

import hashlib
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.commands import shell
from apps.trajectories.formats.stated import (
    SUCCESS_KEYS,
    model_name,
    run_facts,
    stated_success,
    stated_task_id,
)
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory, clean, parse_json
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.messages import build_trajectory, decode_arguments, parts_of
from workers.schema.patterns import TextPattern
from workers.schema.records import Source

SIGN = "an object with `trajectory` and `history`, or a `history` whose messages have a `message_type`"
READ = (
    *(f"{at}/{key}" for at in ("", "/info") for key in SUCCESS_KEYS),
    "/history/*/is_demo",
    "/history/*/message_type",
)
_INPUT = "the input of the model at this step, whose messages are in the history"
LEFT_OUT = {"/trajectory/*/query": _INPUT, "/trajectory/*/messages": _INPUT}
REPEATED = ("/trajectory",)  # what the history holds
_ISSUE = TextPattern(r"(?s)\n(?:ISSUE|TICKET):\n(.*?)\n\nINSTRUCTIONS:")
_ROLES: dict[str, Source] = {"system": "system", "user": "user"}
_MESSAGE = ("role", "content", "thought", "action", "tool_calls", "tool_call_ids")
_STEP = ("action", "observation", "response", "thought", "query", "messages")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or "responses_create_params" in document:  # of NeMo Gym
        return False
    if isinstance(document.get("trajectory"), list) and ("history" in document or "info" in document):
        first: Any = next(iter(document["trajectory"]), {})
        return isinstance(first, dict) and (not first or "action" in first)
    history = document.get("history")
    return isinstance(history, list) and any(
        isinstance(message, dict) and "message_type" in message for message in history
    )


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    made = require_list(document.get("trajectory") or [], pointer="/trajectory")
    history = document.get("history") or _asked_with(made)
    steps = _History(made).read(require_list(history, pointer="/history"))
    around = {key: value for key, value in document.items() if key not in ("trajectory", "history")}
    config = _object(around.get("replay_config"))
    agent, info = config.get("agent"), _object(around.get("info"))
    instance = agent.get("name") if isinstance(agent, dict) else None
    model = model_name(agent, info, around)
    version = info.get("swe_agent_version")
    return build_trajectory(
        tuple(steps),
        _task(steps, stated_task_id(around) or stated_task_id(info) or instance),
        pointer="/history",
        agent="SWE-agent",
        agent_version=version if isinstance(version, str) else "",
        success=stated_success(around, info),
        metadata=run_facts(info.get("model_stats"), info, model=model) | around,
    )


def _object(value: Any) -> dict[str, Any]:
    """`replay_config` may be JSON text."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = parse_json(value)
        except InvalidRecord:
            return {}
    return value if isinstance(value, dict) else {}


def _asked_with(made: list[Any]) -> list[Any]:
    first = require_object(made[0], pointer="/trajectory/0") if made else {}
    key = "query" if "query" in first else "messages"
    asked = require_list(first.get(key) or [], pointer=f"/trajectory/0/{key}")
    return [call for call in asked if not isinstance(call, dict) or call.get("role") != "assistant"]


def _task(steps: list[Step], instance: Any) -> Task:
    """By the instance, else by the issue's text, which prompts of many configurations have in common."""
    asked = next(
        (step.text for step in steps if step.source == "user" and "demonstration" not in step.extra), ""
    )
    found = _ISSUE.search(asked)
    issue = found[1].strip() if found else asked
    if isinstance(instance, str) and instance not in ("", "main"):
        return Task(id=instance, instruction=issue)
    identity = f"issue-{hashlib.sha256(issue.encode()).hexdigest()[:20]}" if found else ""
    return Task(id=identity, instruction=issue)


class _History:
    """Steps of messages, with the details of `trajectory`."""

    def __init__(self, made: list[Any]) -> None:
        self._made = [require_object(step, pointer=f"/trajectory/{index}") for index, step in enumerate(made)]
        self._steps: list[Step] = []
        self._agent: list[int] = []  # places of agent steps

    def read(self, messages: list[Any]) -> list[Step]:
        for index, message in enumerate(messages):
            self._add(require_object(message, pointer=f"/history/{index}"), index)
        for number, step in enumerate(self._made):
            if number >= len(self._agent):
                self._append(_of_trajectory(step, number))
                continue
            place = self._agent[number]
            if not self._steps[place].observation:
                self._observe(place, step.get("observation"), f"/trajectory/{number}/observation")
            about = {
                key: value for key, value in step.items() if key not in _STEP and value not in (None, "", {})
            }
            if about:
                made = self._steps[place]
                self._steps[place] = replace(made, extra=made.extra | {"trajectory": about})
        return self._steps

    def _add(self, message: dict[str, Any], index: int) -> None:
        at = f"/history/{index}"
        role = message.get("role")
        extra = {"source_index": index} | {
            key: value for key, value in message.items() if key not in _MESSAGE
        }
        if message.get("is_demo"):
            extra |= {"demonstration": True, "role": role}
            content = parts_of(message.get("content"), pointer=f"{at}/content")
            self._steps.append(Step(source="system", message=content, extra=extra))
        elif role == "assistant":
            thought = optional_str(message.get("thought"), pointer=f"{at}/thought")
            action = optional_str(message.get("action"), pointer=f"{at}/action")
            calls = _calls(message.get("tool_calls"), f"{at}/tool_calls")
            if not calls and action and action.strip():
                calls = (shell(action),)
            message_parts = parts_of(message.get("content"), pointer=f"{at}/content")
            if thought is not None and calls:
                message_parts = (Part(text=thought),) if thought.strip() else ()
            self._append(Step(source="agent", message=message_parts, tool_calls=calls, extra=extra))
        elif self._agent and role in ("user", "tool"):
            tied = require_list(message.get("tool_call_ids") or [], pointer=f"{at}/tool_call_ids")
            call = tied[0] if tied else message.get("tool_call_id")
            self._observe(self._agent[-1], message.get("content"), f"{at}/content", call, extra)
        else:
            source = _ROLES.get(str(role), "user")
            content = parts_of(message.get("content"), pointer=f"{at}/content")
            self._steps.append(Step(source=source, message=content, extra=extra))

    def _append(self, step: Step) -> None:
        self._agent.append(len(self._steps))
        self._steps.append(step)

    def _observe(
        self, place: int, content: Any, at: str, call: Any = None, extra: dict[str, Any] | None = None
    ) -> None:
        if content is None:
            return
        step = self._steps[place]
        result = ObservationResult(
            content=parts_of(content, pointer=at),
            call_id=call if isinstance(call, str) else None,
            extra=extra or {},
        )
        self._steps[place] = replace(step, observation=(*step.observation, result))


def _of_trajectory(made: dict[str, Any], number: int) -> Step:
    """A step that the history does not hold: how the run was ended, or all of them where there is no history."""
    at = f"/trajectory/{number}"
    thought, response, action = (
        optional_str(made.get(key), pointer=f"{at}/{key}") or "" for key in ("thought", "response", "action")
    )
    text = thought if thought.strip() and action.strip() else response or thought
    seen = made.get("observation")
    return Step(
        source="agent",
        message=(Part(text=text),) if text else (),
        tool_calls=(shell(action),) if action.strip() else (),
        observation=()
        if seen is None
        else (ObservationResult(content=parts_of(seen, pointer=f"{at}/observation")),),
        extra={"source_index": number} | {key: value for key, value in made.items() if key not in _STEP},
    )


def _calls(given: Any, pointer: str) -> tuple[ToolCall, ...]:
    found = []
    for index, call in enumerate(require_list(given or [], pointer=pointer)):
        at = f"{pointer}/{index}"
        call = require_object(call, pointer=at)
        function = require_object(call.get("function"), pointer=f"{at}/function")
        arguments, raw = decode_arguments(function.get("arguments", ""), pointer=f"{at}/function/arguments")
        name = optional_str(function.get("name"), pointer=f"{at}/function/name") or ""
        identity = optional_str(call.get("id"), pointer=f"{at}/id")
        found.append(ToolCall(id=identity, name=name, arguments=arguments, raw=raw))
    return tuple(found)
