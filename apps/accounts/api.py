"""Projects, their API keys and their audit trail over the JSON API."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Router, Schema, Status

from apps.accounts import audit_export, services
from apps.accounts.access import project_of_key
from apps.accounts.audit_hash import FIELDS
from apps.accounts.auth import KeyAuth, KeyRequest
from apps.accounts.models import ApiKey, Project, Scope
from apps.accounts.selectors import live_keys
from apps.core.errors import NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, JsonObject, Limit, StrictBody, left_out
from apps.core.http.api_scopes import needs
from apps.core.http.document_types import described, reference_to
from apps.core.http.media_types import json_lines
from apps.core.http.streaming import StreamedLines

router = Router()
AuditLineDocument = Annotated[
    JsonObject,
    described(
        "AuditLine",
        {
            "description": "First what it is, then an event a line, last the head of the chain; with `names`, whom "
            "pseudonyms mean in between.",
            "type": "object",
            "properties": {name: {"type": ["string", "integer", "object", "null"]} for name in FIELDS},
            "anyOf": [
                {"title": "first line", "required": ["touchstone_audit", "project", "exported_at"]},
                {"title": "event", "required": [*FIELDS, "hash"]},
                {"title": "names", "required": ["names"]},
                {"title": "last line", "required": ["end"]},
            ],
        },
    ),
]


class ProjectOut(Schema):
    slug: str
    name: str
    annotators_see_models: bool = Field(description="whether annotators and reviewers see figures of models")
    require_two_factor: bool
    require_single_sign_on: bool
    created: datetime
    archived: datetime | None = Field(description="since when it is read only")


class ProjectPage(Schema):
    items: list[ProjectOut]
    next: str | None


class ProjectChange(StrictBody):
    """The rules of signing in are changed on the page People, which checks that you meet them yourself."""

    name: str = left_out(max_length=200)
    annotators_see_models: bool = left_out()


class KeyOut(Schema):
    """Keys are created on the page API keys and by `create_api_key`, which show the secret once."""

    prefix: str
    name: str
    scopes: list[str]
    owner: str = Field(description="e-mail address of the member, or name of the service account")
    owner_kind: Literal["member", "service account"]
    live: bool = Field(
        description="whether it opens anything: not revoked, not expired, its owner still there"
    )
    created: datetime
    expires: datetime | None
    revoked: datetime | None


class KeyPage(Schema):
    items: list[KeyOut]
    next: str | None


@router.get("/projects", response=ProjectPage, summary="List projects", openapi_extra=needs())
def list_projects(request: KeyRequest, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT) -> ProjectPage:
    """Those that the key may see: a key belongs to one project."""
    page, following = paginate(Project.objects.filter(pk=request.auth.project_id), cursor=cursor, limit=limit)
    return ProjectPage(items=[project_out(project) for project in page], next=following)


@router.get("/projects/{slug}", response=ProjectOut, summary="A project", openapi_extra=needs())
def get_project(request: KeyRequest, slug: str) -> ProjectOut:
    return project_out(project_of_key(request.auth, slug))


@router.patch(
    "/projects/{slug}", response=ProjectOut, summary="Change a project", openapi_extra=needs(Scope.ADMIN)
)
def change_project(request: KeyRequest, slug: str, body: ProjectChange) -> ProjectOut:
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    changes = body.dict(exclude_unset=True)
    if "name" in changes:
        project = services.rename_project(project=project, name=body.name, by=request.auth)
    if "annotators_see_models" in changes:
        services.show_models_to_annotators(project=project, shown=body.annotators_see_models, by=request.auth)
    return project_out(project)


@router.get(
    "/projects/{slug}/keys", response=KeyPage, summary="List API keys", openapi_extra=needs(Scope.ADMIN)
)
def list_keys(request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT) -> KeyPage:
    """Newest first, revoked ones too."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    rows = ApiKey.objects.filter(project=project).select_related("owner_user", "owner_service_account")
    page, following = paginate(rows, cursor=cursor, limit=limit)
    live = {key.pk for key in live_keys().filter(pk__in=[key.pk for key in page]) if key.is_live}
    return KeyPage(items=[_key_out(key, key.pk in live) for key in page], next=following)


@router.get("/key", response=KeyOut, summary="The key that asks", openapi_extra=needs())
def get_own_key(request: KeyRequest) -> KeyOut:
    """What the key of this request is called, and its scopes. `GET /projects` names its project."""
    return _key_out(request.auth, is_live=True)


@router.delete(
    "/projects/{slug}/keys/{prefix}",
    response={204: None},
    auth=KeyAuth(in_archive=True),
    summary="Revoke an API key",
    openapi_extra=needs(Scope.ADMIN),
)
def revoke_key(request: KeyRequest, slug: str, prefix: str) -> Status[None]:
    """The key opens nothing from now on. It stays in the list."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    key = ApiKey.objects.select_related("project").filter(project=project, prefix=prefix).first()
    if key is None:
        raise NotFound(f"There is no API key {prefix!r} in this project.")
    services.revoke_api_key(key=key, by=request.auth)
    return Status(204, None)


@router.get(
    "/projects/{slug}/audit",
    summary="Export the audit trail",
    openapi_extra=needs(Scope.ADMIN) | json_lines(reference_to(AuditLineDocument), "The trail"),
)
def export_audit(request: KeyRequest, slug: str, names: bool = False) -> StreamedLines:
    """JSON lines: what `manage.py export_audit` writes and `verify_audit --from-file` verifies.

    `names=true` adds whom the pseudonyms mean. The export is itself an event of the trail.
    """
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    lines = audit_export.export_lines(project=project, by=request.auth, names=names)
    return StreamedLines(lines)


def project_out(project: Project) -> ProjectOut:
    return ProjectOut(
        slug=project.slug,
        name=project.name,
        annotators_see_models=project.annotators_see_models,
        require_two_factor=project.require_two_factor,
        require_single_sign_on=project.require_single_sign_on,
        created=project.created_at,
        archived=project.archived_at,
    )


def _key_out(key: ApiKey, is_live: bool) -> KeyOut:
    member = key.owner_user
    return KeyOut(
        prefix=key.prefix,
        name=key.name,
        scopes=key.scopes,
        owner=member.email if member else str(key.owner),
        owner_kind="member" if member else "service account",
        live=is_live,
        created=key.created_at,
        expires=key.expires_at,
        revoked=key.revoked_at,
    )
