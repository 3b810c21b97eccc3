"""Logs of Tree of Thoughts: {"idx", "ys": [what was answered], "infos": [{"r": reward}], "steps"?, "usage_so_far"?}: a
trajectory for each answer. The tree that was searched (`steps`) is metadata of each; what was asked is its `x`."""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.data_rows.row_trajectories import agent_text, required_text, user_text
from apps.trajectories.formats.placed import object_at, objects, storable
from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, from_messages
from workers.schema.decode import finite, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `idx`, `ys` and `infos`, of Tree of Thoughts"
READ = ("/idx", "/y", "/info/r", "/steps/*/x")
PLACES = {"/y": "/ys/*", "/info": "/infos/*"}


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or "idx" not in document:
        return False
    answers = document.get("ys", [document.get("y")])
    return isinstance(answers, list) and ("infos" in document or "info" in document)


def split(document: Any) -> Iterator[tuple[str, Any]]:
    row = require_object(document)
    if "ys" not in row:
        yield "", document
        return
    answers, infos = (require_list(row.get(name), pointer=f"/{name}") for name in ("ys", "infos"))
    if not answers:
        raise InvalidRecord("the list of answers is empty; leave the row out.", pointer="/ys")
    common = {key: value for key, value in row.items() if key not in ("ys", "infos")}
    for index, answer in enumerate(answers):
        info = {"info": infos[index]} if index < len(infos) else {"info": None}
        yield f"/ys/{index}", common | {"y": answer} | info


@storable
def read(document: Any) -> Trajectory:
    row = require_object(document)
    steps = objects(row.get("steps"))
    asked = steps[0].get("x") if steps else None
    asked = asked if isinstance(asked, str) else ""
    info = object_at(row, "info")
    known = ("idx", "y", "usage_so_far")
    return build_trajectory(
        from_messages([*user_text(asked), *agent_text(required_text(row, "y"))]),
        Task(id=str(row.get("idx")), instruction=asked),
        pointer="/y",
        reward=finite(info.get("r"), pointer="/info/r") if not isinstance(info.get("r"), bool) else None,
        metadata=run_facts(row.get("usage_so_far"))
        | {key: value for key, value in row.items() if key not in known and value is not None}
        | ({"usage_so_far": row["usage_so_far"]} if row.get("usage_so_far") else {}),
    )
