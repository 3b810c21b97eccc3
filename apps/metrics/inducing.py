"""Executes an induction: a child process of the core on a folder of what people wrote and what they wrote it about."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.annotation.models import Comment
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.llm.child_access import asking
from apps.llm.models import SpendingPurpose
from apps.metrics.models import Induction, Metric
from apps.metrics.selectors import comments_of, definition_of, examples_of, others_of, standing
from apps.metrics.services import keep_induction, keep_judging
from apps.trajectories.selectors import stream_trajectories
from workers import schema

CHILD = "workers.induce"


def execute(induction: Induction) -> None:
    """Induce, or judge again where metrics are there already. Raises ClaimLost, Interrupted."""
    metrics = list(standing(induction))
    with keep_heartbeat(induction) as heartbeat, tempfile.TemporaryDirectory(prefix="induction-") as scratch:
        folder = Path(scratch)
        try:
            _prepare(folder, induction, metrics, heartbeat)
            heartbeat.progress = {"done": 0, "total": None, "note": "Inducing" if not metrics else "Judging"}
            run = partial(
                core_subprocess.run_to_end, CHILD, [str(folder)], folder=folder, what="The induction"
            )
            if induction.engine == Induction.Engine.LLM:
                _ask(induction, folder, heartbeat, run)
            else:
                run(check=heartbeat.check)
            result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
            aspects, traits = (list(_lines(folder / f"{name}.jsonl")) for name in ("aspects", "traits"))
            if metrics:
                keep_judging(induction, metrics, result, aspects, traits)
            else:
                keep_induction(induction, result, aspects, traits)
        except DomainError as error:
            finish(induction, JobState.FAILED, error=error.message)
        except Cancelled:
            finish(induction, JobState.CANCELLED)


def _prepare(folder: Path, induction: Induction, metrics: list[Metric], heartbeat: JobHeartbeat) -> None:
    comments = comments_of(induction.project, induction.campaign)
    _write(folder / "comments.jsonl", (_comment(one) for one in comments.iterator(chunk_size=500)))
    commented = sorted(set(comments.values_list("trajectory_id", flat=True)))
    others = others_of(induction, commented)
    heartbeat.progress = {"done": 0, "total": None, "note": f"Reading {len(commented) + len(others)} runs"}
    schema.write_trajectories(
        folder / "trajectories.jsonl.zst", stream_trajectories(commented, check=heartbeat.check)
    )
    schema.write_trajectories(folder / "others.jsonl.zst", stream_trajectories(others, check=heartbeat.check))
    config = {"seed": induction.seed, "device": settings.TRAINING_DEVICE}
    (folder / "config.json").write_text(json.dumps(config))
    if metrics:
        rejected = induction.metrics.filter(state=Metric.State.REJECTED)
        groups = [_group(one, stands=True) for one in metrics] + [
            _group(one, stands=False) for one in rejected
        ]
        (folder / "groups.json").write_text(json.dumps(groups))
    elif induction.before is not None:
        previous = [
            {"id": str(one.pk), "name": one.name, "good": examples_of(one, 1), "bad": examples_of(one, -1)}
            for one in induction.before.metrics.exclude(state=Metric.State.MERGED)
        ]
        (folder / "previous.json").write_text(json.dumps(previous))


def _ask(induction: Induction, folder: Path, heartbeat: JobHeartbeat, run: Callable[..., None]) -> None:
    """Run it with a language model; what it answers is kept as it comes, whatever happens."""
    model = induction.llm_connection
    if model is None:
        raise DomainError("The language model that was to be asked was removed. Induce anew, with another.")
    told = heartbeat.progress["note"]
    with asking(model, folder, SpendingPurpose.METRICS) as one:

        def check() -> None:
            heartbeat.check()
            if one.keep():
                heartbeat.progress = {"done": 0, "total": None, "note": f"{told}: {model.name} is asked"}

        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"server": one.server}))
        run(check=check, given=one.given)


def _group(metric: Metric, *, stands: bool) -> dict[str, Any]:
    points = metric.aspects.order_by("number").values_list("comment", "feedback")
    return {
        "name": metric.name,
        "definition": definition_of(metric),
        "points": [(str(comment), point) for comment, point in points],
        "stands": stands,
    }


def _comment(comment: Comment) -> dict[str, Any]:
    anchored = comment.first_step is not None
    return {
        "id": str(comment.pk),
        "trajectory": str(comment.trajectory_id),
        "text": comment.text,
        "sign": comment.sign,
        "steps": [comment.first_step, comment.last_step] if anchored else None,
    }


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _write(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
