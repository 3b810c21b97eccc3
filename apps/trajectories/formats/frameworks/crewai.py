"""CrewAI: the output of a crew ({"tasks_output": [{"description", "raw", "agent"}], "token_usage"}), and its log of
tasks (`output_log_file`), a list of {"timestamp", "task_name", "task", "agent", "status", "output"}.

Each task is what its agent is asked and what it answers; with `messages` in it, all that was said between.
"""

from typing import Any

from apps.trajectories.formats.event_log import ALONE, event_log
from apps.trajectories.formats.placed import MessageReader, Placed, objects, placed, storable, text_at
from apps.trajectories.formats.stated import run_facts, stated_success, stated_task_id
from workers.schema import Task, Trajectory
from workers.schema.messages import build_trajectory

SIGN = "an object with `tasks_output`, or records with `task`, `agent`, `status` and `output`, of CrewAI"
_LOGGED = frozenset(("task", "agent", "status", "timestamp"))
Gathered = event_log(key=lambda record: None if _is_logged(record) else ALONE)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_logged, document[:3]))
    return _is_logged(document) or _is_output(document)


def _is_logged(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= _LOGGED and isinstance(value.get("task"), str)


def _is_output(value: Any) -> bool:
    tasks = value.get("tasks_output") if isinstance(value, dict) else None
    return isinstance(tasks, list) and bool(tasks) and isinstance(tasks[0], dict)


@storable
def read(document: Any) -> Trajectory:
    records = objects(document if isinstance(document, list) else [document])
    crew = records[0] if records and _is_output(records[0]) else {}
    tasks = (
        placed(crew["tasks_output"], "/0/tasks_output")
        if crew
        else [(f"/{index}", each) for index, each in enumerate(records)]
    )
    found: list[Placed] = []
    speakers: dict[int, str] = {}
    for pointer, task in tasks:
        for within, message in _task(task) if isinstance(task, dict) else []:
            if message.get("role") == "assistant":
                speakers[len(found)] = text_at(task, "agent").strip()
            found.append((f"{pointer}{within}", message))
    steps, facts = MessageReader().read(found, speakers)
    around = {key: value for key, value in crew.items() if key not in ("tasks_output", "token_usage")}
    totals = run_facts(crew.get("token_usage"))
    return build_trajectory(
        steps, Task(id=stated_task_id(crew)), success=stated_success(crew), metadata=around | facts | totals
    )


def _task(task: dict[str, Any]) -> list[Placed]:
    messages = [(f"/messages{at}", each) for at, each in placed(task.get("messages"), "")]
    known = ("messages", "description", "task", "raw", "output", "agent", "summary", "timestamp")
    rest = {key: value for key, value in task.items() if key not in known and value not in (None, "", [], {})}
    if objects(task.get("messages")):
        return messages
    asked = text_at(task, "description", "task")
    said = text_at(task, "raw", "output", "summary")
    found: list[Placed] = [("/description", {"role": "user", "content": asked})] if asked else []
    if said or task.get("status") not in ("started", "running"):
        return [*found, ("/raw", {"role": "assistant", "content": said} | rest)]
    return []
