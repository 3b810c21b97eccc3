"""Interactions of Gemini's API: {"id": "interactions/...", "status", "model", "system_instruction"?, "steps": [{"type":
"user_input" | "thought" | "function_call" | "function_result" | "model_output" | ...}]}, in earlier versions `outputs`
after the `input`. Steps of tools of the server keep their type as the name of the tool.
"""

from typing import Any

from apps.trajectories.formats.chat.openai import with_system
from apps.trajectories.formats.placed import Placed, objects, steps_of, storable, text_at
from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.decode import require_object
from workers.schema.message_parts import reasoning_text, result_content
from workers.schema.messages import build_trajectory

SIGN = (
    "an object with `steps` of the type user_input, function_call or model_output, as Gemini's interactions"
)
Message = dict[str, Any]
_SPOKEN = {"user_input": "user", "model_output": "assistant", "text": "assistant"}
_KINDS = (*_SPOKEN, "thought", "function_call", "function_result")
_THOUGHT = {"reasoning_content"}
_KNOWN = ("id", "model", "usage", "steps", "outputs", "input", "system_instruction", "output_text")
READ = ("/steps/*/type", "/outputs/*/type")
REPEATED = ("/output_text", "/input", "/input/*/content/*/text", "/steps/*/name", "/outputs/*/name")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    steps = objects(document.get("steps"))
    if any(step.get("type") in ("user_input", "model_output") for step in steps):
        return all(isinstance(step.get("type"), str) for step in steps)
    is_named = document.get("object") == "interaction" or text_at(document, "id").startswith("interactions/")
    return is_named and bool(objects(document.get("outputs")))


@storable
def read(document: Any) -> Trajectory:
    document = require_object(document)
    key = "steps" if objects(document.get("steps")) else "outputs"
    steps = objects(document.get(key))
    messages: list[Placed] = []
    for index, step in enumerate(steps):
        message = _message(step)
        if messages and message["role"] == "assistant" and messages[-1][1].keys() & _THOUGHT:
            before = messages[-1][1]
            if not before["content"] and "tool_calls" not in before:
                message = before | message  # what it thought is of the answer after it
                messages.pop()
        messages.append((f"/{key}/{index}", message))
    asked = document.get("input")
    if asked and not any(message["role"] == "user" for _, message in messages):
        messages = [("/input", {"role": "user", "content": _content(asked)}), *messages]
    if not messages:
        raise InvalidRecord("has no steps, so it holds no run; leave it out.")
    found = with_system(steps_of(messages), document.get("system_instruction"), "system_instruction")
    model = text_at(document, "model", "agent")
    rest = {name: value for name, value in document.items() if name not in _KNOWN}
    usage = document.get("usage")
    counts = {name: value for name, value in usage.items() if value} if isinstance(usage, dict) else {}
    facts = run_facts(counts, model=model)
    return build_trajectory(
        found,
        Task(id=""),
        id=text_at(document, "id") or None,
        agent=model,
        success=False if document.get("status") == "failed" else None,
        metadata=facts | {"usage": counts | facts.get("usage", {})} | rest,
    )


def _content(value: Any) -> Any:
    """What was asked: text, parts, or contents that hold parts."""
    parts = [part for each in objects(value) for part in (objects(each.get("content")) or [each])]
    return parts or value


def _message(step: Message) -> Message:
    kind = text_at(step, "type")
    rest = {
        key: value for key, value in step.items() if key not in _OF_STEP and value not in (None, "", [], {})
    }
    if kind not in _KINDS:
        rest["kind"] = kind
    if kind in _SPOKEN:
        return {"role": _SPOKEN[kind], "content": step.get("content", step.get("text"))} | rest
    if kind == "thought":
        return {"role": "assistant", "content": None, "reasoning_content": reasoning_text(step)} | rest
    if kind.endswith("_result"):
        content = {"content": result_content(step.get("result"))}
        return {"role": "tool", "tool_call_id": step.get("call_id", step.get("id"))} | content | rest
    function = {
        "name": text_at(step, "name") or kind.removesuffix("_call"),
        "arguments": step.get("arguments") or {},
    }
    call = {"id": step.get("id"), "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]} | rest


_OF_STEP = ("type", "content", "text", "summary", "result", "call_id", "id", "name", "arguments")
