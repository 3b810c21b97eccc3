"""Tasks in the order to run them, over the JSON API."""

from typing import Annotated, Literal

from django.http import StreamingHttpResponse
from ninja import Field, Query, Router

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.accounts.services import record_audit
from apps.core.http.api_scopes import needs
from apps.core.http.media_types import json_lines
from apps.core.http.streaming import StreamedLines
from apps.task_difficulty.exports import task_lines
from apps.task_difficulty.selectors import MOST_TASKS
from apps.trajectories.filters import parse_filter

router = Router()
TaskOrderName = Literal["difficulty", "learnability", "uncertainty"]
TaskChoiceName = Literal["all", "failures", "untried"]


@router.get(
    "/projects/{slug}/tasks/export",
    summary="Export tasks in the order to run them",
    openapi_extra=needs(Scope.INGEST)
    | json_lines(
        {
            "type": "object",
            "description": "a task with its difficulty, learnability, expected success, outcomes, and the keys of "
            "failed trajectories to replay",
        },
        "A document of each task",
    ),
)
def export_tasks(
    request: KeyRequest,
    slug: str,
    order: TaskOrderName = "learnability",
    only: TaskChoiceName = "all",
    filter: str = Query("", description="of the trajectories whose outcomes count, as their list has it"),
    most: Annotated[int, Field(ge=1, le=MOST_TASKS, description="tasks")] = MOST_TASKS,
) -> StreamingHttpResponse:
    """JSON lines. difficulty: easiest first. learnability: where an agent succeeds about half of the time first.
    uncertainty: least known first. Nothing where no outcome is known."""
    project = project_of_key(request.auth, slug, Scope.INGEST)
    source = parse_filter(filter).query
    lines = task_lines(project, source=source, order=order, choice=only, most=most)
    data = {"order": order, "only": only, "filter": source}
    record_audit(project=project, actor=request.auth, verb="tasks.exported", target=order, data=data)
    return StreamedLines(lines, content_type="application/x-ndjson; charset=utf-8")
