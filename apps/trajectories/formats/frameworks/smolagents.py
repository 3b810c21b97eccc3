"""Runs of smolagents: the steps of an agent's memory (`get_full_steps`, `get_succinct_steps`), in full with the
messages that its model was sent, alone, or as `steps`, `memory` or `messages` of an object (RunResult).

{"system_prompt"}, {"task"}, {"plan", ...}, {"step_number", "model_output", "tool_calls", "observations", "error"}, and
{"output"} at the end. A code agent's call of `python_interpreter` is the code that stands in its output.
"""

from typing import Any

from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import (
    MessageReader,
    Placed,
    object_at,
    objects,
    placed,
    storable,
    text_at,
)
from apps.trajectories.formats.stated import run_facts, stated_success, stated_task_id
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.decode import finite
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "steps with a `step_number` and `model_output` or `observations`, as smolagents keeps them"
REPEATED = tuple(
    f"{at}/*/{key}"
    for at in ("", "/*/steps", "/*/memory/steps")
    for key in (
        "model_input_messages",
        "model_output_message",
        "action_output",
        "agent_memory",
        "code_action",
    )
)
_HOLDERS = ("steps", "memory", "messages", "intermediate_steps", "agent_memory")
_OF_STEP = (
    "model_output",
    "observations",
    "tool_calls",
    "action_output",
    "llm_output",
    "model_input_messages",
)
Gathered = event_log()


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return any(map(_is_action, document[:4])) and all(map(_is_step, document[:4]))
    return _is_action(document) or _is_beginning(document) or bool(_held(document)[0])


def _is_action(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and ("step_number" in value or "step" in value)
        and any(k in value for k in _OF_STEP)
    )


def _is_beginning(value: Any) -> bool:
    """The first step of a memory: nothing but the task, or the system prompt."""
    return isinstance(value, dict) and (
        value.keys() == {"task", "task_images"} or value.keys() == {"system_prompt"}
    )


def _is_step(value: Any) -> bool:
    return isinstance(value, dict) and any(
        key in value for key in (*_OF_STEP, "system_prompt", "task", "plan", "output", "final_answer")
    )


def _held(document: Any) -> tuple[list[Any], str]:
    for key in _HOLDERS if isinstance(document, dict) else ():
        value = document.get(key)
        at = f"/{key}"
        if isinstance(value, dict) and isinstance(value.get("steps"), list):
            value, at = value["steps"], f"{at}/steps"
        if isinstance(value, list) and any(map(_is_action, value[:4])) and all(map(_is_step, value[:4])):
            return value, at
    return [], ""


@storable
def read(document: Any) -> Trajectory:
    records = document if isinstance(document, list) else [document]
    steps, at = _held(records[0]) if len(records) == 1 else ([], "")
    around = records[0] if steps else {}
    found: list[Placed] = []
    system = next(filter(None, map(_system, objects(steps or records))), None)
    if system:
        found.append((f"/0{at}", system))
    for pointer, step in placed(steps or records, f"/0{at}" if steps else ""):
        found += [(pointer, message) for message in _messages(step)]
    if not found:
        raise InvalidRecord("has no steps of an agent's memory.")
    read_steps, facts = MessageReader(usage=_usage, consumed=("usage", "seconds")).read(found)
    task = next((text_at(step, "task") for step in objects(steps or records) if text_at(step, "task")), "")
    rest = {key: value for key, value in around.items() if key not in (*_HOLDERS, "task")}
    timing = object_at(around, "timing")
    usage = object_at(around, "token_usage")
    return build_trajectory(
        read_steps,
        Task(id=stated_task_id(around), instruction=text_at(around, "task") or task),
        agent=text_at(around, "agent_name", "name"),
        reward=finite(around.get("reward"), pointer="/reward"),
        success=stated_success(around),
        metadata=facts | run_facts(usage, timing) | rest,
    )


def _system(step: dict[str, Any]) -> dict[str, Any] | None:
    """The system prompt: a step of its own, or the first message that the model was sent."""
    if text_at(step, "system_prompt"):
        return None
    first = (objects(step.get("model_input_messages")) or [{}])[0]
    return {"role": "system", "content": first.get("content")} if first.get("role") == "system" else None


def _messages(step: Any) -> list[dict[str, Any]]:
    if not isinstance(step, dict):
        return [step]
    if text_at(step, "system_prompt"):
        return [{"role": "system", "content": step["system_prompt"]}]
    if "task" in step and "step_number" not in step:
        images = step.get("task_images")
        parts = [
            {"type": "text", "text": step.get("task")},
            *map(_picture, images if isinstance(images, list) else []),
        ]
        return [{"role": "user", "content": parts if len(parts) > 1 else step.get("task")}]
    if "plan" in step:
        return [
            {"role": "assistant", "content": step["plan"], "usage": step.get("token_usage"), "plan": True}
        ]
    if "step_number" not in step and "step" not in step:
        output = step.get("output", step.get("final_answer"))
        return [
            {
                "role": "assistant",
                "content": output if isinstance(output, str) else result_content(output),
                "final": True,
            }
        ]
    return _action(step)


def _action(step: dict[str, Any]) -> list[dict[str, Any]]:
    message = object_at(step, "model_output_message")
    said = step.get("model_output", step.get("llm_output"))
    said = message.get("content") if said is None else said
    turn: dict[str, Any] = {"role": "assistant", "content": said}
    for key in ("reasoning_content", "reasoning"):
        if text_at(message, key):
            turn[key] = message[key]
    if calls := objects(step.get("tool_calls")):
        turn["tool_calls"] = calls
    turn |= {"usage": step.get("token_usage") or message.get("token_usage")}
    seconds = object_at(step, "timing").get("duration", step.get("duration"))
    turn |= {"seconds": seconds} if isinstance(seconds, int | float) else {}
    found = [turn]
    observed = [
        text
        for text in (step.get("observations"), _error(step.get("error")))
        if isinstance(text, str) and text
    ]
    images = step.get("observations_images")
    parts: list[Any] = [{"type": "text", "text": text} for text in observed]
    parts += map(_picture, images if isinstance(images, list) else [])
    if parts:
        identity = calls[0].get("id") if calls else None
        found.append(
            {
                "role": "tool",
                "tool_call_id": identity,
                "content": parts if len(parts) > 1 else observed or parts,
            }
        )
        if len(parts) == 1 and observed:
            found[-1]["content"] = observed[0]
    return found


def _error(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value.get('type') or 'Error'}: {value.get('message') or ''}"
    return value if isinstance(value, str) else ""


def _picture(value: Any) -> dict[str, Any]:
    """PIL images are written as bytes in base64, or by a path."""
    data = value.get("data", value.get("bytes")) if isinstance(value, dict) else value
    if isinstance(data, str) and not data.startswith(("data:", "http", "/")) and len(data) > 200:
        return {"type": "image", "source": {"media_type": "image/png", "data": data}}
    return {"type": "image_url", "image_url": {"url": data if isinstance(data, str) else str(data)}}


def _usage(message: dict[str, Any]) -> Any:
    usage = message.get("usage")
    seconds = {"seconds": message["seconds"]} if "seconds" in message else {}
    return (usage if isinstance(usage, dict) else {}) | seconds if usage or seconds else None
