"""A shop with one task: one trajectory refunds the order, one only finds it, one opens its page."""

import io
import json
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.accounts.services import create_project
from apps.trajectories.models import Task, Trajectory
from apps.trajectories.services import import_trajectories

FIND: dict[str, Any] = {
    "name": "find order",
    "tools": ["find_order"],
    "when": [{"path": "order.id", "one_of": [7]}],
}
REFUND: dict[str, Any] = {"name": "refund it", "tools": ["refund"], "expected": "refunded 20 EUR"}
CONFIRMED = {"name": "confirmed", "text": "(?i)shall I refund", "within": "said"}
NODES: list[dict[str, Any]] = [FIND, CONFIRMED, REFUND]


def record(name: str, *turns: tuple[str, dict[str, Any] | str, str], agent: str = "desk") -> dict[str, Any]:
    """turns: tool, its arguments and its result; or "" , a text, and the user's answer."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Refund order 7."}]
    for place, (tool, arguments, result) in enumerate(turns):
        if not tool:
            messages += [{"role": "assistant", "content": arguments}, {"role": "user", "content": result}]
            continue
        call = {"name": tool, "arguments": json.dumps(arguments)}
        calls = [{"id": f"c{place}", "type": "function", "function": call}]
        messages += [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{place}", "content": result},
        ]
    task = {"id": "refund 7", "instruction": "Refund order 7."}
    return {"id": name, "task": task, "agent": agent, "messages": messages}


FOUND = ("find_order", {"order": {"id": 7, "fields": ["paid"]}, "note": "x" * 80}, "order 7: paid")
ASKED = ("", "Shall I refund it?", "Yes.")
REFUNDED = ("refund", {"order": {"id": 7}, "amount": 20.0}, "refunded 25 EUR")
RECORDS = (
    record("all", FOUND, ASKED, REFUNDED),
    record("some", FOUND),
    record("none", ("", "Sorry.", "Oh.")),
)


def add_trajectories(project: Project, *records: dict[str, Any]) -> None:
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in records)
    import_trajectories(project=project, stream=io.BytesIO(lines), by=None)


@pytest.fixture
def project(db: None) -> Project:
    project = create_project(slug="shop")
    add_trajectories(project, *RECORDS)
    return project


@pytest.fixture
def task(project: Project) -> Task:
    return Task.objects.get(project=project)


@pytest.fixture
def full(project: Project) -> Trajectory:
    return Trajectory.objects.get(project=project, external_id="all")
