"""A record as one JSON text, in exports that write its trajectories in the form of another tool.

The text is the import record with an index into `trajectories` in place of each ITEM:

    {"kind": "pairwise", "task": {"id": "t"}, "annotator": "ann", "a": 0, "b": 1, "choice": "b", "strength": 2,
     "trajectories": [{"content": "<hash>", "number": 7, "agent": "fox", "agent_version": "2"}, ...]}

(and `this`, the index of the one that a line is about), so that the file can be imported again: into the same project
as the annotations and trajectories that are there, into another one with the trajectories as the other form has them.
"""

import json

from apps.annotation.feedback_types import FEEDBACK_TYPES
from workers.schema.records import KIND_OF, JudgedRecord, record_trajectories

FIELD = "record"


def record_text(record: JudgedRecord, *, this: int | None = None) -> str:
    """The record as JSON text. this: the index of the one trajectory that the line is about."""
    trajectories = record_trajectories(record)
    index = {id(trajectory): place for place, trajectory in enumerate(trajectories)}
    kind = KIND_OF[type(record)]
    own = FEEDBACK_TYPES[kind].to_json(record, lambda trajectory: index[id(trajectory)])  # type: ignore[arg-type,return-value]
    of, name = item_name(record.item)
    task = {"id": trajectories[0].task.id, "instruction": trajectories[0].task.instruction}
    common = {
        "annotator": record.annotator,
        "origin": record.origin,
        "item": name,
        "campaign": of,
    }
    kept = {key: value for key, value in (common | own).items() if value is not None or key == "first_error"}
    places = [
        {"content": each.content_hash, "number": _number(each.id)}
        | {name: text for name in ("agent", "agent_version") if (text := getattr(each, name))}
        for each in trajectories
    ]
    line = {"kind": kind, "task": task} | kept | {"trajectories": places}
    return json.dumps(line | ({} if this is None else {"this": this}), ensure_ascii=False)


def item_name(item: str | None) -> tuple[str | None, str | None]:
    """The campaign of a record's item, and the item's given name; None if its key was made from contents."""
    campaign, is_named, name = (item or "").partition(":name:")
    if not is_named:
        campaign = campaign.rpartition(":")[0]
    return campaign or None, name or None


def _number(key: str | None) -> int | None:
    """The key of a trajectory of ours."""
    return int(key) if key and key.isdecimal() and key.isascii() and len(key) < 19 else None
