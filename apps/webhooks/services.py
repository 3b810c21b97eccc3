"""Webhooks and their deliveries: at least once, signed, in the background, with growing waits.

Messages and signatures are those of Standard Webhooks 1.0: the headers `webhook-id`, `webhook-timestamp` and
`webhook-signature: v1,` with the base64 of HMAC-SHA256(secret, "id.timestamp.body").
"""

import base64
import hashlib
import hmac
import json
import logging
import secrets
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import ApiKey, Project, Role, User
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.core.http import outgoing
from apps.core.jobs import job_queue, shutdown
from apps.core.storage.encryption import decrypted, encrypted, is_readable
from apps.inbox.job_notices import EndedJob
from apps.inbox.models import NotificationEvent
from apps.inbox.services import notify_role
from apps.webhooks.chat_messages import slack_message
from apps.webhooks.models import (
    LONGEST_URL,
    TEST,
    Delivery,
    MessageFormat,
    Webhook,
    WebhookEvent,
    marked_host,
)

log = logging.getLogger(__name__)

DELIVER = "apps.webhooks.tasks.deliver"
By = User | ApiKey | None
MOST_WEBHOOKS = 20  # of a project
# Minutes before the second attempt, the third, ...; the last comes after about a day and a half.
WAITS = (1, 5, 30, 120, 360, 720, 1080)
KEPT = timedelta(days=30)
_LIMITS = outgoing.CallLimits(seconds=15.0, body=0)  # of an answer only its status is read
_ROUND_SECONDS = 20.0  # that the addresses of one project may take of a round before others' are told first
# Longer than an attempt takes; a worker that dies in one is followed by another try.
_CLAIM = timedelta(minutes=2)


@transaction.atomic
def add_webhook(
    *,
    project: Project,
    url: str,
    events: Iterable[str],
    by: By,
    message_format: str = MessageFormat.STANDARD,
) -> tuple[Webhook, str]:
    """The webhook and its secret, which is empty for a chat tool. Raises DomainError for an address that may not be
    called."""
    if len(url) > LONGEST_URL:
        raise DomainError(f"An address has at most {LONGEST_URL} characters.", pointer="/url")
    try:
        outgoing.check_url(url)
    except DomainError as error:
        raise DomainError(error.message, pointer="/url") from error
    if message_format not in MessageFormat.values:
        raise DomainError(
            f"There is no format {message_format!r}; there are {', '.join(MessageFormat.values)}.",
            pointer="/format",
        )
    chosen = sorted(set(events))
    if not chosen:
        raise DomainError(f"Name the events: {', '.join(WebhookEvent.values)}.", pointer="/events")
    unknown = [each for each in chosen if each not in WebhookEvent.values]
    if unknown:
        raise DomainError(
            f"There is no event {unknown[0]!r}; there are {', '.join(WebhookEvent.values)}.",
            pointer="/events",
        )
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    is_chat = message_format == MessageFormat.SLACK
    # An address that was given in the other format is found as well.
    if Webhook.objects.filter(project=project, url__in=[url, marked_host(url)]).exists():
        raise Conflict(
            "This URL already receives events; remove it first to choose other events.", pointer="/url"
        )
    if Webhook.objects.filter(project=project).count() >= MOST_WEBHOOKS:
        raise Conflict(f"A project has up to {MOST_WEBHOOKS} webhooks; remove one first.")
    webhook = Webhook.objects.create(
        project=project,
        url=marked_host(url) if is_chat else url,
        address=encrypted(url) if is_chat else "",
        events=chosen,
        format=message_format,
        secret="" if is_chat else encrypted(_fresh_secret()),
        created_by=by if isinstance(by, User) else None,
    )
    record_audit(
        project=project, actor=by, verb="webhook.added", target=webhook.host, data={"events": chosen}
    )
    return webhook, "" if is_chat else secret_of(webhook)


