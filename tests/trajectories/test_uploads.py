import io
import threading
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import connection

from apps.accounts.models import Project
from apps.core.jobs import job_queue
from apps.trajectories import tasks, uploads
from apps.trajectories.models import Import, Trajectory
from tests.trajectories.conftest import lines, record

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def job() -> Import:
    project = Project.objects.create(slug="desk", name="Desk")
    file = uploads.keep_upload(project=project, file=ContentFile(lines(*(record(n) for n in range(5)))))
    return Import.objects.create(project=project, filename="runs.jsonl", file=file, format="openai")


def test_a_waiting_import_is_run_to_its_end(job: Import) -> None:
    tasks.advance_imports()
    job.refresh_from_db()
    assert (job.state, job.created, job.attempt) == ("succeeded", 5, 1)
    assert not storages["artifacts"].exists(job.file)


def test_bad_records_fail_it_with_their_lines(job: Import) -> None:
    with storages["artifacts"].open(job.file, "ab") as file:
        file.write(b"nonsense\n")
    tasks.advance_imports()
    job.refresh_from_db()
    assert (job.state, job.created, job.rejected[0]["line"]) == ("failed", 0, 6)
    assert not Trajectory.objects.exists()


def test_a_lost_file_fails_it_in_words(job: Import) -> None:
    storages["artifacts"].delete(job.file)
    tasks.advance_imports()
    job.refresh_from_db()
    assert job.state == "failed" and "Upload it again" in job.error


def test_a_cancelled_import_leaves_nothing(job: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_queue, "heartbeat_seconds", lambda: 0.001)
    check = job_queue.JobHeartbeat.check

    def ask() -> None:
        job_queue.request_cancel(job)
        connection.close()

    def told(heartbeat: job_queue.JobHeartbeat) -> None:
        """The cancel comes while the chunk is written; the next heartbeat tells the import."""
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        assert heartbeat.cancelled.wait(10)
        check(heartbeat)

    monkeypatch.setattr(job_queue.JobHeartbeat, "check", told)
    tasks.advance_imports()
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert not Trajectory.objects.exists()


def test_an_attempt_that_lost_its_claim_writes_nothing(job: Import) -> None:
    claimed = job_queue.claim_next(Import)
    assert claimed is not None
    Import.objects.filter(pk=job.pk).update(attempt=2)
    with pytest.raises(job_queue.ClaimLost):
        uploads.run_import(claimed)
    assert not Trajectory.objects.exists()


def test_a_bigger_upload_waits_for_a_worker(
    job: Import, monkeypatch: pytest.MonkeyPatch, researcher: Any = None
) -> None:
    monkeypatch.setattr(uploads, "PREVIEWED_RECORDS", 3)
    sent: list[str] = []
    monkeypatch.setattr(job_queue, "nudge", sent.append)
    found = uploads.preview_upload(
        io.BytesIO(lines(*(record(n) for n in range(5)))), format=None, project=job.project
    )
    assert (found.count, found.is_all) == (3, False)
    name = uploads.keep_upload(project=job.project, file=ContentFile(b"x"))
    upload = uploads.SignedUpload(file=name, filename="f", format="openai", is_all=found.is_all)
    token = uploads.sign_upload(job.project, upload)
    started = uploads.start_import(project=job.project, token=token, keep_good=False, by=None)  # type: ignore[arg-type]
    assert (started.state, sent) == ("queued", [uploads.ADVANCE_IMPORTS])
