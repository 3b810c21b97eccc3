"""Rollouts of NVIDIA NeMo Gym: {"responses_create_params": {"input", "tools"}, "response": {"output"}, "reward"}, a row
each, with what the verifier says next to them.

The response is one of OpenAI's Responses API whose output also has the results of tools and the turns of a user. Agents
for Aviary put the messages of each transition there, which begin with those before.
"""

from typing import Any

from apps.trajectories.formats.chat.model_call import ModelCall, outcome, read_call
from apps.trajectories.formats.placed import object_at, storable, text_at
from apps.trajectories.formats.stated import stated_task_id
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.decode import require_object

SIGN = "an object with `responses_create_params`"
READ = ("/reward", "/success", "/resolved")
REPEATED = (
    *("/response/tools", "/response/tool_choice", "/response/parallel_tool_calls", "/response/temperature"),
    *("/response/top_p", "/response/max_output_tokens", "/response/instructions"),
)
_SHARED = (
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "max_output_tokens",
    "instructions",
)


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("responses_create_params"), dict)


@storable
def read(document: Any) -> Trajectory:
    document = require_object(document)
    response = document.get("response")
    if not isinstance(response, dict):
        raise InvalidRecord(
            "it is a row of inputs of NeMo Gym without a `response`, so it holds no run; send the rollouts.",
            pointer="/response",
        )
    request = require_object(document.get("responses_create_params"), pointer="/responses_create_params")
    around = {
        key: value
        for key, value in document.items()
        if key not in ("responses_create_params", "response", "reward")
    }
    rest = {key: value for key, value in response.items() if key not in _SHARED or value != request.get(key)}
    call = ModelCall(
        {key: value for key, value in request.items() if value is not None},
        _with_one_history(rest),
        "/responses_create_params",
        "/response",
        around,
    )
    agent = text_at(object_at(document, "agent_ref"), "name") or text_at(response, "model")
    given: dict[str, Any] = {"agent": agent} if agent else {}
    if task := stated_task_id(document):
        given["task"] = Task(id=task)
    return read_call(call, **outcome(document), **given)


def _with_one_history(response: dict[str, Any]) -> dict[str, Any]:
    """Of lists of messages that each begin with those before, the last."""
    output = response.get("output")
    if not isinstance(output, list) or not output or not all(isinstance(each, list) for each in output):
        return response
    items: list[Any] = []
    for history in output:
        items = history if history[: len(items)] == items else [*items, *history]
    return response | {"output": items}
