"""Alerts over the JSON API."""

from datetime import datetime
from typing import Literal

from ninja import Field, Router, Schema

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit, StrictBody
from apps.core.http.api_scopes import needs
from apps.monitoring.models import Alert
from apps.monitoring.selectors import alert_in, project_alerts
from apps.monitoring.services import close_alert

router = Router()
READ = (Scope.REWARD, Scope.ADMIN)


class AlertOut(Schema):
    """A broken rule of an endpoint's monitor. value: of the measure, over `count` samples, with its margin of error.

    baseline: what it is compared with. limit: of the rule. seen: when it was last broken. note: why it was closed.
    """

    id: int
    endpoint: str
    version: int
    run: str
    policy_version: str
    rule: str
    measure: str
    value: float
    baseline: float
    limit: float
    margin: float
    count: int
    detail: str
    open: bool
    note: str
    raised: datetime
    seen: datetime
    closed: datetime | None


class AlertPage(Schema):
    items: list[AlertOut]
    next: str | None


class AlertClosing(StrictBody):
    note: str = Field("", max_length=2000, description="what was found")


@router.get("/projects/{slug}/alerts", response=AlertPage, summary="List alerts", openapi_extra=needs(*READ))
def list_alerts(
    request: KeyRequest,
    slug: str,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
    state: Literal["open", "closed"] | None = None,
    endpoint: str | None = None,
) -> AlertPage:
    """Newest first. endpoint: only those of this one."""
    rows = project_alerts(project_of_key(request.auth, slug, *READ))
    if state is not None:
        rows = rows.filter(closed_at__isnull=state == "open")
    if endpoint is not None:
        rows = rows.filter(endpoint__name=endpoint)
    page, following = paginate(rows, cursor=cursor, limit=limit, field="raised_at")
    return AlertPage(items=[_alert_out(alert) for alert in page], next=following)


@router.get(
    "/projects/{slug}/alerts/{int:pk}", response=AlertOut, summary="An alert", openapi_extra=needs(*READ)
)
def get_alert(request: KeyRequest, slug: str, pk: int) -> AlertOut:
    return _alert_out(alert_in(project_of_key(request.auth, slug, *READ), pk))


@router.post(
    "/projects/{slug}/alerts/{int:pk}/close",
    response=AlertOut,
    operation_id="close_alert",
    summary="Close an alert",
    openapi_extra=needs(Scope.ADMIN),
)
def post_alert_closing(request: KeyRequest, slug: str, pk: int, body: AlertClosing | None = None) -> AlertOut:
    """It is not raised again for this revision and run."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    close_alert(alert=alert_in(project, pk), note=body.note if body else "", by=request.auth)
    return _alert_out(alert_in(project, pk))


def _alert_out(alert: Alert) -> AlertOut:
    same = AlertOut.model_fields.keys() - {"id", "endpoint", "open", "raised", "seen", "closed"}
    return AlertOut(
        **{name: getattr(alert, name) for name in same},
        id=alert.pk,
        endpoint=alert.endpoint.name,
        open=alert.is_open,
        raised=alert.raised_at,
        seen=alert.seen_at,
        closed=alert.closed_at,
    )
