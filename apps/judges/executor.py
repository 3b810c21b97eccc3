"""Executes a judge run: child processes of the core, each on a folder with part of what is to be judged."""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from django.utils import timezone

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.judges.models import Judge, JudgeResult, JudgeRun
from apps.judges.services.judge_runs import store_results
from apps.judges.services.results import update_trajectory_facts, write_annotations
from apps.llm.child_access import JsonLinesTail, LLMAccess, open_llm_access, write_json_lines
from apps.llm.models import SpendingPurpose
from apps.rubrics.models import Criterion
from apps.trajectories.attachments import noting_digests, write_pictures
from apps.trajectories.selectors import stream_trajectories
from workers import schema

CHILD = "workers.judge"
MOST_AT_ONCE = 1000  # results of a child, which holds their trajectories in memory
OVERALL = "Overall"


def execute(judge_run: JudgeRun) -> None:
    """Judge what is waiting, store the results, and save them as annotations where that was asked for.

    Raises ClaimLost, Interrupted.
    """
    with keep_heartbeat(judge_run) as heartbeat:
        try:
            waiting = judge_run.results.filter(state=JudgeResult.State.WAITING).order_by("pk")
            while batch := list(islice(waiting.iterator(chunk_size=MOST_AT_ONCE), MOST_AT_ONCE)):
                _judge_batch(judge_run, batch, heartbeat)
            if judge_run.saves_annotations:
                heartbeat.progress = {"done": 0, "total": None, "note": "Saving as annotations"}
                write_annotations(judge_run, heartbeat.check)
                judge_run.annotations_saved_at = timezone.now()
            update_trajectory_facts(judge_run)
            finish(
                judge_run,
                JobState.SUCCEEDED,
                progress={},
                result=judge_run.result,
                annotations_saved_at=judge_run.annotations_saved_at,
            )
        except DomainError as error:
            finish(judge_run, JobState.FAILED, error=error.message, result=judge_run.result)
        except Cancelled:
            finish(judge_run, JobState.CANCELLED, result=judge_run.result)


def _judge_batch(judge_run: JudgeRun, batch: list[JudgeResult], heartbeat: JobHeartbeat) -> None:
    """Run a child on these results. None of them is waiting afterwards."""
    connection = judge_run.judge.llm_connection
    if connection is None:
        raise DomainError(
            f"The LLM connection of {judge_run.judge.name} was deleted. Create a judge with another connection."
        )
    with tempfile.TemporaryDirectory(prefix="judge-run-") as scratch:
        folder = Path(scratch)
        _write_inputs(folder, judge_run, batch, heartbeat)
        with open_llm_access(connection, folder, SpendingPurpose.JUDGE_RUNS) as access:
            config = judge_child_config(judge_run.judge, judge_run.prompt, access.server)
            (folder / "config.json").write_text(json.dumps(config))
            _run_child(judge_run, folder, access, heartbeat)
        child_result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    judge_run.result = _add_usage(judge_run.result, child_result)


def write_judged(
    folder: Path,
    judge: Judge,
    trajectories: Iterable[schema.Trajectory],
    check: Callable[[], None],
) -> None:
    """The trajectories for a child, and their pictures where the judge's language model reads any."""
    digests: set[str] = set()
    schema.write_trajectories(folder / "trajectories.jsonl.zst", noting_digests(trajectories, digests))
    if judge.llm_connection is not None and judge.llm_connection.reads_pictures:
        write_pictures(judge.project, digests, folder, check=check)


def _write_inputs(
    folder: Path, judge_run: JudgeRun, batch: list[JudgeResult], heartbeat: JobHeartbeat
) -> None:
    numbers = list(dict.fromkeys(number for result in batch for number in _trajectory_ids(result)))
    trajectories = stream_trajectories(numbers, check=heartbeat.check)
    write_judged(folder, judge_run.judge, trajectories, heartbeat.check)
    write_json_lines(
        folder / "units.jsonl",
        ({"unit": result.pk, "runs": list(map(str, _trajectory_ids(result)))} for result in batch),
    )
    (folder / "judged.jsonl").touch()


def _run_child(judge_run: JudgeRun, folder: Path, access: LLMAccess, heartbeat: JobHeartbeat) -> None:
    """Results are stored while the child runs, and once more at its end."""
    new_results = JsonLinesTail(folder / "judged.jsonl")

    def store() -> None:
        if lines := new_results.read_new():
            store_results(judge_run, lines)
        counts = Counter(judge_run.results.values_list("state", flat=True))
        heartbeat.progress = {
            "done": counts.total() - counts[JudgeResult.State.WAITING],
            "total": counts.total(),
            "note": f"Asking {access.llm_connection}",
        }

    def check() -> None:
        heartbeat.check()
        access.store_new_completions()
        store()

    try:
        core_subprocess.run_to_end(
            CHILD,
            [str(folder)],
            folder=folder,
            what="The judge run",
            check=check,
            given=access.environment,
        )
    finally:
        store()


def judge_child_config(judge: Judge, prompt: int, server: Mapping[str, Any]) -> dict[str, Any]:
    """As `workers.judge.pipeline.JudgeRunConfig` takes it. prompt: version of the prompts."""
    return {
        "server": server,
        "mode": judge.mode,
        "criteria": [criterion_config(criterion, judge.mode) for criterion in judge.criteria],
        "version": prompt,
        "samples": judge.samples,
        "guidelines": judge.guidelines,
        "approach": "" if judge.approach == Judge.Approach.DIRECT else judge.approach,
        "window": judge.window,
    }


def criterion_config(criterion: Criterion | None, mode: str) -> dict[str, Any]:
    """A criterion as `workers.judge.rubric.Criterion` takes it. Its words are part of the prompt."""
    if criterion is None:
        return {"name": OVERALL, "definition": "Which run does the task better, all in all."}
    config = {
        "name": criterion.name,
        "definition": "\n".join(
            [criterion.definition, *(f"{point} = {name}" for point, name in criterion.named_points)]
        ).strip(),
        "good_example": criterion.good_example,
        "bad_example": criterion.bad_example,
    }
    if mode != "score":
        return config
    return config | {"low": criterion.scale_low, "high": criterion.scale_high}


def _trajectory_ids(result: JudgeResult) -> list[int]:
    other = [] if result.other_trajectory_id is None else [result.other_trajectory_id]
    return [result.trajectory_id, *other]


def _add_usage(result: Mapping[str, Any], child_result: Mapping[str, Any]) -> dict[str, Any]:
    """The usage, the prompts and how many pictures were shown, of all children of the run so far."""
    usage = Counter(result.get("usage", {}))
    usage.update(child_result["usage"])
    pictures = Counter(result.get("pictures", {}))
    pictures.update(child_result.get("pictures", {}))
    return {
        "usage": dict(usage),
        "pictures": dict(pictures),
        "prompts": sorted({*result.get("prompts", ()), *child_result["prompts"]}),
    }
