"""Exports as jobs: written by a worker, whole, told of, and gone when their time or their reason is."""

import csv
import gzip
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from apps.accounts.models import AuditEvent, Project, User
from apps.accounts.pseudonyms import person_pseudonym
from apps.annotation.feedback.exports import export_jsonl
from apps.annotation.models import Annotation, Annotator
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.datasets import export_jobs
from apps.datasets.erasure import erase_judgements
from apps.datasets.exports import EXPORTS
from apps.datasets.models import Export
from apps.datasets.tasks import advance_exports
from tests.datasets.feedback import freeze, import_pairs, pair

pytestmark = pytest.mark.usefixtures("own_home")


def export(project: Project, by: User, format: str = "jsonl", **filters: Any) -> Export:
    return export_jobs.export_feedback(project=project, format=format, filters=filters, by=by)


def body(response: Any) -> bytes:
    return b"".join(response.streaming_content)  # which closes it too


def stored(export: Export) -> bytes:
    with storages["artifacts"].open(export.artifact) as file:
        return bytes(file.read())


def test_the_file_is_what_the_stream_would_be(
    judged: Project, researcher: User, researcher_client: Client
) -> None:
    made = export(judged, researcher)
    page = researcher_client.get("/p/desk/datasets/exports/").content.decode()
    assert "Next in the queue" in page
    assert 'hx-trigger="every 2s"' in page
    advance_exports()
    made.refresh_from_db()
    assert (made.state, made.lines) == (JobState.SUCCEEDED, 12)
    page = researcher_client.get("/p/desk/datasets/exports/").content.decode()
    assert 'hx-trigger="every 2s"' not in page
    answer = researcher_client.get(f"/p/desk/datasets/exports/{made.pk}/file/")
    assert f"desk-feedback-jsonl-{made.pk}.jsonl.gz" in answer["Content-Disposition"]
    data = body(answer)
    assert hashlib.sha256(data).hexdigest() == made.sha256
    assert len(data) == made.size
    assert gzip.decompress(data).decode() == "".join(export_jsonl(project=judged, filters={}))
    told = AuditEvent.objects.get(verb="feedback.exported")
    assert (told.actor, told.data) == (person_pseudonym(researcher.email), {"format": "jsonl"})


def test_the_file_can_be_imported_as_it_is(judged: Project, researcher: User, tmp_path: Path) -> None:
    made = export(judged, researcher)
    advance_exports()
    made.refresh_from_db()
    path = tmp_path / "feedback.jsonl.gz"
    path.write_bytes(stored(made))
    other = Project.objects.create(slug="other")
    call_command("import_feedback", "other", str(path), "--format", "pairs", stdout=StringIO())
    assert Annotation.objects.filter(assignment__item__campaign__project=other).count() == 12


