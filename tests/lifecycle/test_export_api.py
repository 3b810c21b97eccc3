"""Archives of a project over the JSON API: started, followed, downloaded, and of one project only."""

import io
import zipfile
from datetime import timedelta

from django.utils import timezone

from apps.accounts.models import AuditEvent, Project, Scope
from apps.accounts.services import create_api_key
from apps.core.jobs.job_queue import claim_next
from apps.lifecycle.archive_jobs import build_project_export, remove_old_project_exports
from apps.lifecycle.models import ProjectExport
from tests.lifecycle.test_api import Api, api, bring

__all__ = ["api"]


def build() -> None:
    export = claim_next(ProjectExport)
    assert export is not None
    build_project_export(export)


def test_a_key_starts_follows_and_downloads_an_archive(project: Project, api: Api) -> None:
    bring(project, 2, days_old=0)
    started = api("POST", "/exports")
    assert started.status_code == 202
    export = started.json()
    assert (export["state"], export["available"], export["size"]) == ("queued", False, 0)
    assert api("POST", "/exports").json()["id"] == export["id"]  # the unfinished one
    where = f"/exports/{export['id']}"
    missing = api("GET", f"{where}/file")
    assert missing.status_code == 404 and "not ready" in missing.json()["detail"]
    build()
    done = api("GET", where).json()
    assert (done["state"], done["available"], done["contents"]["trajectories"]) == ("succeeded", True, 2)
    answer = api("GET", f"{where}/file")
    content = b"".join(answer.streaming_content)
    assert answer["Content-Type"] == "application/zip" and len(content) == done["size"]
    assert {"manifest.json", "trajectories.jsonl"} <= set(zipfile.ZipFile(io.BytesIO(content)).namelist())
    assert [row["id"] for row in api("GET", "/exports").json()["items"]] == [export["id"]]
    event = AuditEvent.objects.get(verb="project.exported")
    assert event.project == project
    ProjectExport.objects.update(finished_at=timezone.now() - timedelta(days=400))
    remove_old_project_exports()
    assert api("GET", where).json()["available"] is False
    assert api("GET", f"{where}/file").status_code == 404


def test_a_service_account_exports_an_archived_project(project: Project) -> None:
    key = Api(create_api_key(project=project, scopes=[Scope.ADMIN], name="backup", by=None)[1])
    assert key("POST", "/archive").status_code == 200
    assert key("POST", "/exports").status_code == 202
    build()
    export = ProjectExport.objects.get()
    assert export.created_by is None and export.is_there


def test_another_project_has_no_part_in_it(project: Project, api: Api) -> None:
    other = Project.objects.create(slug="other", name="Other")
    theirs = ProjectExport.objects.create(project=other)
    assert api("GET", "/exports").json()["items"] == []
    assert api("GET", f"/exports/{theirs.pk}").status_code == 404
    assert api("GET", f"/exports/{theirs.pk}/file").status_code == 404
    reader = Api(create_api_key(project=project, scopes=[Scope.INGEST], name="r", by=None)[1])
    assert reader("POST", "/exports").status_code == 403
    assert ProjectExport.objects.filter(project=project).count() == 0
