"""Stored trajectories, and bulk jobs over them that end in the test's own process."""

import io
import json
from typing import Any

from apps.accounts.models import Project
from apps.bulk.chunks import claim_chunk, store_chunk
from apps.bulk.models import BulkJob
from apps.bulk.services import create_bulk_job
from apps.trajectories.models import Trajectory
from apps.trajectories.services import import_trajectories
from workers.schema.bulk_items import BulkItem


def store_trajectories(
    project: Project, count: int, *, agent: str = "desk", words: str = "Sent it."
) -> list[int]:
    """Their keys."""
    lines = [json.dumps(_record(number, agent, words)).encode() + b"\n" for number in range(count)]
    import_trajectories(project=project, stream=io.BytesIO(b"".join(lines)), by=None)
    found = Trajectory.objects.filter(project=project, agent_name=agent).order_by("pk")
    return list(found.values_list("pk", flat=True))


def _record(number: int, agent: str, words: str) -> dict[str, Any]:
    call = {"name": "send", "arguments": json.dumps({"b": number, "a": [1.50, None, 12345678901234567890]})}
    return {
        "id": f"{agent}-{number}",
        "task": {"id": f"t{number // 2}", "instruction": "Send the parcel — “now”"},
        "agent": agent,
        "messages": [
            {"role": "user", "content": f"Send parcel {number}.\nQuickly\tplease 🙂"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "failed" if number % 3 else "sent"},
            {"role": "assistant", "content": f"{words} {number}"},
        ],
        "success": number % 3 == 0,
    }


def score_job(project: Project, model: Any, **given: Any) -> BulkJob:
    return create_bulk_job(project=project, work="score", model=model, **given)


def end_chunks(job: BulkJob, *, problems: frozenset[int] = frozenset()) -> None:
    """Claim and store every chunk, with the key as reward; `problems` get a problem instead."""
    while (chunk := claim_chunk(job)) is not None:
        items = [
            BulkItem(trajectory=key, problem="It is too long.")
            if key in problems
            else BulkItem(trajectory=key, reward=float(key), tokens=3)
            for key in chunk.trajectory_ids
        ]
        store_chunk(chunk, items, seconds=1.0)
    job.refresh_from_db()
