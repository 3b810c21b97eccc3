"""Who is told what: signed, once committed, at least once, and never an address within."""

import html
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from apps.accounts.models import AuditEvent, Project, Scope
from apps.accounts.services import create_api_key
from apps.annotation.models import Annotator, Assignment, Campaign, Item
from apps.annotation.services import announce_completed_campaigns
from apps.core.errors import Conflict, DomainError
from apps.core.http import outgoing
from apps.core.jobs.job_queue import JobState, claim_next, finish, renew_heartbeat, request_cancel
from apps.datasets.models import DatasetVersion
from apps.training.models import RewardModel, TrainingRun
from apps.training.services import register_model
from apps.trajectories.models import Task
from apps.webhooks import services
from apps.webhooks.models import Delivery, Webhook, WebhookEvent
from tests.core import hostile_server
from tests.core.hostile_server import ANSWERS
from tests.core.servers import Handler, serving
from tests.factories import make_member


@dataclass
class Receiver:
    """Someone else's machine. status: what it answers."""

    url: str = ""
    status: int = 200
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    result = Receiver()

    class Hearing(Handler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            result.heard.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(result.status)
            if result.status == 302:
                self.send_header("Location", "http://169.254.169.254/")
            self.end_headers()

    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    with serving(Hearing) as url:
        result.url = f"{url}/hook"
        yield result


@pytest.fixture
def hook(project: Project, receiver: Receiver) -> tuple[Webhook, str]:
    return services.add_webhook(project=project, url=receiver.url, events=WebhookEvent.values, by=None)


def tell(project: Project, **said: Any) -> None:
    services.alert(project, name="test.raised", detail="Look.", path=f"/p/{project.slug}/", **said)


def later(minutes: float) -> None:
    """Everything that waits is due `minutes` sooner."""
    for each in Delivery.objects.exclude(next_at=None):
        each.next_at -= timedelta(minutes=minutes)
        each.save()


def test_a_receiver_with_the_standard_library_can_check_what_it_hears(project, receiver, hook) -> None:
    webhook, secret = hook
    tell(project, words="ü")
    assert services.deliver_due() == 1
    ((headers, body),) = receiver.heard
    document = Verifier(secret).verify(body, headers)
    assert document["type"] == "alert.raised"
    assert document["data"] == {
        "project": project.slug,
        "alert": "test.raised",
        "detail": "Look.",
        "words": "ü",
        "url": f"http://127.0.0.1:8000/p/{project.slug}/",
    }
    with pytest.raises(WebhookVerificationError):
        Verifier(secret).verify(body.replace(b"Look", b"Sook"), headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(services.new_secret(webhook=webhook, by=None)).verify(body, headers)
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.answer, delivery.next_at) == ("succeeded", "200 OK", None)
    assert services.deliver_due() == 0


def test_what_is_rolled_back_is_told_to_nobody(project, receiver, hook) -> None:
    class Undone(Exception):
        pass

    with pytest.raises(Undone), transaction.atomic():
        tell(project)
        raise Undone
    assert services.deliver_due() == 0
    assert receiver.heard == []


def test_only_those_who_asked_are_told(project, receiver) -> None:
    for number, events in enumerate(
        ([WebhookEvent.RUN_FINISHED], [WebhookEvent.ALERT_RAISED], WebhookEvent.values)
    ):
        services.add_webhook(project=project, url=f"{receiver.url}/{number}", events=events, by=None)
    elsewhere = Project.objects.create(slug="elsewhere")
    services.add_webhook(project=elsewhere, url=receiver.url, events=WebhookEvent.values, by=None)
    tell(project)
    assert services.deliver_due() == 2
    ids = {headers["webhook-id"] for headers, _ in receiver.heard}
    assert len(ids) == 1  # one event


def test_it_is_tried_again_for_a_day_and_a_half_and_then_given_up(project, receiver, hook) -> None:
    tell(project)
    receiver.status = 500
    waited = 0.0
    for attempt, wait in enumerate([*services.WAITS, None], start=1):
        assert services.deliver_due() == 0
        delivery = Delivery.objects.get()
        assert (delivery.attempts, delivery.answer) == (attempt, "500 Internal Server Error")
        assert services.deliver_due() == 0  # not before its time
        if wait is not None:
            assert delivery.state == "queued"
            later(wait + 0.01)
            waited += wait
    assert 24 <= waited / 60 <= 48
    assert len(receiver.heard) == len(services.WAITS) + 1
    assert len({headers["webhook-id"] for headers, _ in receiver.heard}) == 1
    assert Delivery.objects.get().state == "failed"
    receiver.status = 204
    services.send_again(delivery=Delivery.objects.get())
    assert services.deliver_due() == 1


def test_an_attempt_whose_worker_died_is_followed_by_another(project, receiver, hook, monkeypatch) -> None:
    class Killed(BaseException):
        pass

    def killed(delivery: Delivery) -> int:
        raise Killed

    tell(project)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(services, "_post", killed)
        services.deliver_due()
    assert services.deliver_due() == 0  # someone may still be at it
    later(5)
    assert services.deliver_due() == 1


def test_one_that_ends_its_worker_every_time_is_given_up(project, receiver, hook, monkeypatch) -> None:
    class Killed(BaseException):
        pass

    def killed(delivery: Delivery) -> int:
        raise Killed

    tell(project)
    monkeypatch.setattr(services, "_post", killed)
    for _ in range(len(services.WAITS) + 1):
        with pytest.raises(Killed):
            services.deliver_due()
        later(max(services.WAITS))
    assert services.deliver_due() == 0
    assert Delivery.objects.get().state == "failed"


def test_an_address_that_fails_holds_nobody_else_up(project, receiver, hook) -> None:
    services.add_webhook(
        project=project, url="http://127.0.0.1:9/closed", events=WebhookEvent.values, by=None
    )
    for _ in range(3):
        tell(project)
    assert services.deliver_due() == 3
    closed = Delivery.objects.filter(webhook__url__endswith="closed")
    assert sorted(closed.values_list("attempts", flat=True)) == [0, 0, 1]
    assert closed.get(attempts=1).answer.startswith("127.0.0.1 gave no reply")


def test_addresses_that_take_long_do_not_hold_up_another_project(
    project, receiver, hook, monkeypatch
) -> None:
    """Each of the twenty that a project may have took 30 s before, and those of all others waited."""
    monkeypatch.setattr(services, "_ROUND_SECONDS", 0.3)
    monkeypatch.setattr(services, "_LIMITS", outgoing.CallLimits(seconds=0.4, body=0))
    slow = Project.objects.create(slug="slow", name="Slow")
    with hostile_server.serving(hostile_server.silent) as url:
        for number in range(5):
            services.add_webhook(project=slow, url=f"{url}/{number}", events=WebhookEvent.values, by=None)
        tell(slow)
        tell(project)
        assert services.deliver_due() == 1
    attempts = Delivery.objects.filter(webhook__project=slow).values_list("attempts", flat=True)
    assert sorted(attempts) == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("what", ANSWERS)
def test_of_a_hostile_answer_nothing_but_the_status_is_read(project, settings, what: str) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    with hostile_server.serving(ANSWERS[what]) as url:
        services.add_webhook(project=project, url=url, events=WebhookEvent.values, by=None)
        tell(project)
        services.deliver_due()
    answer = Delivery.objects.get().answer
    assert answer == "200 OK" or "reply" in answer


def test_redirects_are_not_followed_and_a_moved_name_is_not_called(project, receiver, hook, settings) -> None:
    receiver.status = 302
    tell(project)
    assert services.deliver_due() == 0
    assert Delivery.objects.get().answer == "302 Found (redirects are not followed)"
    settings.OUTGOING_ALLOW = []
    later(5)
    assert services.deliver_due() == 0
    assert "in a private network" in Delivery.objects.get().answer
    assert len(receiver.heard) == 1


def test_an_answer_byte_by_byte_is_none(project, settings, monkeypatch) -> None:
    """Each read is in time, and all of them together are not."""
    monkeypatch.setattr(services, "_LIMITS", outgoing.CallLimits(seconds=0.5, body=0))
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    stop = threading.Event()

    class Dripping(Handler):
        def do_POST(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            for number in range(1000):
                if stop.wait(0.05):
                    return
                self.wfile.write(b"X-%d: a\r\n" % number)

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                stop.set()

    with serving(Dripping) as url:
        services.add_webhook(project=project, url=url, events=WebhookEvent.values, by=None)
        tell(project)
        assert services.deliver_due() == 0
        stop.set()
    assert "it took over 0.5 s" in Delivery.objects.get().answer


@pytest.mark.parametrize(
    ("url", "events", "says"),
    [
        ("http://127.0.0.1/", ["alert.raised"], "in a private network"),
        ("ftp://example.org/", ["alert.raised"], "begins with https://"),
        ("http://10.0.0.1/", ["alert.raised"], "in a private network"),
        ("http://93.184.215.14/" + "x" * 2000, ["alert.raised"], "at most 2000 characters"),
        ("http://93.184.215.14:99999/", ["alert.raised"], "There is no port 99999"),
        ("http://93.184.215.14:0/", ["alert.raised"], "There is no port 0"),
        ("http://example.org/\0", ["alert.raised"], "no URL"),
        ("http://[::1", ["alert.raised"], "no URL"),
        ("", ["alert.raised"], "begins with https://"),
    ],
)
def test_an_address_within_is_refused_when_it_is_given(project, url, events, says) -> None:
    with pytest.raises(DomainError, match=says):
        services.add_webhook(project=project, url=url, events=events, by=None)
    assert not Webhook.objects.exists()


def test_what_is_wrong_with_a_webhook_is_said(project, receiver, hook) -> None:
    with pytest.raises(DomainError, match="Name the events"):
        services.add_webhook(project=project, url=receiver.url + "/2", events=[], by=None)
    with pytest.raises(DomainError, match=r"no event 'runs'; there are run\.finished"):
        services.add_webhook(project=project, url=receiver.url + "/2", events=["runs"], by=None)
    with pytest.raises(Conflict, match="already receives events"):
        services.add_webhook(project=project, url=receiver.url, events=WebhookEvent.values, by=None)


def test_the_secret_is_kept_nowhere(project, hook) -> None:
    webhook, secret = hook
    row = json.dumps(Webhook.objects.values().get(), default=str)
    assert secret not in row
    assert secret.removeprefix("whsec_") not in row
    trail = json.dumps(list(AuditEvent.objects.values()), default=str)
    assert secret not in trail
    assert services.secret_of(Webhook.objects.get()) == secret
    assert {event.verb for event in AuditEvent.objects.filter(target=webhook.host)} == {"webhook.added"}


# What is told


def a_run(project: Project) -> TrainingRun:
    dataset_version = DatasetVersion.objects.create(
        project=project, name=f"s{DatasetVersion.objects.count()}", version=1, state=JobState.SUCCEEDED
    )
    return TrainingRun.objects.create(
        project=project,
        dataset_version=dataset_version,
        recipe_name="bradley-terry",
        recipe={},
        model_name="m",
    )


def told(kind: str) -> list[dict[str, Any]]:
    return list(Delivery.objects.filter(type=kind).order_by("pk").values_list("data", flat=True))


def test_a_run_that_ends_is_told_once_with_its_model(project, hook) -> None:
    run = a_run(project)
    claimed = claim_next(TrainingRun)
    renew_heartbeat(claimed)
    assert told("run.finished") == []
    register_model(run=claimed, artifact="models/x", manifest={}, report={})
    (said,) = told("run.finished")
    assert said["model"] == str(RewardModel.objects.get()) == f"{project.slug}/m@1"
    assert (said["run"], said["state"], said["error"]) == (run.pk, "succeeded", None)
    assert said["url"].endswith(f"/p/{project.slug}/training/runs/{run.pk}/")


def test_a_run_that_fails_or_is_cancelled_is_told_too(project, hook) -> None:
    a_run(project)
    finish(claim_next(TrainingRun), JobState.FAILED, error="No room left.")
    waiting = a_run(project)
    request_cancel(waiting)
    request_cancel(waiting)
    said = [(each["state"], each["model"], each["error"]) for each in told("run.finished")]
    assert said == [("failed", None, "No room left."), ("cancelled", None, None)]


def make_item(campaign: Campaign, key: str, **more: Any) -> Item:
    task, _ = Task.objects.get_or_create(project=campaign.project, external_id="t")
    return Item.objects.create(campaign=campaign, task=task, key=key, overlap=1, **more)


def test_a_campaign_is_done_when_nothing_is_wanted_and_nothing_is_held(project, hook) -> None:
    campaign = Campaign.objects.create(project=project, name="All", feedback_types=["pairwise"])
    empty = Campaign.objects.create(project=project, name="Empty", feedback_types=["pairwise"])
    assert announce_completed_campaigns() == 0
    make_item(campaign, "done", claimed_count=1, completed_count=1)
    last = make_item(campaign, "last")
    assert announce_completed_campaigns() == 0
    annotator = Annotator.objects.create(project=project, name="ann")
    held = Assignment.objects.create(item=last, annotator=annotator, lock_expires_at=timezone.now())
    Item.objects.filter(pk=last.pk).update(claimed_count=1)
    assert announce_completed_campaigns() == 0
    Assignment.objects.filter(pk=held.pk).update(state="submitted")
    Item.objects.filter(pk=last.pk).update(completed_count=1)
    assert announce_completed_campaigns() == 1
    assert announce_completed_campaigns() == 0
    (said,) = told("campaign.done")
    assert (said["name"], said["items"], said["judgements"]) == ("All", 2, 2)
    assert said["url"].endswith(f"/p/{project.slug}/campaigns/{campaign.pk}/")
    more = make_item(campaign, "more")
    assert announce_completed_campaigns() == 0
    campaign.refresh_from_db()
    assert campaign.completed_at is None
    Item.objects.filter(pk=more.pk).update(claimed_count=1, completed_count=1)
    assert announce_completed_campaigns() == 1
    empty.refresh_from_db()
    assert empty.completed_at is None


# The API and the page


def test_over_the_api(project, receiver, client: Client) -> None:
    key = create_api_key(project=project, scopes=[Scope.ADMIN])[1]
    headers = {"Authorization": f"Bearer {key}"}
    base = f"/api/v1/projects/{project.slug}/webhooks"

    def post(**body: Any) -> Any:
        return client.post(base, body, content_type="application/json", headers=headers)

    made = post(url=receiver.url, events=["run.finished"])
    assert made.status_code == 201
    assert made.json()["secret"].startswith("whsec_")
    (listed,) = client.get(base, headers=headers).json()["items"]
    assert (listed["url"], listed["events"]) == (receiver.url, ["run.finished"])
    assert "secret" not in listed
    refused = post(url="http://169.254.169.254/latest", events=["run.finished"])
    assert (refused.status_code, refused.json()["pointer"]) == (400, "/url")
    assert "in a private network" in refused.json()["detail"]
    assert post(url=receiver.url + "/2", events=["runs"]).json()["pointer"] == "/events"
    gone = client.delete(f"{base}/{made.json()['id']}", headers=headers)
    assert (gone.status_code, Webhook.objects.count()) == (204, 0)
    assert client.delete(f"{base}/{made.json()['id']}", headers=headers).status_code == 404


def test_on_the_page(project, receiver, client: Client) -> None:
    client.force_login(make_member(project, "olga@example.org", "owner"))
    base = f"/p/{project.slug}/webhooks/"
    assert "No webhooks yet" in client.get(base).content.decode()
    refused = client.post(base + "add", {"url": "http://10.0.0.1/", "events": ["run.finished"]})
    assert (refused.status_code, "in a private network" in refused.content.decode()) == (422, True)
    page = client.post(base + "add", {"url": receiver.url, "events": ["run.finished", "alert.raised"]})
    webhook = Webhook.objects.get()
    assert services.secret_of(webhook) in html.unescape(page.content.decode())
    assert "whsec_" not in client.get(base).content.decode()
    client.post(f"{base}{webhook.pk}/test")
    receiver.status = 410
    services.deliver_due()
    assert "410 Gone" in client.get(base).content.decode()
    receiver.status = 200
    client.post(f"{base}deliveries/{Delivery.objects.get().pk}/again")
    services.deliver_due()
    assert "delivered" in client.get(base).content.decode()
    changed = client.post(f"{base}{webhook.pk}/secret").content.decode()
    assert "whsec_" in changed
    client.post(f"{base}{webhook.pk}/remove")
    assert not Webhook.objects.exists()
    assert not Delivery.objects.exists()
