"""ATIF (Agent Trajectory Interchange Format), 1.4 to 1.8. Its steps count from 1, ours from 0.

Trajectories of sub-agents that are embedded (`subagent_trajectories`) are trajectories of their own, whose metadata
names the `parent`.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from workers.schema import Trajectory, from_atif
from workers.schema.atif_model import EXTRA_AS_WAS, PARTS, UNFIT

SIGN = "`schema_version` starts with ATIF"
READ = (
    "/schema_version",
    "/steps/*/step_id",
    "/steps/*/source",
    "/steps/*/extra/source",
    "/steps/*/extra/message_is_null",
    "/steps/*/extra/reward",
    "/steps/*/extra/features",
    "/extra/outcome/reward",
    "/extra/outcome/success",
    "/extra/task",
    # What `to_atif` writes where the trajectory has no value, or one that ATIF does not take: from_atif undoes it.
    "/session_id",
    "/agent/name",
    "/agent/version",
    "/steps/*/message/*/text",
    "/steps/*/tool_calls/*/tool_call_id",
    "/steps/*/observation/results/*/content/*/text",
    *(
        f"{place}/extra/{name}"
        for place in (
            *("", "/agent", "/final_metrics", "/steps/*", "/steps/*/metrics", "/steps/*/tool_calls/*"),
            "/steps/*/observation/results/*",
        )
        for name in (EXTRA_AS_WAS, PARTS, UNFIT)
    ),
)
_SUB_AGENTS = "subagent_trajectories"
_PARENT = "touchstone_parent"  # of a document that was embedded: the session of the one around it


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and str(document.get("schema_version", "")).startswith("ATIF")


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """The document itself; then those of its sub-agents, at any depth."""
    embedded = document.get(_SUB_AGENTS) if isinstance(document, dict) else None
    if not isinstance(embedded, list) or not embedded:
        yield "", document
        return
    yield "", {key: value for key, value in document.items() if key != _SUB_AGENTS}
    parent = document.get("session_id") or document.get("trajectory_id")
    shared = {key: document[key] for key in ("schema_version",)} | {_PARENT: parent}
    for index, inner in enumerate(embedded):
        if not isinstance(inner, dict):
            yield f"/{_SUB_AGENTS}/{index}", inner
            continue
        for pointer, each in split(shared | inner):
            yield f"/{_SUB_AGENTS}/{index}{pointer}", each


def read(document: Any) -> Trajectory:
    if not isinstance(document, dict) or _PARENT not in document:
        return from_atif(document)
    parent = document[_PARENT]
    found = from_atif({key: value for key, value in document.items() if key != _PARENT})
    return replace(found, metadata=found.metadata | ({"parent": parent} if parent else {}))
