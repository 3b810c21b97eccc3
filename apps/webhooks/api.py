"""Webhooks over the JSON API."""

from typing import Any

from ninja import Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.errors import NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.webhooks import services
from apps.webhooks.models import Webhook, WebhookEvent

router = Router()


class WebhookIn(Schema):
    url: str
    events: list[str] = list(WebhookEvent.values)


@router.post("/projects/{slug}/webhooks", response={201: dict[str, Any]}, summary="Create a webhook")
def add_webhook(request: KeyRequest, slug: str, body: WebhookIn) -> Status:
    """`{"url", "events"}` -> the same with `id` and `secret`, which signs every message and is not shown again.

    Messages are those of Standard Webhooks: `{"type", "timestamp", "data"}`, with the headers `webhook-id`,
    `webhook-timestamp` and `webhook-signature`. Whatever does not answer 2xx is tried again for a day and a half.
    """
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    webhook, secret = services.add_webhook(project=project, url=body.url, events=body.events, by=request.auth)
    return Status(201, _out(webhook) | {"secret": secret})


@router.get("/projects/{slug}/webhooks", summary="List webhooks")
def list_webhooks(
    request: KeyRequest, slug: str, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> dict[str, Any]:
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    page, following = paginate(Webhook.objects.filter(project=project), cursor=cursor, limit=limit)
    return {"items": [_out(webhook) for webhook in page], "next": following}


@router.delete("/projects/{slug}/webhooks/{int:pk}", response={204: None}, summary="Delete a webhook")
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
        "url": webhook.url,
        "events": webhook.events,
        "created": webhook.created_at,
    }
