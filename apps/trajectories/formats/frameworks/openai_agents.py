"""OpenAI's Agents SDK: the state of a run (RunState), and results that hold `new_items`.

{"$schemaVersion", "original_input", "generated_items": [{"type", "raw_item", "agent": {"name"}}], "model_responses"}:
the input and the items of a run, each with the agent that made it. Raw items are items of the Responses API.
"""

from typing import Any

from apps.trajectories.formats.placed import MessageReader, object_at, objects, placed, storable, text_at
from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.decode import require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `original_input` and `generated_items`, or with `new_items`, of the Agents SDK"
REPEATED = (
    *(
        "/model_responses",
        "/last_model_response",
        "/session_items",
        "/last_processed_response",
        "/generated_items",
    ),
    *("/raw_responses", "/final_output", "/current_step", "/generated_items/*/output", "/new_items/*/output"),
)
_ITEMS = ("generated_items", "generatedItems", "new_items", "newItems")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    is_state = "$schemaVersion" in document and ("original_input" in document or "originalInput" in document)
    return is_state or any(_is_items(document.get(key)) for key in _ITEMS)


def _is_items(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and bool(object_at(value[0], "raw_item", "rawItem"))
    )


@storable
def read(document: Any) -> Trajectory:
    document = require_object(document)
    key = next((key for key in _ITEMS if _is_items(document.get(key))), "")
    sessions = document.get("session_items")
    if _is_items(sessions) and len(objects(sessions)) > len(objects(document.get(key))):
        key = "session_items"
    asked = next(
        (name for name in ("original_input", "originalInput", "input") if document.get(name)), "input"
    )
    found = placed(document.get(asked), f"/{asked}")
    speakers: dict[int, str] = {}
    for pointer, each in placed(document.get(key) if key else None, f"/{key}"):
        if not isinstance(each, dict) or each.get("type") == "tool_approval_item":
            continue  # of a call that waits, which is an item of its own
        speakers[len(found)] = text_at(object_at(each, "agent", "source_agent"), "name")
        found.append((f"{pointer}/raw_item", object_at(each, "raw_item", "rawItem", "raw")))
    responses = document.get("model_responses", document.get("modelResponses", document.get("raw_responses")))
    if not key:
        for number, response in enumerate(objects(responses)):
            found += placed(response.get("output"), f"/model_responses/{number}/output")
        if not objects(responses):
            raise InvalidRecord(
                "it is the state of a run of the Agents SDK before the agent did anything, so it holds no run; "
                "save it later.",
                pointer="/generated_items",
            )
    steps, facts = MessageReader().read(found, speakers)
    usage = object_at(object_at(document, "context"), "usage")
    agent = text_at(object_at(document, "current_agent", "currentAgent", "last_agent"), "name")
    known = (
        *_ITEMS,
        "session_items",
        asked,
        "model_responses",
        "modelResponses",
        "last_model_response",
        "lastModelResponse",
        "raw_responses",
    )
    around = {
        name: value
        for name, value in document.items()
        if name not in known and value not in (None, [], {}, "")
    }
    counted = {name: count for name, count in usage.items() if count}
    return build_trajectory(steps, Task(id=""), agent=agent, metadata=facts | run_facts(counted) | around)
