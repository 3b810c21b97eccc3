"""Archives of a project over the JSON API: started, followed and downloaded, as on the page Project data."""

from datetime import datetime
from typing import Any

from django.http import FileResponse
from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyAuth, KeyRequest
from apps.accounts.models import ApiKey, Scope
from apps.core.errors import NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, JobStateName, Limit
from apps.core.http.api_scopes import needs
from apps.core.http.media_types import binary_file
from apps.core.jobs.job_queue import JobState
from apps.core.storage.artifacts import open_file
from apps.lifecycle import archive_jobs
from apps.lifecycle.models import ProjectExport

router = Router()
ZIP = "application/zip"
_ADMIN = needs(Scope.ADMIN)


class ProjectExportOut(Schema):
    """size: of the file in bytes, 0 until it is there."""

    id: int
    state: JobStateName
    available: bool = Field(
        description="whether the file can be downloaded; it is removed some days after it is written"
    )
    error: str
    size: int
    contents: dict[str, int] = Field(description="rows in the archive, by kind")
    created: datetime
    finished: datetime | None


class ProjectExportPage(Schema):
    items: list[ProjectExportOut]
    next: str | None


@router.get(
    "/projects/{slug}/exports",
    response=ProjectExportPage,
    summary="List archives of a project",
    openapi_extra=_ADMIN,
)
def list_project_exports(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    rows = ProjectExport.objects.filter(project=project_of_key(request.auth, slug, Scope.ADMIN))
    page, following = paginate(rows, cursor=cursor, limit=limit)
    return {"items": [_export_out(row) for row in page], "next": following}


@router.post(
    "/projects/{slug}/exports",
    response={202: ProjectExportOut},
    auth=KeyAuth(in_archive=True),
    summary="Export a project as an archive",
    openapi_extra=_ADMIN,
)
def start_project_export(request: KeyRequest, slug: str) -> Status[ProjectExportOut]:
    """Have a worker write it. While one is being written, that one is returned."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    return Status(202, _export_out(archive_jobs.start_project_export(project=project, by=request.auth)))


@router.get(
    "/projects/{slug}/exports/{int:pk}",
    response=ProjectExportOut,
    summary="An archive of a project",
    openapi_extra=_ADMIN,
)
def get_project_export(request: KeyRequest, slug: str, pk: int) -> ProjectExportOut:
    """How far it is, and what is in it."""
    return _export_out(_export_of_key(request.auth, slug, pk))


@router.get(
    "/projects/{slug}/exports/{int:pk}/file",
    summary="The file of an archive of a project",
    openapi_extra=_ADMIN
    | binary_file(ZIP, "A zip file, which `import_project` and the page for new projects read"),
)
def download_project_export(request: KeyRequest, slug: str, pk: int) -> FileResponse:
    """It is removed some days after it was written, and when data of the project is deleted."""
    return project_export_response(_export_of_key(request.auth, slug, pk))


def project_export_response(export: ProjectExport) -> FileResponse:
    """The file as a download. Raises NotFound where there is none (any more)."""
    if not export.is_there:
        raise NotFound("This archive was removed or is not ready. Export the project again.")
    name = f"{export.project.slug}-{export.pk}.zip"
    return FileResponse(open_file(export.artifact), as_attachment=True, filename=name, content_type=ZIP)


def _export_of_key(key: ApiKey, slug: str, pk: int) -> ProjectExport:
    project = project_of_key(key, slug, Scope.ADMIN)
    export = ProjectExport.objects.select_related("project").filter(project=project, pk=pk).first()
    if export is None:
        raise NotFound(f"There is no archive {pk} of this project.")
    return export


def _export_out(export: ProjectExport) -> ProjectExportOut:
    return ProjectExportOut(
        id=export.pk,
        state=JobState(export.state),
        available=export.is_there,
        error=export.error,
        size=export.size,
        contents=export.contents,
        created=export.created_at,
        finished=export.finished_at,
    )
