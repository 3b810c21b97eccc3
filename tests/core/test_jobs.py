import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from apps.accounts.models import Project
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.core.logs import current
from apps.datasets.models import DatasetVersion


def _orphan(job: DatasetVersion) -> None:
    silent_since = timezone.now() - job_queue.orphaned_after() - timedelta(seconds=1)
    DatasetVersion.objects.filter(pk=job.pk).update(heartbeat_at=silent_since)


@pytest.fixture
def quick_hearts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_queue, "heartbeat_seconds", lambda: 0.01)


@pytest.mark.django_db
def test_the_oldest_is_claimed_first_and_only_once(project: Project, job: DatasetVersion) -> None:
    second = DatasetVersion.objects.create(project=project, name="second", version=1)
    first_claim, second_claim = job_queue.claim_next(DatasetVersion), job_queue.claim_next(DatasetVersion)
    assert [first_claim, second_claim, job_queue.claim_next(DatasetVersion)] == [job, second, None]
    assert first_claim is not None
    job.refresh_from_db()
    assert (job.state, job.attempt, job.started_at) == (JobState.RUNNING, 1, first_claim.started_at)
    assert job.heartbeat_at is not None


@pytest.mark.django_db(transaction=True)
def test_claimers_at_once_never_get_the_same_row(project: Project) -> None:
    DatasetVersion.objects.bulk_create(
        DatasetVersion(project=project, name="many", version=number) for number in range(60)
    )
    start = threading.Barrier(6)

    def claim_all() -> list[int]:
        start.wait()
        claimed = []
        while (job := job_queue.claim_next(DatasetVersion)) is not None:
            claimed.append(job.pk)
        connection.close()
        return claimed

    with ThreadPoolExecutor(6) as pool:
        claims = [future.result() for future in [pool.submit(claim_all) for _ in range(6)]]
    claimed = [pk for claim in claims for pk in claim]
    assert len(claimed) == len(set(claimed)) == 60


@pytest.mark.django_db(transaction=True)
def test_a_row_somebody_is_claiming_is_skipped_not_waited_for(job: DatasetVersion) -> None:
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            DatasetVersion.objects.select_for_update().get(pk=job.pk)
            locked.set()
            done.wait(10)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(hold)
        assert locked.wait(10)
        assert job_queue.claim_next(DatasetVersion) is None
        done.set()
        holder.result()
    assert job_queue.claim_next(DatasetVersion) == job


@pytest.mark.django_db
def test_an_orphan_is_claimed_again_and_its_first_attempt_writes_nothing(job: DatasetVersion) -> None:
    first = job_queue.claim_next(DatasetVersion)
    assert first is not None
    assert job_queue.claim_next(DatasetVersion) is None
    _orphan(job)
    second = job_queue.claim_next(DatasetVersion)
    assert second is not None
    assert second.attempt == 2
    assert second.started_at == first.started_at
    with pytest.raises(job_queue.ClaimLost):
        job_queue.renew_heartbeat(first, progress={"done": 9})
    with pytest.raises(job_queue.ClaimLost), job_queue.fenced(first):
        pytest.fail("the lost attempt was let in")
    with pytest.raises(job_queue.ClaimLost):
        job_queue.finish(first, JobState.SUCCEEDED)
    job.refresh_from_db()
    assert (job.state, job.attempt, job.progress) == (JobState.RUNNING, 2, {})
    job_queue.finish(second, JobState.SUCCEEDED, records={"pairwise": 3})
    assert (second.state, second.records, second.is_finished) == (JobState.SUCCEEDED, {"pairwise": 3}, True)


@pytest.mark.django_db
def test_a_beating_job_is_nobodys_orphan(job: DatasetVersion) -> None:
    claimed = job_queue.claim_next(DatasetVersion)
    assert claimed is not None
    _orphan(job)
    assert job_queue.renew_heartbeat(claimed, progress={"done": 1}) is False
    assert job_queue.claim_next(DatasetVersion) is None
    job.refresh_from_db()
    assert job.progress == {"done": 1}


@pytest.mark.django_db(transaction=True)
def test_what_a_fence_holds_cannot_be_claimed_meanwhile(job: DatasetVersion) -> None:
    claimed = job_queue.claim_next(DatasetVersion)
    assert claimed is not None
    _orphan(job)

    def claim() -> DatasetVersion | None:
        try:
            return job_queue.claim_next(DatasetVersion)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, job_queue.fenced(claimed):
        assert pool.submit(claim).result() is None


@pytest.mark.django_db
def test_cancelling_a_queued_job_ends_it(job: DatasetVersion) -> None:
    job_queue.request_cancel(job)
    assert job.state == JobState.CANCELLED
    assert job.finished_at is not None
    assert job_queue.claim_next(DatasetVersion) is None


@pytest.mark.django_db
def test_cancelling_a_running_job_tells_it_at_its_next_heartbeat(job: DatasetVersion) -> None:
    claimed = job_queue.claim_next(DatasetVersion)
    assert claimed is not None
    job_queue.request_cancel(job)
    assert (job.state, job.cancel_requested) == (JobState.RUNNING, True)
    assert job_queue.renew_heartbeat(claimed) is True
    job_queue.finish(claimed, JobState.CANCELLED)
    job_queue.requeue(job)
    assert (job.state, job.cancel_requested, job.finished_at) == (JobState.QUEUED, False, None)
    again = job_queue.claim_next(DatasetVersion)
    assert again is not None
    assert again.attempt == 2


