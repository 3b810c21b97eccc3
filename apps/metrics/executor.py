"""Executes an induction: a child process of the core on a folder with comments and their trajectories."""

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.annotation.models import Comment
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.llm.child_access import open_llm_access, write_json_lines
from apps.llm.models import SpendingPurpose
from apps.metrics.models import Induction, Metric
from apps.metrics.selectors import (
    active_metrics,
    list_comments,
    metric_definition,
    metric_examples,
    uncommented_trajectories,
)
from apps.metrics.services.inductions import store_induction, store_new_verdicts
from apps.trajectories.selectors import stream_trajectories
from workers import schema

CHILD = "workers.induce"


def execute(induction: Induction) -> None:
    """Extract metrics, or, where the induction has metrics, judge by them again. Raises ClaimLost, Interrupted."""
    metrics = list(active_metrics(induction))
    with keep_heartbeat(induction) as heartbeat, tempfile.TemporaryDirectory(prefix="induction-") as scratch:
        folder = Path(scratch)
        try:
            _write_inputs(folder, induction, metrics, heartbeat)
            note = "Judging trajectories" if metrics else "Extracting metrics"
            heartbeat.progress = {"done": 0, "total": None, "note": note}
            run = partial(
                core_subprocess.run_to_end, CHILD, [str(folder)], folder=folder, what="The induction"
            )
            if induction.engine == Induction.Engine.LLM:
                _run_with_llm(induction, folder, heartbeat, run)
            else:
                run(check=heartbeat.check)
            result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
            aspects, traits = (list(_read_lines(folder / f"{name}.jsonl")) for name in ("aspects", "traits"))
            if metrics:
                store_new_verdicts(induction, metrics, result, aspects, traits)
            else:
                store_induction(induction, result, aspects, traits)
        except DomainError as error:
            finish(induction, JobState.FAILED, error=error.message)
        except Cancelled:
            finish(induction, JobState.CANCELLED)


def _write_inputs(folder: Path, induction: Induction, metrics: list[Metric], heartbeat: JobHeartbeat) -> None:
    commented = write_comments(folder, induction)
    others = uncommented_trajectories(induction, commented)
    count = len(commented) + len(others)
    heartbeat.progress = {"done": 0, "total": None, "note": f"Reading {count} trajectories"}
    write_evidence(folder, induction, metrics, commented, check=heartbeat.check)
    schema.write_trajectories(folder / "others.jsonl.zst", stream_trajectories(others, check=heartbeat.check))


def write_comments(folder: Path, induction: Induction) -> list[int]:
    """The comments of an induction; the keys of the trajectories that they are about."""
    comments = list_comments(induction.project, induction.campaign)
    write_json_lines(
        folder / "comments.jsonl", (_comment_line(comment) for comment in comments.iterator(chunk_size=500))
    )
    return sorted(set(comments.values_list("trajectory_id", flat=True)))


def write_evidence(
    folder: Path,
    induction: Induction,
    metrics: list[Metric],
    commented: list[int],
    *,
    check: Callable[[], None],
) -> None:
    """The trajectories that comments are about, the configuration, and metrics that people decided on."""
    schema.write_trajectories(folder / "trajectories.jsonl.zst", stream_trajectories(commented, check=check))
    config = {"seed": induction.seed, "device": settings.TRAINING_DEVICE}
    (folder / "config.json").write_text(json.dumps(config))
    if metrics:
        rejected = induction.metrics.filter(state=Metric.State.REJECTED)
        groups = [_group(metric, is_active=True) for metric in metrics]
        groups += [_group(metric, is_active=False) for metric in rejected]
        (folder / "groups.json").write_text(json.dumps(groups))
    elif induction.previous is not None:
        previous = induction.previous.metrics.exclude(state=Metric.State.MERGED)
        (folder / "previous.json").write_text(json.dumps([_previous_metric(metric) for metric in previous]))


def _run_with_llm(
    induction: Induction, folder: Path, heartbeat: JobHeartbeat, run: Callable[..., None]
) -> None:
    """Run the child with access to the language model. Completions are cached as they come, also where it fails."""
    connection = induction.llm_connection
    if connection is None:
        raise DomainError("The LLM connection was deleted. Extract metrics again with another connection.")
    note = heartbeat.progress["note"]
    with open_llm_access(connection, folder, SpendingPurpose.METRICS) as access:

        def check() -> None:
            heartbeat.check()
            if access.store_new_completions():
                heartbeat.progress = {"done": 0, "total": None, "note": f"{note}: asking {connection.name}"}

        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"server": access.server}))
        run(check=check, given=access.environment)


def _group(metric: Metric, *, is_active: bool) -> dict[str, Any]:
    points = metric.aspects.order_by("number").values_list("comment", "feedback")
    return {
        "name": metric.name,
        "definition": metric_definition(metric),
        "points": [(str(comment), point) for comment, point in points],
        "stands": is_active,
    }


def _previous_metric(metric: Metric) -> dict[str, Any]:
    good, bad = metric_examples(metric, 1), metric_examples(metric, -1)
    return {"id": str(metric.pk), "name": metric.name, "good": good, "bad": bad}


def _comment_line(comment: Comment) -> dict[str, Any]:
    is_anchored = comment.first_step is not None
    return {
        "id": str(comment.pk),
        "trajectory": str(comment.trajectory_id),
        "text": comment.text,
        "sign": comment.sign,
        "steps": [comment.first_step, comment.last_step] if is_anchored else None,
    }


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
