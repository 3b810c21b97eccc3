"""Records of feedback, as `import_feedback` takes them: {"task", "a": ITEM, "b": ITEM, "choice", ...}, and those with
`items` or a `trajectory`: their trajectories. What people gave is imported by `import_feedback --format jsonl`.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from workers.errors import InvalidRecord
from workers.schema import Task, Text, Trajectory, TrajectoryId, clean, parse_item
from workers.schema.decode import convert, require_object

SIGN = "an object with items of the reward API as `a` and `b`, `items` or `trajectory`"
READ = ("/task/id", "/item/trajectory/session_id", "/item/trajectory/schema_version")
_FORMS = frozenset(("messages", "prompt", "trajectory", "text", "trajectory_id"))
_PLACES = ("a", "b", "trajectory", "items")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    items = document.get("items")
    held = [document.get("a"), document.get("b")] if "a" in document else [document.get("trajectory")]
    if isinstance(items, list):
        held = items
    if "item" in document and "task" in document:
        held = [document["item"]]
    return bool(held) and all(isinstance(item, dict) and len(_FORMS & item.keys()) == 1 for item in held)


def split(document: Any) -> Iterator[tuple[str, Any]]:
    record = require_object(document)
    rest = {name: value for name, value in record.items() if name not in _PLACES}
    if "item" in record and isinstance(record["item"], dict):
        yield "", document
        return
    for name in _PLACES[:3]:
        if isinstance(record.get(name), dict):
            yield f"/{name}", rest | {"item": record[name]}
    items = record.get("items")
    for index, item in enumerate(items if isinstance(items, list) else ()):
        yield f"/items/{index}", rest | {"item": item}


def read(document: Any) -> Trajectory:
    record, _ = clean(require_object(document))
    raw = record.get("task")
    task = None if raw is None else convert(raw, Task, pointer="/task")
    item = parse_item(record.get("item"), task=task, pointer="/item")
    content = item.content
    if isinstance(content, TrajectoryId):
        raise InvalidRecord(
            "names a trajectory of the project; the record is feedback on it: import it with import_feedback.",
            pointer="/item",
        )
    if isinstance(content, Text):
        content = parse_item({"prompt": "", "response": content.text}, task=task, pointer="/item").content
    if not isinstance(content, Trajectory):
        raise InvalidRecord("has no text, so it is no trajectory to import.", pointer="/item")
    rest = {name: value for name, value in record.items() if name not in ("task", "item")}
    return replace(content, metadata=content.metadata | item.metadata | rest)
