"""Parts of the schemas of several apps' calls."""

from typing import Annotated, Any

from annotated_types import MaxLen, MinLen
from ninja import Field, Query, Schema
from pydantic import ConfigDict

from apps.core.http.api import MAX_LIMIT
from apps.core.http.document_types import choices
from apps.core.jobs.job_queue import JobState

JsonObject = dict[str, Any]  # of a document whose keys are not ours
JobStateName = Annotated[JobState, choices(JobState)]
Name = Annotated[str, MinLen(1), MaxLen(200)]
Cursor = Annotated[str | None, Query(description="`next` of the page before; left out for the first page")]
Limit = Annotated[int, Query(description=f"entries of a page, from 1 to {MAX_LIMIT}")]


class StrictBody(Schema):
    """A body whose unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


def left_out(**constraints: Any) -> Any:
    """A field of a change that may be left out, and then changes nothing."""
    return Field(default=None, json_schema_extra=_without_default, **constraints)


def _without_default(schema: JsonObject) -> None:
    schema.pop("default", None)


class JobProgress(Schema):
    """note: what it is doing."""

    done: float | None = None
    total: float | None = None
    note: str | None = None


class RejectedRecord(Schema):
    line: int
    pointer: str | None
    message: str


class FieldCount(Schema):
    path: str = Field(description="JSON pointer of the field; `*` is any index")
    reason: str
    count: int