@transaction.atomic
def remove_webhook(*, webhook: Webhook, by: By) -> None:
    """Nothing is sent to it any more, what waits included."""
    record_audit(project=webhook.project, actor=by, verb="webhook.removed", target=webhook.host)
    webhook.delete()


@transaction.atomic
def new_secret(*, webhook: Webhook, by: By) -> str:
    """Another secret from the next message on; the one before signs nothing more. Raises Conflict for a chat tool."""
    if webhook.format == MessageFormat.SLACK:
        raise Conflict(
            "Chat messages are not signed; to replace the URL, remove the webhook and add the new one."
        )
    webhook.secret = encrypted(_fresh_secret())
    webhook.save(update_fields=["secret"])
    record_audit(project=webhook.project, actor=by, verb="webhook.secret_changed", target=webhook.host)
    return secret_of(webhook)


def secret_of(webhook: Webhook) -> str:
    """`whsec_` and base64, as Standard Webhooks writes it. Raises DomainError where it cannot be read any more."""
    if not is_readable(webhook.secret):
        raise DomainError(
            "The signing secret was not part of the backup, or was encrypted under another key, so nothing is sent. "
            "Create a new secret on the page Webhooks and give it to the receiver."
        )
    return decrypted(webhook.secret)


def address_of(webhook: Webhook) -> str:
    """Where its messages go. Raises DomainError where it cannot be read any more."""
    if not webhook.address:
        return webhook.url
    if not is_readable(webhook.address):
        raise DomainError(
            "The URL was not part of the backup, or was encrypted under another key, so nothing is sent. Remove the "
            "webhook on the page Webhooks and add it again."
        )
    return decrypted(webhook.address)


def _fresh_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


@transaction.atomic
def announce(project: Project, event: WebhookEvent, data: dict[str, Any], *, path: str) -> None:
    """Tell every address of the project that asked for `event`, once the transaction is committed.

    path: the page that shows it.
    """
    event_id = uuid.uuid4()
    said = {"project": project.slug, **data, "url": settings.PUBLIC_URL + path}
    told = Webhook.objects.filter(project=project, events__contains=[event.value])
    rows = [Delivery(webhook=each, event_id=event_id, type=event.value, data=said) for each in told]
    if rows:
        Delivery.objects.bulk_create(rows)
        job_queue.nudge_on_commit(DELIVER)


def alert(project: Project, *, name: str, detail: str, path: str, **more: Any) -> None:
    """Something needs a person. name: `noun.verb`. detail: a sentence. path: the page that shows it."""
    announce(project, WebhookEvent.ALERT_RAISED, {"alert": name, "detail": detail, **more}, path=path)
    notify_role(
        project=project,
        least_role=Role.RESEARCHER,
        event=NotificationEvent.ALERT_RAISED,
        key=f"alert:{uuid.uuid4()}",
        title=detail,
        path=path,
    )


def announce_job(ended: EndedJob) -> None:
    """A job that ended, within the transaction that ends it. Training runs have an event of their own."""
    if ended.key.startswith("training.trainingrun:"):
        return
    state = "succeeded" if ended.succeeded else "failed"
    data = {"job": ended.notice.name, "state": state, "error": ended.error or None}
    announce(ended.notice.project, WebhookEvent.JOB_FINISHED, data, path=ended.notice.path)


@transaction.atomic
def send_test(*, webhook: Webhook) -> Delivery:
    said = {"project": webhook.project.slug, "detail": "Sent by hand, to see whether it arrives."}
    delivery = Delivery.objects.create(webhook=webhook, type=TEST, data=said)
    job_queue.nudge_on_commit(DELIVER)
    return delivery


@transaction.atomic
def send_again(*, delivery: Delivery) -> None:
    """Once more from the start, under the id it had: a receiver that took it can tell."""
    Delivery.objects.filter(pk=delivery.pk).update(
        attempts=0, next_at=timezone.now(), delivered_at=None, answer=""
    )
    job_queue.nudge_on_commit(DELIVER)


