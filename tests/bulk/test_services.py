"""Bulk jobs from their creation to their end, with results that the test writes in a worker's place."""

import errno
import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.utils import timezone

from apps.accounts.models import Project
from apps.bulk import engine_process, judging, services
from apps.bulk.chunks import claim_chunk, give_back_chunk, store_chunk
from apps.bulk.estimates import estimate_bulk_job
from apps.bulk.exports import result_rows, write_results
from apps.bulk.models import BulkChunk, BulkJob
from apps.bulk.running import work_on_chunks
from apps.bulk.selectors import job_progress, next_bulk_job, trajectories_as_json
from apps.bulk.turns import WorkerTurn, other_jobs_wait
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import ClaimLost, JobState
from apps.judges.models import Judge, JudgeRun
from apps.llm.models import LLMConnection
from apps.rubrics.services import CriterionDraft, save_rubric
from apps.training.models import RewardModel
from apps.training.services import delete_model
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import load_trajectories
from tests.bulk.stored import end_chunks, score_job, store_trajectories
from workers.schema import Trajectory as TrajectoryContent
from workers.schema.bulk_items import BulkItem

pytestmark = pytest.mark.django_db


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "CHUNK_ITEMS", 4)


def test_the_trajectories_are_those_of_the_moment(
    project: Project, model: RewardModel, small_chunks: None
) -> None:
    keys = store_trajectories(project, 10)
    store_trajectories(project, 3, agent="other")
    job = score_job(project, model, filter="agent=desk")
    store_trajectories(project, 12)  # two more of the same agent
    Trajectory.objects.filter(pk=keys[0]).update(agent_name="renamed")
    chunks = list(job.chunks.order_by("pk").values_list("trajectory_ids", flat=True))
    assert chunks == [keys[:4], keys[4:8], keys[8:]]
    assert (job.item_count, job.state) == (10, "running")
    tokens = Trajectory.objects.filter(pk__in=keys).values_list("token_count", flat=True)
    assert job.token_estimate == sum(tokens)
    end_chunks(job)
    assert job.state == "succeeded" and job.finished_at is not None
    assert [int(row["trajectory"]) for row in result_rows(job)] == keys
    progress = job_progress(job)
    assert (progress.done, progress.problems, progress.tokens, progress.seconds_left) == (10, 0, 30, None)
    assert progress.per_second > 0


def test_chunks_end_at_so_many_tokens(
    project: Project, model: RewardModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_trajectories(project, 6)
    most = Trajectory.objects.order_by("-token_count").values_list("token_count", flat=True)[0]
    monkeypatch.setattr(services, "CHUNK_TOKENS", 2 * most)
    job = score_job(project, model)
    assert job.chunks.count() > 2
    assert all(chunk.token_estimate <= 3 * most for chunk in job.chunks.all())


def test_json_of_the_database_is_what_is_loaded(project: Project) -> None:
    keys = store_trajectories(project, 3)
    read = msgspec.json.decode(trajectories_as_json([*keys, 10**9]), type=list[TrajectoryContent])
    assert {int(found.id or 0): found for found in read} == load_trajectories(keys)
    assert [found.content_hash for found in read] == [
        found.content_hash for found in load_trajectories(keys).values()
    ]
    assert trajectories_as_json([]) == b"[]"


def test_a_chunk_is_written_once(project: Project, model: RewardModel) -> None:
    store_trajectories(project, 2)
    job = score_job(project, model)
    first = claim_chunk(job)
    assert first is not None and claim_chunk(job) is None
    BulkChunk.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))  # its worker was killed
    second = claim_chunk(job)
    assert second is not None and (second.pk, second.attempt) == (first.pk, 2)
    items = [BulkItem(trajectory=each, reward=1.0) for each in first.trajectory_ids]
    with pytest.raises(ClaimLost):
        store_chunk(first, items, seconds=1.0)
    assert not job.results.exists()
    store_chunk(second, items, seconds=1.0)
    with pytest.raises(ClaimLost):
        store_chunk(second, items, seconds=1.0)
    assert job.results.count() == 2
    job.refresh_from_db()
    assert job.state == "succeeded"


def test_a_chunk_that_ends_its_processes_is_split_down_to_the_item(
    project: Project, model: RewardModel
) -> None:
    keys = store_trajectories(project, 4)
    job, bad = score_job(project, model), keys[2]
    while (chunk := claim_chunk(job)) is not None:
        if bad in chunk.trajectory_ids:
            give_back_chunk(chunk, lost=True)
        else:
            items = [BulkItem(trajectory=key, reward=1.0) for key in chunk.trajectory_ids]
            store_chunk(chunk, items, seconds=1.0)
    job.refresh_from_db()
    assert job.state == "succeeded"
    problems = {row["trajectory"]: row.get("problem", "") for row in result_rows(job)}
    assert [key for key in keys if problems[str(key)]] == [bad] and len(problems) == 4
    assert "ended each time" in problems[str(bad)]


