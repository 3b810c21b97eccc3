"""Webhooks over the JSON API."""

from datetime import datetime
from typing import Any, Literal

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.idempotency import mark_secret_answer
from apps.accounts.models import Scope
from apps.core.errors import NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit
from apps.core.http.api_scopes import needs
from apps.webhooks import services
from apps.webhooks.models import Webhook, WebhookEvent

router = Router()


class WebhookIn(Schema):
    url: str
    events: list[str] = Field(list(WebhookEvent.values), description=f"of {', '.join(WebhookEvent.values)}")

    format: Literal["standard", "slack"] = Field(
        "standard", description="signed JSON, or messages of Slack's incoming webhooks"
    )


class WebhookOut(Schema):
    id: int
    url: str = Field(description="of format `slack` only the host: the rest is a secret")
    format: str
    events: list[str]
    created: datetime


class WebhookPage(Schema):
    items: list[WebhookOut]
    next: str | None


class NewWebhookOut(WebhookOut):
    secret: str = Field(description="signs every message; shown once; empty for format `slack`")


@router.post(
    "/projects/{slug}/webhooks",
    response={201: NewWebhookOut},
    operation_id="create_webhook",
    summary="Create a webhook",
    openapi_extra=needs(Scope.ADMIN),
)
def add_webhook(request: KeyRequest, slug: str, body: WebhookIn) -> Status:
    """`{"url", "events"}` -> the same with `id` and `secret`, which signs every message and is not shown again.

    Messages are those of Standard Webhooks: `{"type", "timestamp", "data"}`, with the headers `webhook-id`,
    `webhook-timestamp` and `webhook-signature`. Whatever does not answer 2xx is tried again for a day and a half.
    """
    mark_secret_answer(request)
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    webhook, secret = services.add_webhook(
        project=project, url=body.url, events=body.events, by=request.auth, message_format=body.format
    )
    return Status(201, _out(webhook) | {"secret": secret})


@router.get(
    "/projects/{slug}/webhooks",
    response=WebhookPage,
    summary="List webhooks",
    openapi_extra=needs(Scope.ADMIN),
)
def list_webhooks(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    page, following = paginate(Webhook.objects.filter(project=project), cursor=cursor, limit=limit)
    return {"items": [_out(webhook) for webhook in page], "next": following}


@router.delete(
    "/projects/{slug}/webhooks/{int:pk}",
    response={204: None},
    operation_id="delete_webhook",
    summary="Delete a webhook",
    openapi_extra=needs(Scope.ADMIN),
)
def remove_webhook(request: KeyRequest, slug: str, pk: int) -> Status:
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    webhook = Webhook.objects.select_related("project").filter(project=project, pk=pk).first()
    if webhook is None:
        raise NotFound(f"There is no webhook {pk} in this project.")
    services.remove_webhook(webhook=webhook, by=request.auth)
    return Status(204, None)


def _out(webhook: Webhook) -> dict[str, Any]:
    return {
        "id": webhook.pk,
        "url": webhook.shown_url,
        "format": webhook.format,
        "events": webhook.events,
        "created": webhook.created_at,
    }
