"""Sampled requests over the JSON API: what an endpoint that keeps samples scored."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema
from pydantic import AwareDatetime

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.errors import NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit
from apps.core.http.api_scopes import needs
from apps.rewards.item_schemas import ScoreResultDocument
from apps.rewards.models import ScoreSample
from apps.rewards.selectors import endpoint_of
from apps.trajectories.document_schemas import ItemDocument

router = Router()
READ = (Scope.REWARD, Scope.ADMIN)


class SampleOut(Schema):
    """caller: prefix of the key. tokens, steps: of the item; steps are the agent's."""

    id: int
    version: int
    caller: str
    run: str
    policy_version: str
    reward: float
    flags: list[str]
    tokens: int
    steps: int
    at: datetime


class SamplePage(Schema):
    items: list[SampleOut]
    next: str | None


class SampleReport(SampleOut):
    item: ItemDocument = Field(description="what was sent, redacted as the endpoint's settings say")
    result: ScoreResultDocument


@router.get(
    "/projects/{slug}/endpoints/{name}/samples",
    response=SamplePage,
    summary="List the sampled requests of an endpoint",
    openapi_extra=needs(*READ),
)
def list_samples(
    request: KeyRequest,
    slug: str,
    name: str,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
    since: AwareDatetime | None = None,
    flag: str | None = None,
    version: int | None = None,
    run: str | None = None,
) -> SamplePage:
    """Newest first, without what was sent. since: scored at this time or later. flag: only those with this flag."""
    rows = endpoint_of(project_of_key(request.auth, slug, *READ), name).samples.all()
    filters: dict[str, Any] = {"at__gte": since, "version": version, "run": run}
    filters["result__flags__contains"] = None if flag is None else [flag]
    rows = rows.filter(**{field: value for field, value in filters.items() if value is not None})
    page, following = paginate(rows, cursor=cursor, limit=limit, field="at")
    return SamplePage(items=[SampleOut(**_fields(sample)) for sample in page], next=following)


@router.get(
    "/projects/{slug}/endpoints/{name}/samples/{int:pk}",
    response=SampleReport,
    summary="A sampled request with what was sent",
    openapi_extra=needs(Scope.ADMIN),
)
def get_sample(request: KeyRequest, slug: str, name: str, pk: int) -> SampleReport:
    endpoint = endpoint_of(project_of_key(request.auth, slug, Scope.ADMIN), name)
    sample = endpoint.samples.filter(pk=pk).first()
    if sample is None:
        raise NotFound(f"There is no sample {pk} of the endpoint {name}.")
    return SampleReport(**_fields(sample), item=sample.item, result=sample.result)


def _fields(sample: ScoreSample) -> dict[str, Any]:
    same = ("version", "caller", "run", "policy_version", "reward", "tokens", "steps", "at")
    fields = {name: getattr(sample, name) for name in same}
    return fields | {"id": sample.pk, "flags": list(sample.result.get("flags") or ())}