@pytest.mark.django_db
def test_a_cancelled_orphan_is_ended_and_the_next_one_claimed(project: Project, job: DatasetVersion) -> None:
    assert job_queue.claim_next(DatasetVersion) == job
    job_queue.request_cancel(job)
    _orphan(job)
    following = DatasetVersion.objects.create(project=project, name="second", version=1)
    assert job_queue.claim_next(DatasetVersion) == following
    job.refresh_from_db()
    assert (job.state, job.attempt) == (JobState.CANCELLED, 1)


@pytest.mark.django_db
def test_a_job_that_loses_every_worker_is_given_up_and_can_be_started_anew(job: DatasetVersion) -> None:
    for attempt in range(1, job_queue.MOST_LOST + 1):
        claimed = job_queue.claim_next(DatasetVersion)
        assert claimed is not None
        assert (claimed.attempt, claimed.lost) == (attempt, attempt - 1)
        _orphan(job)
    assert job_queue.claim_next(DatasetVersion) is None
    job.refresh_from_db()
    assert (job.state, job.is_finished) == (JobState.FAILED, True)
    assert "lost 5 times in a row" in job.error
    job_queue.requeue(job)
    again = job_queue.claim_next(DatasetVersion)
    assert again is not None
    assert (again.attempt, again.lost, again.error) == (job_queue.MOST_LOST + 1, 0, "")


@pytest.mark.django_db(transaction=True)
def test_a_heart_beats_and_hears_of_the_cancel(job: DatasetVersion, quick_hearts: None) -> None:
    claimed = job_queue.claim_next(DatasetVersion)
    assert claimed is not None
    _orphan(job)
    with job_queue.keep_heartbeat(claimed) as heartbeat:
        heartbeat.check()
        heartbeat.progress = {"done": 3}
        job_queue.request_cancel(job)
        assert heartbeat.cancelled.wait(10)
        with pytest.raises(job_queue.Cancelled):
            heartbeat.check()
    job.refresh_from_db()
    assert job.progress == {"done": 3}
    assert job_queue.claim_next(DatasetVersion) is None


@pytest.mark.django_db(transaction=True)
def test_a_heart_hears_that_the_claim_is_lost(job: DatasetVersion, quick_hearts: None) -> None:
    claimed = job_queue.claim_next(DatasetVersion)
    assert claimed is not None
    with job_queue.keep_heartbeat(claimed) as heartbeat:
        DatasetVersion.objects.filter(pk=job.pk).update(attempt=2)
        assert heartbeat.lost.wait(10)
        with pytest.raises(job_queue.ClaimLost):
            heartbeat.check()


@pytest.mark.django_db(transaction=True)
class TestWorkingOff:
    """What a worker does when nudged."""

    @pytest.fixture
    def stopping(self, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
        asked = threading.Event()
        monkeypatch.setattr("apps.core.jobs.shutdown.is_asked", asked.is_set)
        return asked

    def test_every_waiting_row_is_executed(self, project: Project, job: DatasetVersion) -> None:
        DatasetVersion.objects.create(project=project, name="second", version=1)
        done: list[str] = []

        def execute(job: DatasetVersion) -> None:
            done.append(f"{job.name} {current('job')}")
            job_queue.finish(job, JobState.SUCCEEDED)

        job_queue.drain_queue(DatasetVersion, execute)
        rows = DatasetVersion.objects.order_by("pk")
        assert done == [f"{row.name} datasetversion-{row.pk}.1" for row in rows]
        assert current("job") == ""

    def test_a_worker_that_stops_gives_its_job_back_at_once(
        self, job: DatasetVersion, stopping: threading.Event
    ) -> None:
        def execute(job: DatasetVersion) -> None:
            with job_queue.keep_heartbeat(job) as heartbeat:
                heartbeat.check()
                stopping.set()
                heartbeat.check()

        job_queue.drain_queue(DatasetVersion, execute)
        job.refresh_from_db()
        assert (job.state, job.attempt, job.lost, job.error) == (JobState.QUEUED, 1, 0, "")
        job_queue.drain_queue(DatasetVersion, execute)  # a stopping worker claims nothing
        job.refresh_from_db()
        assert job.attempt == 1
        stopping.clear()
        again = job_queue.claim_next(DatasetVersion)
        assert again is not None and again.attempt == 2

    def test_a_job_that_lost_its_claim_is_left_to_its_new_holder(self, job: DatasetVersion) -> None:
        def execute(claimed: DatasetVersion) -> None:
            DatasetVersion.objects.filter(pk=job.pk).update(attempt=2)
            job_queue.finish(claimed, JobState.SUCCEEDED)

        job_queue.drain_queue(DatasetVersion, execute)
        job.refresh_from_db()
        assert (job.state, job.attempt) == (JobState.RUNNING, 2)

    def test_a_lost_database_leaves_the_claim_to_grow_stale(self, job: DatasetVersion, caplog: Any) -> None:
        def execute(job: DatasetVersion) -> None:
            raise OperationalError("gone")

        job_queue.drain_queue(DatasetVersion, execute)  # the worker goes on: beat nudges again
        assert "jobs wait: gone" in caplog.text
        job.refresh_from_db()
        assert (job.state, job.error) == (JobState.RUNNING, "")
