"""A prompt and the turns of a model that were recorded for it: {"prompt", "turns": [{"output" | "response" | "message":
a message of any API, "caller"?}]}, as DeerFlow's replays have them. Who called is the speaker. IronClaw's traces for
replays name what a model answered by its `type`: {"steps": [{"response": {"type": "user_input" | "text" | "tool_calls",
"content" | "tool_calls"}}]}, or {"turns": [{"user_input", "steps"}]}.

Results of tools are not in such a file, unless turns hold them.
"""

from typing import Any

from apps.trajectories.formats.general.row_names import REFERENCES, asked_messages, first_name, prompt_name
from apps.trajectories.formats.placed import MessageReader, object_at, objects, storable, text_at
from apps.trajectories.formats.stated import model_name, stated_success
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, clean
from workers.schema.decode import require_object
from workers.schema.message_shapes import is_of_framework
from workers.schema.messages import build_trajectory

SIGN = "an object with a `prompt` and `turns` that each have an `output` (or `response`) that is a message"
_LISTS = ("turns", "calls", "responses", "interactions", "steps", "records")
_MESSAGES = ("output", "response", "message")
_CALLERS = ("caller", "agent", "speaker")
READ = tuple(f"/{name}/*/{key}/type" for name in _LISTS for key in _MESSAGES)


_TYPES = ("user_input", "text", "tool_calls")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    return bool(_typed(document)) or (bool(prompt_name(document)) and bool(_name(document)))


def _typed(row: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The responses of a trace that names their types, each with its place; empty for any other."""
    turns = objects(row.get("turns")) or [row]
    found: list[tuple[str, dict[str, Any]]] = []
    for place, turn in enumerate(turns):
        at = "" if turn is row else f"/turns/{place}"
        if isinstance(turn.get("user_input"), str):
            found.append((f"{at}/user_input", {"type": "user_input", "content": turn["user_input"]}))
        steps = turn.get("steps")
        if not isinstance(steps, list):
            return []
        for index, step in enumerate(steps):
            response = object_at(step, "response")
            if response.get("type") not in _TYPES:
                return []
            found.append((f"{at}/steps/{index}/response", response))
    return found if any(response["type"] != "user_input" for _, response in found) else []


def _answered(response: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in response.items() if key not in ("type", "content", "tool_calls")}
    role = "user" if response["type"] == "user_input" else "assistant"
    usage = {key: value for key, value in rest.items() if key.endswith("_tokens")}
    calls = [
        {"id": call.get("id"), "type": "function",
         "function": {"name": call.get("name"), "arguments": call.get("arguments") or {}}}
        for call in objects(response.get("tool_calls"))
    ]  # fmt: skip
    return (
        {"role": role, "content": response.get("content")}
        | {key: value for key, value in rest.items() if key not in usage}
        | ({"tool_calls": calls} if calls else {})
        | ({"usage": usage} if usage else {})
    )


def _read_typed(row: dict[str, Any]) -> Trajectory:
    responses = [(pointer, _answered(response)) for pointer, response in _typed(row)]
    steps, facts = MessageReader(usage=lambda message: message.get("usage")).read(responses)
    around = {key: value for key, value in row.items() if key not in ("turns", "steps", "model_name")}
    name = text_at(row, "model_name")
    return build_trajectory(
        steps,
        Task(id=""),
        id=name or None,
        metadata=facts | {key: value for key, value in around.items() if value},
    )


def _name(row: dict[str, Any]) -> str:
    return next((name for name in _LISTS if _has_messages(row.get(name))), "")


def _has_messages(value: Any) -> bool:
    turns = objects(value)
    return bool(turns) and all(_is_message(object_at(turn, *_MESSAGES)) for turn in turns)


def _is_message(value: dict[str, Any]) -> bool:
    return is_of_framework(value) or (isinstance(value.get("role"), str) and "content" in value)


@storable
def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    if _typed(row):
        return _read_typed(row)
    name = _name(row)
    if not name or not prompt_name(row):
        raise InvalidRecord("has no prompt, or no turns with messages.")
    asked, columns = asked_messages(row, prompt_name(row))
    turns = objects(row[name])
    places = [(f"/{columns[0]}", message) for message in asked]
    speakers: dict[int, str] = {}
    for index, turn in enumerate(turns):
        key = next(key for key in _MESSAGES if object_at(turn, key))
        rest = {name: value for name, value in turn.items() if name not in (key, *_CALLERS)}
        message = turn[key] | ({"turn": rest} if rest and "role" in turn[key] else {})
        speakers[len(places)] = text_at(turn, *_CALLERS)
        places.append((f"/{name}/{index}/{key}", message))
    steps, facts = MessageReader(usage=_usage).read(places, speakers)
    reference = first_name(row, REFERENCES)
    model = model_name(row)
    known = (*columns, name, reference)
    return build_trajectory(
        steps,
        Task(id="", instruction=row[columns[0]] if isinstance(row[columns[0]], str) else "",
             reference=row[reference] if reference else None),
        pointer=f"/{name}",
        agent=model,
        success=stated_success(row),
        metadata=facts | {key: value for key, value in row.items() if key not in known and value is not None},
    )  # fmt: skip


def _usage(message: dict[str, Any]) -> Any:
    return (
        object_at(message, "usage")
        or object_at(object_at(message, "data", "kwargs"), "usage_metadata")
        or None
    )
