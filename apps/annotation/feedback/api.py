"""`/projects/{p}/feedback`: export and import of feedback, streaming."""

import json
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from ninja import Field, Router, Schema

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.annotation.feedback.exports import export_jsonl, record_export
from apps.annotation.feedback.incoming import Found, Incoming
from apps.annotation.feedback.readers import any_record
from apps.annotation.feedback.readers.json_lines import read_json_lines
from apps.annotation.feedback.readers.record_formats import PLACE_FIELDS
from apps.annotation.feedback.records import check_filters
from apps.annotation.feedback.services import import_numbered
from apps.core.errors import DomainError
from workers.schema import BODY_LIMITS, parse_json

router = Router()


class FeedbackOut(Schema):
    created: int
    duplicates: int
    rejected: list[dict[str, Any]]
    dropped: list[dict[str, Any]] = Field(description="fields of the records that are read nowhere, and why")
    kept: list[dict[str, Any]] = Field(description="fields kept with the trajectories, which no model reads")


@router.get("/projects/{slug}/feedback", summary="Feedback as NDJSON, newest revisions only", response=None)
def feedback_list(
    request: KeyRequest,
    slug: str,
    kind: str | None = None,
    since: str | None = None,
    origin: str | None = None,
) -> HttpResponseBase:
    """`kind`: pairwise, ranking, step, rubric, comment or rating. `since`: an ISO time. `origin`: person, judge,
    simulated or imported; by default all but judge.

    Each line can be sent to `POST` again.
    """
    project = project_of_key(request.auth, slug, Scope.FEEDBACK_READ)
    named = {"kinds": kind, "origins": origin}
    filters: dict[str, Any] = {name: [value] if value else None for name, value in named.items()}
    filters["since"] = since
    filters = {name: value for name, value in filters.items() if value}
    check_filters(filters)
    record_export(project=project, format="jsonl", filters=filters, by=request.auth)
    lines: Iterator[str] = export_jsonl(project=project, filters=filters)
    return StreamingHttpResponse(lines, content_type="application/x-ndjson; charset=utf-8")


@router.post("/projects/{slug}/feedback", response=FeedbackOut, summary="Import feedback")
def feedback_create(request: KeyRequest, slug: str, keep_good: bool = False) -> FeedbackOut:
    """One `import_feedback` record of any kind, a JSON array of them, or NDJSON; origin imported."""
    project = project_of_key(request.auth, slug, Scope.FEEDBACK_WRITE)
    result = import_numbered(
        project=project,
        numbered=_read(request),
        campaign="Imported: API",
        by=request.auth,
        keep_good=keep_good,
    )
    if result.rejected and not keep_good:
        first = result.rejected[0]
        raise DomainError(
            f"Record {first['line']}: {first['message']} Nothing was imported; "
            "fix it, or send the valid records with ?keep_good=1.",
            pointer=first["pointer"],
            status=422,
        )
    return FeedbackOut(**result.as_json())


def _read(request: HttpRequest) -> Iterable[tuple[int, Found]]:
    """The records of the body with their number, from 1."""
    body = request.body
    if body.lstrip()[:1] == b"[":
        body = b"\n".join(json.dumps(record).encode() for record in parse_json(body, limits=BODY_LIMITS))
    return read_json_lines(BytesIO(body), _parse, PLACE_FIELDS)


def _parse(record: dict[str, Any]) -> Iterable[Incoming]:
    return any_record.parse({**record, "origin": "imported"})