def deliver_due() -> int:
    """Send what is due; how many were taken. For the rest of the round an address that fails is left alone, and a
    project whose addresses are slow: those of another one do not wait for them."""
    taken, failing, slow = 0, set[int](), set[int]()
    seconds: dict[int, float] = defaultdict(float)
    while not shutdown.is_asked() and (delivery := _claim(failing, slow)) is not None:
        began, project = time.monotonic(), delivery.webhook.project_id
        if _attempt(delivery):
            taken += 1
        else:
            failing.add(delivery.webhook_id)
        seconds[project] += time.monotonic() - began
        if seconds[project] > _ROUND_SECONDS:
            slow.add(project)
    return taken


def nudge_due() -> None:
    """For beat: have a worker send what is due."""
    if Delivery.objects.filter(next_at__lte=timezone.now()).exists():
        job_queue.nudge(DELIVER)


def forget_old() -> None:
    """For beat: what was said long ago."""
    Delivery.objects.filter(next_at=None, created_at__lt=timezone.now() - KEPT).delete()


@transaction.atomic
def _claim(failing: set[int], slow: set[int]) -> Delivery | None:
    rows = Delivery.objects.select_for_update(skip_locked=True, of=("self",)).select_related("webhook")
    due = rows.filter(next_at__lte=timezone.now()).exclude(webhook__in=failing)
    due = due.exclude(webhook__project__in=slow)
    delivery = due.order_by("next_at", "pk").first()
    if delivery is not None:
        delivery.attempts += 1
        # If this attempt ends its worker there is another one, and an end to them, as after any that failed.
        wait = _wait_after(delivery.attempts)
        delivery.next_at = None if wait is None else timezone.now() + max(wait, _CLAIM)
        delivery.save(update_fields=["attempts", "next_at"])
    return delivery


def _attempt(delivery: Delivery) -> bool:
    """Send one, and write down how it went. Returns whether it was taken."""
    try:
        status = _post(delivery)
        ok, answer = 200 <= status < 300, _in_words(status)
    except DomainError as error:
        ok, answer = False, error.message
    now, wait = timezone.now(), _wait_after(delivery.attempts)
    rows = Delivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts)
    rows.update(
        answer=answer[:300],
        delivered_at=now if ok else None,
        next_at=None if ok or wait is None else now + wait,
    )
    log.info("webhook %d, %s, attempt %d: %s", delivery.webhook_id, delivery, delivery.attempts, answer)
    return ok


def _wait_after(attempts: int) -> timedelta | None:
    """None: that was the last one."""
    return timedelta(minutes=WAITS[attempts - 1]) if attempts <= len(WAITS) else None


def _post(delivery: Delivery) -> int:
    headers = {"Content-Type": "application/json", "User-Agent": "touchstone"}
    if delivery.webhook.format == MessageFormat.SLACK:
        body = json.dumps(slack_message(delivery.type, delivery.data))
    else:
        body = json.dumps(
            {"type": delivery.type, "timestamp": delivery.created_at.isoformat(), "data": delivery.data}
        )
        headers |= _signing_headers(delivery, body)
    reply = outgoing.request(
        "POST", address_of(delivery.webhook), body=body.encode(), headers=headers, limits=_LIMITS
    )
    return reply.status


def _signing_headers(delivery: Delivery, body: str) -> dict[str, str]:
    at = str(int(time.time()))
    return {
        "webhook-id": f"evt_{delivery.event_id.hex}",
        "webhook-timestamp": at,
        "webhook-signature": signature(secret_of(delivery.webhook), f"evt_{delivery.event_id.hex}", at, body),
    }


def signature(secret: str, message_id: str, timestamp: str, body: str) -> str:
    """`v1,` and base64 of HMAC-SHA256, as Standard Webhooks 1.0 has it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{message_id}.{timestamp}.{body}".encode(), hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def _in_words(status: int) -> str:
    try:
        words = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        words = str(status)
    return f"{words} (redirects are not followed)" if 300 <= status < 400 else words
