"""Views over the JSON API: filters that a project keeps under names."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Project, Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit, StrictBody, left_out
from apps.core.http.api_scopes import needs
from apps.trajectories import saved_views
from apps.trajectories.filter_schemas import FilterDocument
from apps.trajectories.filters import parse_filter
from apps.trajectories.models import SavedView

router = Router()
_INGEST = needs(Scope.INGEST)
_ONE = "/projects/{slug}/views/{int:pk}"


class SavedViewIn(StrictBody):
    name: str
    filter: FilterDocument


class SavedViewChange(StrictBody):
    name: str = left_out()
    filter: FilterDocument = left_out()


class SavedViewOut(Schema):
    id: int
    name: str
    filter: str = Field(description="as the address of the trajectory list has it")
    conditions: dict[str, Any] = Field(description="the same as an object")
    created: datetime


class SavedViewPage(Schema):
    items: list[SavedViewOut]
    next: str | None


@router.get("/projects/{slug}/views", response=SavedViewPage, summary="List views", openapi_extra=_INGEST)
def list_views(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    rows, following = paginate(_project(request, slug).saved_views.all(), cursor=cursor, limit=limit)
    return {"items": [_view_out(view) for view in rows], "next": following}


@router.post(
    "/projects/{slug}/views", response={201: SavedViewOut}, summary="Create a view", openapi_extra=_INGEST
)
def create_view(request: KeyRequest, slug: str, body: SavedViewIn) -> Status:
    """Everyone in the project sees it above the list of trajectories."""
    view = saved_views.create_view(
        project=_project(request, slug), name=body.name, source=body.filter, by=request.auth
    )
    return Status(201, _view_out(view))


@router.get(_ONE, response=SavedViewOut, summary="A view", openapi_extra=_INGEST)
def get_view(request: KeyRequest, slug: str, pk: int) -> dict[str, Any]:
    return _view_out(saved_views.get_view(_project(request, slug), pk=pk))


@router.patch(
    _ONE, response=SavedViewOut, summary="Rename a view, or change its filter", openapi_extra=_INGEST
)
def change_view(request: KeyRequest, slug: str, pk: int, body: SavedViewChange) -> dict[str, Any]:
    """Fields that are left out stay."""
    view = saved_views.get_view(_project(request, slug), pk=pk)
    return _view_out(saved_views.change_view(view=view, name=body.name, source=body.filter, by=request.auth))


@router.delete(_ONE, response={204: None}, summary="Delete a view", openapi_extra=_INGEST)
def delete_view(request: KeyRequest, slug: str, pk: int) -> Status:
    """Trajectories, and what was made with the view, stay."""
    saved_views.delete_view(view=saved_views.get_view(_project(request, slug), pk=pk), by=request.auth)
    return Status(204, None)


def _project(request: KeyRequest, slug: str) -> Project:
    return project_of_key(request.auth, slug, Scope.INGEST)


def _view_out(view: SavedView) -> dict[str, Any]:
    return {
        "id": view.pk,
        "name": view.name,
        "filter": view.query,
        "conditions": parse_filter(view.query).to_builtins(),
        "created": view.created_at,
    }
