"""A prompt and the turns of a model that were recorded for it: {"prompt", "turns": [{"output" | "response" | "message":
a message of any API, "caller"?}]}, as DeerFlow's replays have them. Who called is the speaker.

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


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and bool(prompt_name(document)) and bool(_name(document))


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
