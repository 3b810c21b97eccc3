"""Completion rates of trajectories of tau-bench, next to what a person counted in its file."""

import io
import json
from pathlib import Path
from typing import Any

from apps.accounts.services import create_project
from apps.key_nodes import services
from apps.key_nodes.models import KeyNodeCompletion
from apps.trajectories.models import Task
from apps.trajectories.services import import_trajectories


def call(name: str, tool: str, **equal: Any) -> dict[str, Any]:
    when = [{"path": path.replace("__", "."), "one_of": [value]} for path, value in equal.items()]
    return {"name": name, "tools": [tool], "when": when}


# Task 14, an upgrade of two passengers with bags; task 20, a change of a flight. By trial, the first to the fourth.
UPGRADE = [
    call("look up the reservation", "get_reservation_details", reservation_id="YAX4DR"),  # all four
    call("price the second flight", "search_direct_flight", origin="MCO", destination="MSP"),  # not the third
    call("upgrade", "update_reservation_flights", cabin="business"),  # not the third
    call(
        "bags are free", "update_reservation_baggages", total_baggages=2, nonfree_baggages=0
    ),  # not the third
    call("look up the user", "get_user_details"),  # the second alone
]
CHANGE = [
    call("earlier flight", "update_reservation_*", flights__0__flight_number="HAT266"),  # all four
    call("look up the user", "get_user_details"),  # the second and the fourth
    call("transfer", "transfer_to_human_agents"),  # all but the first
]
COUNTED = {"14": (UPGRADE, [4, 5, 1, 4]), "20": (CHANGE, [1, 3, 2, 3])}


def test_completion_rates_equal_hand_counts(db: None, shared_data: Path) -> None:
    project = create_project(slug="air")
    data = (shared_data / "tau_bench" / "gpt-4o-airline-tasks-0-34.json").read_bytes()
    kept = [each for each in json.loads(data) if str(each["task_id"]) in COUNTED]
    import_trajectories(project=project, stream=io.BytesIO(json.dumps(kept).encode()), by=None)
    tasks = {task.external_id.rpartition("-")[2]: task for task in Task.objects.filter(project=project)}
    for name, (nodes, counts) in COUNTED.items():
        services.set_key_nodes(task=tasks[name], nodes=nodes, by=None)
        found = KeyNodeCompletion.objects.filter(trajectory__task=tasks[name]).order_by("trajectory")
        trials = [each.trajectory.metadata["trial"] for each in found]
        assert trials == [0, 1, 2, 3]
        assert [each.reached for each in found] == counts
        assert [each.share for each in found] == [count / len(nodes) for count in counts]
        for each, record in zip(found, [row for row in kept if str(row["task_id"]) == name], strict=True):
            assert [step is not None for step in each.steps] == [_is_called(record, node) for node in nodes]


def _is_called(record: dict[str, Any], node: dict[str, Any]) -> bool:
    """Read from the file of the source, without anything of ours."""
    for message in record["traj"]:
        for made in message.get("tool_calls") or ():
            arguments = json.loads(made["function"]["arguments"])
            name, tool = made["function"]["name"], node["tools"][0]
            if not (name.startswith(tool[:-1]) if tool.endswith("*") else name == tool):
                continue
            if all(_value(arguments, test["path"]) in test["one_of"] for test in node["when"]):
                return True
    return False


def _value(arguments: Any, path: str) -> Any:
    for key in path.split("."):
        if isinstance(arguments, list):
            arguments = arguments[int(key)] if int(key) < len(arguments) else None
        else:
            arguments = arguments.get(key) if isinstance(arguments, dict) else None
    return arguments
