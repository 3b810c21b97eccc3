"""Parts of the JSON API that proposals of every kind have."""

from datetime import datetime
from typing import Any, Literal

from ninja import Field, Schema

from apps.core.http.api_schemas import JobProgress, JobStateName, JsonObject
from apps.proposals.models import ProposalJob

ProposedStateName = Literal["proposed", "accepted", "rejected"]


class ProposalJobOut(Schema):
    """A kind adds how many rows it is about, by the name of the field with their keys."""

    id: int
    number: int = Field(description="within the project")
    options: JsonObject
    state: JobStateName
    progress: JobProgress
    error: str
    result: JsonObject
    created: datetime
    finished: datetime | None


def proposal_job_out(proposal: ProposalJob) -> dict[str, Any]:
    """As ProposalJobOut has it, and the number of rows."""
    return {
        "id": proposal.pk,
        "number": proposal.number,
        "options": proposal.options,
        proposal.keys_field: len(proposal.keys),
        "state": proposal.state,
        "progress": proposal.progress,
        "error": proposal.error,
        "result": proposal.result,
        "created": proposal.created_at,
        "finished": proposal.finished_at,
    }
