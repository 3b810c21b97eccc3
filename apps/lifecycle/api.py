"""Retention rules, archiving and deletion of a project over the JSON API: what the page Project data does."""

from datetime import datetime

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.api import ProjectOut, project_out
from apps.accounts.auth import KeyAuth, KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api_schemas import JobStateName, StrictBody
from apps.core.http.api_scopes import needs
from apps.core.jobs.job_queue import JobState
from apps.lifecycle import retention, services
from apps.lifecycle.models import RetentionRule

router = Router()
_ADMIN = needs(Scope.ADMIN)
_DAYS = Field(None, ge=1, le=retention.MOST_DAYS, description="null: never")


class RetentionCounts(Schema):
    """What the rules would delete now, and old trajectories that they keep because datasets or campaigns have them."""

    trajectories: int
    in_datasets: int | None = Field(
        description="null: not counted, the dataset versions are too large; then at most `trajectories` are deleted"
    )
    in_campaigns: int
    samples: int
    exports: int


class RetentionOut(Schema):
    trajectory_days: int | None
    sample_days: int | None
    export_days: int | None
    applied: datetime | None
    would_delete: RetentionCounts


class RetentionIn(StrictBody):
    trajectory_days: int | None = _DAYS
    sample_days: int | None = _DAYS
    export_days: int | None = _DAYS
    preview: bool = Field(False, description="true: count what the rules would delete, and save nothing")


class ProjectDeletionIn(StrictBody):
    name: str = Field(
        max_length=60, description="of the project, as in its address: what is to be deleted, once more"
    )


class ProjectDeletionOut(Schema):
    project: str
    state: JobStateName


@router.get(
    "/projects/{slug}/retention", response=RetentionOut, summary="Retention rules", openapi_extra=_ADMIN
)
def get_retention(request: KeyRequest, slug: str) -> RetentionOut:
    """With what they would delete if they were applied now."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    rule = RetentionRule.objects.select_related("project").filter(project=project).first()
    return _retention_out(rule or RetentionRule(project=project))


@router.put(
    "/projects/{slug}/retention",
    response=RetentionOut,
    summary="Set the retention rules, or preview them",
    openapi_extra=_ADMIN,
)
def set_retention(request: KeyRequest, slug: str, body: RetentionIn) -> RetentionOut:
    """They are applied at once, and then once a day. Days that are left out are never."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    days = body.dict(exclude={"preview"})
    if body.preview:
        return _retention_out(RetentionRule(project=project, **days))
    answer = _retention_out(retention.set_retention(project=project, by=request.auth, **days))
    retention.start_retention(project)
    return answer


@router.post(
    "/projects/{slug}/archive",
    response=ProjectOut,
    auth=KeyAuth(in_archive=True),
    summary="Archive a project",
    openapi_extra=_ADMIN,
)
def archive_project(request: KeyRequest, slug: str) -> ProjectOut:
    """It becomes read only: endpoints answer 503, campaigns and connectors are paused, jobs are cancelled."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    return project_out(services.archive_project(project=project, by=request.auth))


@router.post(
    "/projects/{slug}/restore",
    response=ProjectOut,
    auth=KeyAuth(in_archive=True),
    summary="Open an archived project again",
    openapi_extra=_ADMIN,
)
def restore_project(request: KeyRequest, slug: str) -> ProjectOut:
    """Endpoints, campaigns and connectors stay off until they are started."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    return project_out(services.restore_project(project=project, by=request.auth))


@router.post(
    "/projects/{slug}/deletion",
    response={202: ProjectDeletionOut},
    auth=KeyAuth(in_archive=True),
    summary="Delete a project with everything in it",
    openapi_extra=_ADMIN,
)
def delete_project(request: KeyRequest, slug: str, body: ProjectDeletionIn) -> Status[ProjectDeletionOut]:
    """Its keys are revoked at once, the one that asks too; a worker deletes the rest. It cannot be undone."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    deletion = services.request_deletion(project=project, typed_name=body.name, by=request.auth)
    return Status(202, ProjectDeletionOut(project=deletion.slug, state=JobState(deletion.state)))


def _retention_out(rule: RetentionRule) -> RetentionOut:
    preview = retention.preview_retention(rule)
    return RetentionOut(
        **{name: getattr(rule, name) for name in retention.DAYS},
        applied=rule.applied_at,
        would_delete=RetentionCounts(
            **{name: getattr(preview, name) for name in RetentionCounts.model_fields}
        ),
    )