@pytest.mark.django_db(transaction=True)  # keys are checked when a transaction ends
def test_a_chunk_that_ends_its_processes_and_whose_trajectory_is_deleted(
    project: Project, model: RewardModel
) -> None:
    keys = store_trajectories(project, 1)
    job = score_job(project, model)
    for _ in range(2):
        chunk = claim_chunk(job)
        assert chunk is not None
        give_back_chunk(chunk, lost=True)
    Trajectory.objects.filter(pk__in=keys).delete()
    assert claim_chunk(job) is None
    job.refresh_from_db()
    assert (job.state, job_progress(job).missing) == ("succeeded", 1)


def test_problems_are_retried(project: Project, model: RewardModel) -> None:
    keys = store_trajectories(project, 5)
    job = score_job(project, model)
    with pytest.raises(DomainError, match="once it has ended"):
        services.retry_problems(job=job, by=None)
    end_chunks(job, problems=frozenset(keys[1:3]))
    assert job_progress(job).problems == 2
    assert [row["trajectory"] for row in result_rows(job, problems=True)] == [str(key) for key in keys[1:3]]
    assert services.retry_problems(job=job, by=None) == 2
    assert job.state == "running"
    end_chunks(job)
    progress = job_progress(job)
    assert (job.state, progress.problems, progress.done, job.results.count()) == ("succeeded", 0, 5, 5)


def test_pause_resume_and_cancel(project: Project, model: RewardModel, small_chunks: None) -> None:
    store_trajectories(project, 8)
    job = score_job(project, model)
    begun = claim_chunk(job)
    assert begun is not None
    services.pause_bulk_job(job=job, by=None)
    assert claim_chunk(job) is None and next_bulk_job() is None
    store_chunk(begun, [BulkItem(trajectory=key, reward=0.0) for key in begun.trajectory_ids], seconds=1.0)
    services.resume_bulk_job(job=job, by=None)
    assert next_bulk_job() == job
    services.cancel_bulk_job(job=job, by=None)
    assert claim_chunk(job) is None and job.results.count() == 4 and job.is_finished
    for change in (services.pause_bulk_job, services.resume_bulk_job, services.cancel_bulk_job):
        with pytest.raises(DomainError, match="is cancelled"):
            change(job=job, by=None)


def test_failed_chunks_fail_the_job_and_are_resumed(project: Project, model: RewardModel) -> None:
    store_trajectories(project, 2)
    job = score_job(project, model)
    chunk = claim_chunk(job)
    assert chunk is not None
    job_queue.finish(chunk, JobState.FAILED, error="Its worker was lost.")
    job.refresh_from_db()
    assert job.state == "failed" and "Its worker was lost." in job.error
    services.resume_bulk_job(job=job, by=None)
    end_chunks(job)
    assert job.state == "succeeded" and not job.error


def test_a_job_whose_last_chunk_ends_while_it_is_paused_or_failed_ends_when_it_is_resumed(
    project: Project, model: RewardModel
) -> None:
    store_trajectories(project, 2)
    paused, failed = score_job(project, model), score_job(project, model)
    for job in (paused, failed):
        last = claim_chunk(job)
        assert last is not None
        if job is paused:
            services.pause_bulk_job(job=job, by=None)
        else:
            services.fail_bulk_job(job, "A worker could not load the model.")
        store_chunk(last, [BulkItem(trajectory=key, reward=0.0) for key in last.trajectory_ids], seconds=1.0)
        services.resume_bulk_job(job=job, by=None)
        job.refresh_from_db()
        assert (job.state, job.error) == ("succeeded", "") and job.finished_at is not None


