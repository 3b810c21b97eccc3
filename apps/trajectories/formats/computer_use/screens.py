"""What agents on screens have in common: a goal, what they see, and what they then do.

What is seen after an action is that action's observation, so that the first view comes before any. Where an agent acts
is drawn on the picture it saw before (`clicks`), which that order gives.
"""

import json
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.benchmarks.browser import called
from workers.schema import ObservationResult, Part, Step, ToolCall, from_messages

_ENCODED = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
_SHORTEST = 64  # characters of a picture in base64; a path may begin as one does
_NAMES = ("name", "action_type", "type", "action")
_BESIDE = ("raw_response", "pending_checks", "command_result")  # of an action, that are none of its arguments
_ARGUMENTS = ("input", "arguments", "args", "parameters", "params", "kwargs")


def goal_step(goal: str) -> list[Step]:
    return [Step(source="user", message=(Part(text=goal),))] if goal else []


def in_turn(goal: str, turns: Iterable[tuple[ObservationResult | None, Step | None]]) -> tuple[Step, ...]:
    """Steps of a run that is logged as what the agent saw (None: nothing) and what it then did."""
    steps = goal_step(goal)
    for index, (view, step) in enumerate(turns):
        if view is not None and (view.content or view.extra):
            if steps and steps[-1].source == "agent":
                steps[-1] = replace(steps[-1], observation=(*steps[-1].observation, view))
            else:
                steps.append(Step(source="environment", observation=(view,), extra={"source_index": index}))
        if step is not None:
            steps.append(step)
    return tuple(steps)


def picture_source(value: Any) -> str:
    """A picture as a data URL where it is base64, else the URL or the file name as it is; empty for none."""
    if not isinstance(value, str):
        return ""
    if len(value) >= _SHORTEST:
        for beginning, media_type in _ENCODED.items():
            if value.startswith(beginning):
                return f"data:{media_type};base64,{value}"
    return value


def call_of(action: Any) -> ToolCall | None:
    """An action in any spelling: a line of code, `DONE`, or an object with a name and arguments. None for nothing."""
    if isinstance(action, str):
        if not action.strip():
            return None
        bare = action.strip()
        return ToolCall(name=bare, arguments={}) if bare.isidentifier() else called(action)
    if not isinstance(action, dict) or not action:
        return None if action in (None, [], {}) else ToolCall(name="act", arguments={"action": action})
    identity = action.get("id") or action.get("call_id")
    identity = identity if isinstance(identity, str) else None
    key = next((key for key in _NAMES if isinstance(action.get(key), str) and action[key]), None)
    held = next((key for key in _ARGUMENTS if isinstance(action.get(key), dict)), None)
    if key == "action" and held is None and not action["action"].isidentifier():
        found = called(action["action"])
    else:
        known = (key, "id", "call_id", *_BESIDE)
        arguments = action[held] if held else {k: v for k, v in action.items() if k not in known}
        found = ToolCall(name=action[key] if key else "act", arguments=arguments)
    is_all = held is None and found.name != "code"
    rest = {k: v for k, v in action.items() if k not in (key, held, "id", "call_id")}
    rest = {k: v for k, v in rest.items() if k in _BESIDE} if is_all else rest
    return replace(found, id=identity, extra={"action": rest} if rest else {})


def response_step(response: Any, index: int, *, pointer: str) -> Step:
    """An agent's step with what it said: text, content blocks, items or messages of an API, or any JSON as text."""
    if isinstance(response, dict) and isinstance(response.get("response"), str | list):
        response = response["response"]
    is_shaped = not isinstance(response, dict | list) or _is_message(response) or _is_blocks(response)
    if not is_shaped and not (isinstance(response, dict) and response.get("object") == "response"):
        response = json.dumps(response, ensure_ascii=False)
    messages: list[Any] = [{"role": "assistant", "content": response}]
    if isinstance(response, list) and any(_is_message(item) for item in response):
        messages = response
    elif isinstance(response, dict) and (_is_message(response) or response.get("object") == "response"):
        messages = [response]
    steps = [step for step in from_messages(messages, pointer=pointer) if step.source == "agent"]
    merged = steps[0] if steps else Step(source="agent")
    for step in steps[1:]:
        reasoning = "\n".join(text for text in (merged.reasoning, step.reasoning) if text) or None
        merged = replace(
            merged,
            message=(*merged.message, *step.message),
            reasoning=reasoning,
            tool_calls=(*merged.tool_calls, *step.tool_calls),
        )
    return replace(merged, extra=merged.extra | {"source_index": index})


def _is_blocks(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, str)
        or (isinstance(each, dict) and ("role" in each or isinstance(each.get("type"), str)))
        for each in value
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and (
        "role" in value or str(value.get("type")).endswith(("_call", "reasoning"))
    )
