"""DSPy: the history of a language model (`lm.history`), a call each, and trajectories of its ReAct agents.

{"prompt", "messages", "kwargs", "outputs", "usage", "cost", "timestamp", "model"}; {"trajectory": {"thought_0",
"tool_name_0", "tool_args_0", "observation_0", ...}} with the inputs and outputs of the program next to it.
"""

from typing import Any

from apps.trajectories.formats.chat.model_call import ModelCall, outcome, read_call
from apps.trajectories.formats.placed import steps_of, storable
from apps.trajectories.formats.stated import stated_task_id
from workers.schema import Task, Trajectory
from workers.schema.decode import require_object
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "an object with `outputs`, `kwargs` and `messages` or a `prompt`, or a `trajectory` with `thought_0`, of DSPy"
REPEATED = ("/response",)
_ASKED = ("question", "query", "input", "request", "task", "user_request")
_ANSWERED = ("answer", "response", "output", "process_result", "result")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    is_call = isinstance(document.get("outputs"), list) and isinstance(document.get("kwargs"), dict)
    return (is_call and ("messages" in document or "prompt" in document)) or bool(_trajectory(document))


def _trajectory(document: dict[str, Any]) -> dict[str, Any]:
    for value in (document.get("trajectory"), document):
        if isinstance(value, dict) and "tool_name_0" in value and "thought_0" in value:
            return value
    return {}


@storable
def read(document: Any) -> Trajectory:
    document = require_object(document)
    return _read_agent(document) if _trajectory(document) else _read_call(document)


def _read_call(document: dict[str, Any]) -> Trajectory:
    request = {key: document[key] for key in ("messages", "prompt") if document.get(key)}
    if "messages" in request:
        request.pop("prompt", None)
    outputs = document["outputs"] if isinstance(document.get("outputs"), list) else []
    said = outputs[0] if outputs else None
    said = said.get("text") if isinstance(said, dict) and isinstance(said.get("text"), str) else said
    answer = {"choices": [{"message": {"role": "assistant", "content": result_content(said)}}]}
    answer |= {key: document[key] for key in ("usage", "model") if document.get(key)}
    known = ("messages", "prompt", "outputs", "usage", "model", "response", "uuid")
    about = {
        key: value for key, value in document.items() if key not in known and value not in (None, [], {})
    }
    about |= {"outputs": outputs[1:]} if len(outputs) > 1 else {}
    identity = document.get("uuid")
    given = {"id": identity} if isinstance(identity, str) and identity else {}
    return read_call(ModelCall(request, answer, "", "/outputs", about), **given)


def _read_agent(document: dict[str, Any]) -> Trajectory:
    made = _trajectory(document)
    around = {key: value for key, value in document.items() if value is not made and key not in made}
    asked = next((around[key] for key in _ASKED if isinstance(around.get(key), str)), None)
    messages: list[dict[str, Any]] = [{"role": "user", "content": asked}] if asked else []
    number = 0
    while f"tool_name_{number}" in made or f"thought_{number}" in made:
        call = {
            "name": str(made.get(f"tool_name_{number}") or ""),
            "arguments": made.get(f"tool_args_{number}"),
        }
        tool_calls = [{"id": f"call_{number}", "type": "function", "function": call}] if call["name"] else []
        messages.append(
            {
                "role": "assistant",
                "content": result_content(made.get(f"thought_{number}")),
                "tool_calls": tool_calls,
            }
        )
        if f"observation_{number}" in made:
            content = result_content(made[f"observation_{number}"])
            messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": content})
        number += 1
    said = next((around[key] for key in _ANSWERED if isinstance(around.get(key), str)), None)
    reasoning = around.get("reasoning")
    if said is not None:
        held = {"reasoning_content": reasoning} if isinstance(reasoning, str) and reasoning else {}
        messages.append({"role": "assistant", "content": said} | held)
    steps = steps_of([("/trajectory", message) for message in messages])
    shown = {asked, said}
    kept = {key: value for key, value in around.items() if not (isinstance(value, str) and value in shown)}
    return build_trajectory(steps, Task(id=stated_task_id(document)), metadata=kept, **outcome(document))