def test_an_error_that_is_no_outage_fails_the_job(
    project: Project, model: RewardModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*given: Any, **named: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store_trajectories(project, 2)
    connection = LLMConnection.objects.create(project=project, name="rules", base_url="http://127.0.0.1/")
    rubric = save_rubric(project=project, name="r", criteria=[CriterionDraft(name="Care")], by=None)
    judge = Judge.objects.create(
        project=project, name="j", mode="score", llm_connection=connection, rubric=rubric
    )
    monkeypatch.setattr(engine_process, "stage", full)
    monkeypatch.setattr(judging, "_judge_chunk", full)
    jobs = [score_job(project, model), services.create_bulk_job(project=project, work="judge", judge=judge)]
    work_on_chunks()
    for job in jobs:
        job.refresh_from_db()
        assert job.state == "failed"
        reference = re.search(r"the log has it under (\w+)\.", job.error)
        assert reference is not None and reference[1] in caplog.text
        assert [(each.state, each.lost) for each in job.chunks.all()] == [("queued", 0)]


def test_characters_that_cannot_be_stored_are_replaced(project: Project, model: RewardModel) -> None:
    first, second = store_trajectories(project, 2)
    chunk = claim_chunk(job := score_job(project, model))
    assert chunk is not None
    verdict = {"metric": "Care\x00", "sign": 1, "value": 0.5, "step": 0}
    items = [
        BulkItem(trajectory=first, verdicts=[verdict]),
        BulkItem(trajectory=second, problem="It wrote \x00 and \ud800."),
    ]
    store_chunk(chunk, items, seconds=1.0)
    rows = list(result_rows(job))
    assert rows[0]["answer"] == [verdict | {"metric": "Care\ufffd"}]
    assert rows[1]["problem"] == "It wrote \ufffd and \ufffd."


def test_a_model_is_deleted_once_its_bulk_jobs_have_ended(project: Project, model: RewardModel) -> None:
    keys = store_trajectories(project, 2)
    job = score_job(project, model)
    with pytest.raises(Conflict, match=rf"bulk job {job.pk} uses it.* cancel bulk jobs"):
        delete_model(model=model, by=None)
    end_chunks(job, problems=frozenset(keys[:1]))
    delete_model(model=model, by=None)
    job = BulkJob.objects.get(pk=job.pk)
    assert job.engine == str(model) and job.results.count() == 2
    with pytest.raises(Conflict, match="has been deleted"):
        services.retry_problems(job=job, by=None)
    assert job.results.count() == 2


def test_jobs_take_turns_and_let_others_come_first(
    project: Project, model: RewardModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_trajectories(project, 2)
    first, second = score_job(project, model), score_job(project, model)
    assert next_bulk_job() == first
    BulkJob.objects.filter(pk=first.pk).update(served_at=timezone.now())
    assert next_bulk_job() == second
    turn = WorkerTurn(first)
    assert not turn.is_over(), "a turn lasts a while"
    monkeypatch.setattr("apps.bulk.turns.time.monotonic", lambda: 1e12)
    assert turn.is_over(), "the second job waits"
    assert not other_jobs_wait()
    connection = LLMConnection.objects.create(project=project, name="rules", base_url="http://127.0.0.1/")
    judge = Judge.objects.create(project=project, name="j", mode="compare", llm_connection=connection)
    JudgeRun.objects.create(judge=judge, prompt=1)
    assert other_jobs_wait(), "a judge run waits for the same workers"


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"filter": "nothing=1"}, "/filter"),
        ({"filter": "steps_from=many"}, "/filter"),
        ({"filter": "campaign=none"}, "/filter"),
        ({"model": None}, "/model"),
        ({"work": "judge"}, "/judge"),
        ({"work": "induce"}, "/induction"),
        ({"work": "rank"}, "/work"),
    ],
)
def test_what_cannot_be_done_is_refused(
    project: Project, model: RewardModel, given: dict[str, Any], pointer: str
) -> None:
    store_trajectories(project, 1)
    named: dict[str, Any] = {"project": project, "work": "score", "model": model}
    with pytest.raises(DomainError) as caught:
        services.create_bulk_job(**(named | given))
    assert caught.value.pointer == pointer
    assert not BulkJob.objects.exists()


def test_an_estimate_is_by_what_was_done_and_by_prices(project: Project, model: RewardModel) -> None:
    store_trajectories(project, 4)
    known: dict[str, Any] = {"project": project, "work": "score", "model": model}
    assert estimate_bulk_job(**known).seconds is None
    job = score_job(project, model, filter="success=yes")
    end_chunks(job)  # of a second each
    foreseen = estimate_bulk_job(**known)
    assert foreseen.items == 4 and foreseen.cost is None
    assert foreseen.seconds == pytest.approx(foreseen.tokens / job.token_estimate)
    rubric = save_rubric(project=project, name="r", criteria=[CriterionDraft(name="Care")], by=None)
    connection = LLMConnection.objects.create(
        project=project, name="paid", base_url="http://127.0.0.1/", prompt_price=2, completion_price=10
    )
    judge = Judge.objects.create(
        project=project, name="j", mode="score", llm_connection=connection, rubric=rubric
    )
    guessed = estimate_bulk_job(project=project, work="judge", judge=judge)
    assert guessed.cost is not None and "not scored yet" in guessed.basis
    run = JudgeRun.objects.create(
        judge=judge,
        prompt=1,
        state="succeeded",
        result={"usage": {"calls": 1, "kept": 0, "prompt_tokens": 500_000, "completion_tokens": 100_000}},
    )
    key = Trajectory.objects.values_list("pk", flat=True)[0]
    run.results.create(trajectory_id=key, state="done", answer=[])
    measured = estimate_bulk_job(project=project, work="judge", judge=judge)
    assert measured.cost == 8 and "1 items that this judge scored" in measured.basis


def test_results_are_written_as_parquet(project: Project, model: RewardModel, tmp_path: Any) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    keys = store_trajectories(project, 3)
    job = score_job(project, model)
    end_chunks(job, problems=frozenset(keys[:1]))
    assert write_results(job, tmp_path / "results.parquet") == 3
    rows = parquet.read_table(tmp_path / "results.parquet").to_pylist()
    assert [row["trajectory"] for row in rows] == keys
    assert [row["reward"] for row in rows] == [None, *map(float, keys[1:])]
    assert rows[0]["problem"] == "It is too long."
    with pytest.raises(DomainError, match="cannot be written"):
        write_results(job, tmp_path / "none" / "results.jsonl")
