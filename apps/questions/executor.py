"""Answers a question: child processes of the core, each on a folder with some of the trajectories; then one that sorts
the answers into categories."""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.llm.child_access import JsonLinesTail, LLMAccess, open_llm_access
from apps.llm.models import SpendingPurpose
from apps.questions.models import QuestionAnswer, TrajectoryQuestion
from apps.questions.services import label_counts, store_answers, store_categories
from apps.trajectories.selectors import stream_trajectories
from workers import schema

CHILD = "workers.questions"
BATCH = 200  # trajectories of a child, which holds them in memory


def execute(question: TrajectoryQuestion) -> None:
    """Raises ClaimLost, Interrupted."""
    with keep_heartbeat(question) as heartbeat:
        try:
            waiting = question.answers.filter(state=QuestionAnswer.State.WAITING).order_by("pk")
            while batch := list(waiting.values_list("trajectory_id", flat=True)[:BATCH]):
                _answer_batch(question, batch, heartbeat)
            _group_answers(question, heartbeat)
            finish(question, JobState.SUCCEEDED, progress={}, result=question.result)
        except DomainError as error:
            finish(question, JobState.FAILED, error=error.message, result=question.result)
        except Cancelled:
            finish(question, JobState.CANCELLED, result=question.result)


def _answer_batch(question: TrajectoryQuestion, batch: list[int], heartbeat: JobHeartbeat) -> None:
    """None of these is waiting afterwards."""

    def run(folder: Path, access: LLMAccess) -> None:
        schema.write_trajectories(
            folder / "trajectories.jsonl.zst", stream_trajectories(batch, check=heartbeat.check)
        )
        (folder / "found.jsonl").touch()
        found = JsonLinesTail(folder / "found.jsonl")

        def store() -> None:
            if lines := found.read_new():
                store_answers(question, lines)
            heartbeat.progress = _progress(question, access)

        try:
            _run_child(question, folder, access, heartbeat, "answer", store)
        finally:
            store()

    _with_access(question, run, trajectories=batch)
    # What was deleted while it was read has no line.
    question.answers.filter(trajectory__in=batch, state=QuestionAnswer.State.WAITING).update(
        state=QuestionAnswer.State.FAILED, problem="The trajectory was not read."
    )


def _progress(question: TrajectoryQuestion, access: LLMAccess) -> dict[str, Any]:
    counts = Counter(question.answers.values_list("state", flat=True))
    return {
        "done": counts.total() - counts[QuestionAnswer.State.WAITING],
        "total": counts.total(),
        "note": f"Asking {access.llm_connection}",
    }


def _group_answers(question: TrajectoryQuestion, heartbeat: JobHeartbeat) -> None:
    labels = label_counts(question)
    if not labels:
        question.result["categories"] = []
        return
    heartbeat.progress = {"done": 0, "total": None, "note": "Sorting the answers into categories"}

    def run(folder: Path, access: LLMAccess) -> None:
        (folder / "labels.json").write_text(json.dumps(labels), encoding="utf-8")
        _run_child(question, folder, access, heartbeat, "group", lambda: None)
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        store_categories(question, result["categories"])

    _with_access(question, run)


def _with_access(
    question: TrajectoryQuestion,
    run: Callable[[Path, LLMAccess], None],
    *,
    trajectories: list[int] | None = None,
) -> None:
    connection = question.llm_connection
    if connection is None:
        raise DomainError("The LLM connection was deleted. Ask the question again with another one.")
    with tempfile.TemporaryDirectory(prefix="question-") as scratch:
        folder = Path(scratch)
        with open_llm_access(
            connection, folder, SpendingPurpose.QUESTIONS, trajectories=trajectories
        ) as access:
            run(folder, access)
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    question.result = _add_usage(question.result, result)


def _run_child(
    question: TrajectoryQuestion,
    folder: Path,
    access: LLMAccess,
    heartbeat: JobHeartbeat,
    work: str,
    store: Callable[[], None],
) -> None:
    config = {
        "server": access.server,
        "work": work,
        "question": question.text,
        "max_categories": question.max_categories,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")

    def check() -> None:
        heartbeat.check()
        access.store_new_completions()
        store()

    core_subprocess.run_to_end(
        CHILD, [str(folder)], folder=folder, what="The question", check=check, given=access.environment
    )


def _add_usage(result: Mapping[str, Any], child_result: Mapping[str, Any]) -> dict[str, Any]:
    """The usage and the prompts of all children of the question so far."""
    usage = Counter(result.get("usage", {}))
    usage.update(child_result["usage"])
    return dict(result) | {
        "usage": dict(usage),
        "prompts": sorted({*result.get("prompts", ()), *child_result["prompts"]}),
    }