@pytest.mark.parametrize("damage", ["cut", "flipped", "plain"])
def test_a_file_that_is_not_whole_imports_nothing(judged: Project, tmp_path: Path, damage: str) -> None:
    whole = bytearray(gzip.compress("".join(export_jsonl(project=judged, filters={})).encode()))
    if damage == "cut":
        whole = whole[: len(whole) // 2]
    elif damage == "flipped":
        whole[len(whole) // 2] ^= 0xFF
    else:
        whole = bytearray(gzip.decompress(whole))
    path = tmp_path / "feedback.jsonl.gz"
    path.write_bytes(whole)
    other = Project.objects.create(slug="other")
    with pytest.raises(CommandError, match="is not a complete gzip file"):
        call_command("import_feedback", "other", str(path), "--format", "pairs", stdout=StringIO())
    assert not Annotation.objects.filter(assignment__item__campaign__project=other).exists()
    assert not other.trajectories.exists()


def test_a_table_for_a_spreadsheet(project: Project, researcher: User) -> None:
    import_pairs(
        project, [pair("x", annotator="ann"), pair("x", annotator="ben"), pair("y", annotator="ann")]
    )
    made = export(project, researcher, "csv", annotators=["ann"])
    advance_exports()
    made.refresh_from_db()
    rows = list(csv.DictReader(io.StringIO(stored(made).decode())))
    assert made.lines == len(rows) == 2
    assert {row["annotator"] for row in rows} == {"ann"}
    assert "ann" not in json.dumps(AuditEvent.objects.get(verb="feedback.exported").data)


@pytest.mark.parametrize("split", ["", "train"])
def test_a_dataset_version_that_is_large_is_written_first(
    judged: Project, researcher: User, researcher_client: Client, monkeypatch: pytest.MonkeyPatch, split: str
) -> None:
    dataset_version = freeze(judged)
    page = f"/p/desk/datasets/{dataset_version.pk}/"
    assert f'{page}export/trl/"' in researcher_client.get(page).content.decode()
    monkeypatch.setattr(export_jobs, "BACKGROUND_EXPORT_RECORDS", 5)
    assert f'value="trl/{split}"' in researcher_client.get(page).content.decode()
    assert researcher_client.post(f"{page}export/", {"what": f"trl/{split}"}).status_code == 302
    advance_exports()
    made = Export.objects.get()
    data = gzip.decompress(stored(made)).decode()
    assert data == "".join(EXPORTS["trl"](dataset_version, split or None, Counter()))
    assert made.lines == data.count("\n") > 0
    assert AuditEvent.objects.get(verb="dataset.exported").target == "desk/first@1"


def test_the_form_chooses(judged: Project, researcher_client: Client) -> None:
    url = "/p/desk/datasets/exports/"
    refused = researcher_client.post(url, {"format": "xlsx"})
    assert (refused.status_code, Export.objects.count()) == (422, 0)
    said = {"format": "csv", "kinds": ["rubric"], "adjudication": "not", "since": "2026-01-31"}
    assert researcher_client.post(url, said).status_code == 302
    wanted = {"kinds": ["rubric"], "adjudication": "not", "since": "2026-01-31T00:00:00Z"}
    assert Export.objects.get().filters == wanted
    again = researcher_client.post(url, said)
    assert (again.status_code, "already running" in again.content.decode()) == (422, True)
    advance_exports()
    assert Export.objects.get().lines == 0


def test_what_there_is_not(judged: Project, researcher: User) -> None:
    with pytest.raises(DomainError, match="Unknown format 'xml'"):
        export(judged, researcher, "xml")
    with pytest.raises(DomainError, match="Unknown kind 'x'"):
        export(judged, researcher, kinds=["x"])
    with pytest.raises(DomainError, match="Unknown split 'x'"):
        export_jobs.export_dataset_version(
            dataset_version=freeze(judged), format="trl", split="x", by=researcher
        )
    assert not Export.objects.exists()


def test_a_cancelled_one_leaves_nothing(
    judged: Project, researcher: User, researcher_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = export(judged, researcher)
    researcher_client.post(f"/p/desk/datasets/exports/{waiting.pk}/cancel/")
    advance_exports()
    waiting.refresh_from_db()
    assert (waiting.state, waiting.artifact) == (JobState.CANCELLED, "")
    running = export(judged, researcher)

    def cancelled_meanwhile(**more: Any) -> Iterator[str]:
        job_queue.request_cancel(Export.objects.get(pk=running.pk))
        while not job_queue.renew_heartbeat(Export.objects.get(pk=running.pk)):
            pass
        raise job_queue.Cancelled
        yield ""

    monkeypatch.setitem(export_jobs.OF_FEEDBACK, "jsonl", cancelled_meanwhile)
    advance_exports()
    running.refresh_from_db()
    assert (running.state, running.artifact) == (JobState.CANCELLED, "")
    with pytest.raises(Conflict):
        export_jobs.cancel_export(export=running)


def test_an_attempt_that_lost_its_claim_leaves_nothing(
    judged: Project, researcher: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone else has taken it up while the file was being stored."""
    made = export(judged, researcher)
    store = export_jobs.store_file

    def slow(path: Path, name: str) -> str:
        Export.objects.filter(pk=made.pk).update(attempt=7)
        return store(path, name)

    monkeypatch.setattr(export_jobs, "store_file", slow)
    advance_exports()
    made.refresh_from_db()
    assert (made.state, made.artifact) == (JobState.RUNNING, "")
    assert not storages["artifacts"].exists(f"exports/{judged.pk}/{made.pk}-1/{export_jobs.file_name(made)}")


def test_files_go_when_their_time_has_come(
    judged: Project, researcher: User, researcher_client: Client, settings: Any
) -> None:
    old, new = export(judged, researcher), export(judged, researcher, "csv")
    advance_exports()
    Export.objects.filter(pk=old.pk).update(
        finished_at=timezone.now() - timedelta(days=settings.EXPORT_DAYS, hours=1)
    )
    assert (export_jobs.remove_old_exports(), export_jobs.remove_old_exports()) == (1, 0)
    old.refresh_from_db()
    new.refresh_from_db()
    assert (storages["artifacts"].exists(old.artifact), storages["artifacts"].exists(new.artifact)) == (
        False,
        True,
    )
    assert researcher_client.get(f"/p/desk/datasets/exports/{old.pk}/file/").status_code == 404
    assert body(researcher_client.get(f"/p/desk/datasets/exports/{new.pk}/file/"))


def test_deleting_somebodys_judgements_takes_the_files_along(judged: Project, researcher: User) -> None:
    done = export(judged, researcher, annotators=["ann"])
    advance_exports()
    done.refresh_from_db()
    waiting = export(judged, researcher)
    erase_judgements(annotator=Annotator.objects.get(name="ann"), by=researcher)
    assert not storages["artifacts"].exists(done.artifact)
    advance_exports()
    done.refresh_from_db()
    waiting.refresh_from_db()
    assert (done.is_there, done.filters) == (False, {})
    assert waiting.state == JobState.CANCELLED


def test_a_file_stored_while_somebody_is_deleted_goes_too(
    judged: Project, researcher: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = export(judged, researcher)
    store = export_jobs.store_file
    names = []

    def slow(path: Path, name: str) -> str:
        erase_judgements(annotator=Annotator.objects.get(name="ann"), by=researcher)
        names.append(name)
        return store(path, name)

    monkeypatch.setattr(export_jobs, "store_file", slow)
    advance_exports()
    made.refresh_from_db()
    assert not made.is_there
    assert names and not storages["artifacts"].exists(names[0])
