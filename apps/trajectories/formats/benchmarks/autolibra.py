"""AutoLibra's runs (Zhu et al., arXiv 2505.02820): {"points": [{"agent_id", "point_type", "data", "timestamp"}], ...}.

A dataset is a folder: `instances/INSTANCE/AGENT/points.json` names the data of each point, a file of its own, and
`annotations/INSTANCE_AGENT.json` what people wrote about the run. An archive of it is put together (archive.py), one
document a run: {"instance_id", "agent_id", "agent", "metadata", "points", "annotations"}. What `render_trajectory` of
their package gives, a list of points, is read too. Points are actions, which are agent steps, and observations, which
are the results of the action before them; before any action they are the input of the agent.
"""

import json
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory, clean
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `points`, or a list of points, each with a `point_type`"
READ = ("/points/*/point_type", "/instance_id")
LEFT_OUT = {"/annotations": "what people wrote about the run: `import_feedback --format autolibra` reads it"}
_WORDS = ("content", "text", "message")  # keys of data that is nothing but words
_OBSERVED, _ACTED = "observation", "action"


def sniff(document: Any) -> bool:
    points = document.get("points") if isinstance(document, dict) else document
    if isinstance(points, list) and points:
        return isinstance(points[0], dict) and "point_type" in points[0]
    return isinstance(document, dict) and points == [] and "instance_id" in document


def read(document: Any) -> Trajectory:
    given, _ = clean(document)
    around = {"points": given} if isinstance(given, list) else require_object(given)
    steps: list[Step] = []
    points = require_list(around.get("points"), pointer="/points")
    for index, point in enumerate(points):
        at = f"/points/{index}"
        point = require_object(point, pointer=at)
        if point.get("point_type") == _ACTED:
            steps.append(_acted(point, index))
        elif point.get("point_type") != _OBSERVED:
            raise InvalidRecord("is neither an observation nor an action.", pointer=f"{at}/point_type")
        elif steps and steps[-1].source == "agent":
            result = ObservationResult(content=_parts(point.get("data")), extra={"source_index": index})
            steps[-1] = replace(steps[-1], observation=(*steps[-1].observation, result))
        else:
            steps.append(
                Step(source="user", message=_parts(point.get("data")), extra={"source_index": index})
            )
    about = require_object(around.get("metadata") or {}, pointer="/metadata")
    task = about.get("task")
    instruction = (
        task if isinstance(task, str) else "" if task is None else json.dumps(task, ensure_ascii=False)
    )
    instance = optional_str(around.get("instance_id"), pointer="/instance_id")
    name = optional_str(around.get("agent_id"), pointer="/agent_id") or _agent_id(points)
    # The same task has another instance for each of its runs.
    identity = f"task-{sha256(instruction.encode()).hexdigest()[:20]}" if instruction else instance
    return build_trajectory(
        tuple(steps),
        Task(id=identity or "", instruction=instruction),
        pointer="/points",
        id=f"{instance}_{name}" if instance else None,
        agent=name,
        metadata={key: value for key, value in about.items() if key != "task"}
        | ({"agent": around["agent"]} if around.get("agent") else {}),
    )


def _agent_id(points: list[Any]) -> str:
    return optional_str(points[0].get("agent_id"), pointer="/points/0/agent_id") or "" if points else ""


def _acted(point: dict[str, Any], index: int) -> Step:
    extra = {"source_index": index} | {key: point[key] for key in ("timestamp", "metadata") if point.get(key)}
    data = point.get("data")
    if isinstance(data, dict) and _words(data) is None:
        name = data.get("action_type") or data.get("action")
        call = ToolCall(name=name if isinstance(name, str) and name.isidentifier() else "act", arguments=data)
        return Step(source="agent", tool_calls=(call,), extra=extra)
    return Step(source="agent", message=_parts(data), extra=extra)


def _parts(data: Any) -> tuple[Part, ...]:
    if data is None:
        return ()
    words = data if isinstance(data, str) else _words(data)
    return (Part(text=json.dumps(data, ensure_ascii=False) if words is None else words),)


def _words(data: Any) -> str | None:
    """The words of data that is nothing else."""
    if isinstance(data, dict) and len(data) == 1 and (key := next(iter(data))) in _WORDS:
        return data[key] if isinstance(data[key], str) else None
    return None
