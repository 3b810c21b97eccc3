"""All deliveries of a project's webhooks, as a table."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Project, Role
from apps.webhooks.models import Delivery, Webhook
from apps.webhooks.services import add_webhook
from tests.factories import make_member, signed_in


@pytest.fixture(autouse=True)
def local_addresses(settings: Any) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]


@pytest.fixture
def owner_client(project: Project) -> Client:
    return signed_in(make_member(project, "owner@example.org", Role.OWNER))


def add_deliveries(project: Project, count: int) -> Webhook:
    """Of every three, one is delivered, one has failed and one waits."""
    webhook, _ = add_webhook(project=project, url="http://127.0.0.1:9/hook", events=["run.finished"], by=None)
    now = timezone.now()
    for number in range(count):
        Delivery.objects.create(
            webhook=webhook,
            type="run.finished" if number % 2 else "alert.raised",
            data={},
            attempts=number,
            created_at=now - timedelta(minutes=number),
            delivered_at=now if number % 3 == 0 else None,
            next_at=now if number % 3 == 2 else None,
            answer="<b>500</b>" if number % 3 == 1 else "",
        )
    return webhook


def test_deliveries_are_paged_filtered_and_sorted(project: Project, owner_client: Client) -> None:
    add_deliveries(project, 60)
    address = f"/p/{project.slug}/webhooks/deliveries/"
    table = owner_client.get(address).context["table"]
    assert (len(table.body), table.count) == (50, 60)
    for state, label in (("delivered", "succeeded"), ("failed", "failed"), ("waiting", "queued")):
        rows = owner_client.get(address, {"state": state}).context["table"].body
        assert len(rows) == 20 and {row.row.state for row in rows} == {label}
    found = owner_client.get(address, {"event": "alert.raised", "sort": "-attempts"}).context["table"].body
    assert [row.row.attempts for row in found[:3]] == [58, 56, 54]
    page = owner_client.get(address, {"state": "failed"}).content
    assert b"&lt;b&gt;500&lt;/b&gt;" in page and b"<b>500</b>" not in page
    short = owner_client.get(f"/p/{project.slug}/webhooks/")
    assert len(short.context["deliveries"]) == 10 and address.encode() in short.content


def test_one_is_sent_again_from_there(project: Project, owner_client: Client) -> None:
    add_deliveries(project, 2)
    failed = Delivery.objects.get(next_at=None, delivered_at=None)
    address = f"/p/{project.slug}/webhooks/deliveries/"
    answer = owner_client.post(f"{address}{failed.pk}/again", {"back": "deliveries"})
    assert answer["Location"] == address
    failed.refresh_from_db()
    assert failed.state == "queued"


def test_only_the_projects_own_and_only_for_owners(project: Project, owner_client: Client) -> None:
    other = Project.objects.create(slug="other", name="Other")
    add_deliveries(other, 3)
    assert b"No deliveries yet" in owner_client.get(f"/p/{project.slug}/webhooks/deliveries/").content
    assert owner_client.get("/p/other/webhooks/deliveries/").status_code == 404
    researcher = signed_in(make_member(project, "rose@example.org", Role.RESEARCHER))
    assert researcher.get(f"/p/{project.slug}/webhooks/deliveries/").status_code == 403
