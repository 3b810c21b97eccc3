"""Messages of PydanticAI (`all_messages_json()`): a list of requests and responses, whose parts each say what they are.

[{"kind": "request", "parts": [{"part_kind": "user-prompt", "content"}], "instructions"?},
{"kind": "response", "parts": [...], "usage", "model_name"}]; alone, or as `messages`, `message_history` or
`all_messages` of an object.
"""

from typing import Any

from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import MessageReader, Placed, objects, placed, storable, text_at
from workers.schema import Task, Trajectory
from workers.schema.messages import build_trajectory

SIGN = "messages of the `kind` request or response, with `parts` that have a `part_kind`"
_HOLDERS = ("messages", "all_messages", "message_history", "_state")
Gathered = event_log()


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(is_message, document[:3]))
    return is_message(document) or bool(_held(document))


def is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("kind") not in ("request", "response"):
        return False
    parts = value.get("parts")
    return isinstance(parts, list) and all(isinstance(part, dict) and "part_kind" in part for part in parts)


def _held(document: Any) -> str:
    """The key of an object that holds messages."""
    for key in _HOLDERS if isinstance(document, dict) else ():
        value = document.get(key)
        if isinstance(value, list) and value and is_message(value[0]):
            return key
    return ""


@storable
def read(document: Any) -> Trajectory:
    messages: list[Placed] = []
    around: dict[str, Any] = {}
    for index, each in enumerate(document if isinstance(document, list) else [document]):
        key = _held(each)
        if key:
            messages += placed(each[key], f"/{index}/{key}")
            around |= {name: value for name, value in each.items() if name != key}
        else:
            messages.append((f"/{index}", each))
    messages = _with_instructions(messages)
    steps, facts = MessageReader(model=lambda message: text_at(message, "model_name")).read(messages)
    identity = next(
        (text_at(each, "run_id") for each in objects([m for _, m in messages]) if text_at(each, "run_id")), ""
    )
    return build_trajectory(
        steps, Task(id=""), id=identity or None, agent=facts.get("model", ""), metadata=facts | around
    )


def _with_instructions(messages: list[Placed]) -> list[Placed]:
    """Every request repeats the instructions: they are a message where they are others than before."""
    found: list[Placed] = []
    before = ""
    for pointer, message in messages:
        said = text_at(message, "instructions")
        if said and said != before:
            before = said
            found.append((f"{pointer}/instructions", {"role": "system", "content": said}))
        found.append((pointer, message))
    return found
