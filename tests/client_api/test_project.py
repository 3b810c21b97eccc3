"""People, rubrics, campaigns, items, metrics, alerts and samples: the calls of a project that are not training's."""

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from touchstone_client import Client, JobFailed, Refused

from apps.accounts.models import ApiKey, Membership, Project, Role
from apps.annotation.models import Annotator, Campaign
from apps.annotation.services.queue import assign_next_item
from apps.inbox.models import NotificationEvent
from apps.inbox.services import notify_people
from tests.annotation.rows import submit
from tests.client_api.conftest import CHATS
from tests.factories import make_member

pytestmark = pytest.mark.django_db(transaction=True)


def test_people_and_keys(client: Client, project: Project) -> None:
    make_member(project, "own@example.org", Role.OWNER)
    assert [entry.slug for entry in client.projects.list()] == ["desk"]
    assert client.projects.update(name="Help desk").name == client.projects.get().name == "Help desk"
    added = client.members.add("ann@example.org")
    assert (added.role, added.member) == ("annotator", True)
    assert added.link is None or added.link not in repr(added)
    assert client.members.change_role("ann@example.org", "reviewer").role == "reviewer"
    assert {member.email for member in client.members.list()} == {"own@example.org", "ann@example.org"}
    client.members.remove(client.members.get("ann@example.org"))
    assert Membership.objects.count() == 1
    with pytest.raises(Refused, match="409"):
        client.members.remove("own@example.org")
    made = client.invitations.create(role="annotator", most_uses=3)
    assert made.link and made.link not in repr(made)
    client.invitations.revoke(made.id)
    assert [each.live for each in client.invitations.list()] == [False]
    own = client.keys.current()
    assert own.prefix in {each.prefix for each in client.keys.list()} and "train" in own.scopes
    client.keys.revoke(own.prefix)
    with pytest.raises(Refused, match="401"):
        client.projects.get()


def test_a_campaign_is_made_annotated_and_closed(client: Client, project: Project) -> None:
    user = make_member(project, "ann@example.org", Role.ANNOTATOR)
    annotator = Annotator.objects.create(project=project, user=user, name="ann")
    client.trajectories.import_file(CHATS)
    rubric = client.rubrics.create("Care", [{"name": "polite", "scale": (1, 5)}], about="How it answers.")
    assert (str(rubric), client.rubrics.get("Care").criteria[0].name) == ("Care@1", "polite")
    campaign = client.campaigns.create("Better / which?", ["pairwise"], rubric=rubric, overlap=1)
    assert (campaign.rubric, campaign.state, client.campaigns.get(campaign).id) == (
        "Care@1",
        "open",
        campaign.id,
    )
    with pytest.raises(JobFailed, match="no items to wait for"):
        client.campaigns.wait(campaign)
    assert client.items.build(campaign, differ="any", seed=1).created == 4
    pair = [each.id for each in client.trajectories.list(task="case-0")]
    added = client.items.add(campaign, [pair])
    assert (added.created, added.duplicates, added.items) == (0, 1, ())
    items = client.items.list(campaign).to_list()
    assert client.items.get(items[0]).trajectories == items[0].trajectories
    with pytest.raises(TimeoutError, match=r"0 of \d annotations after 0 seconds"):
        client.campaigns.wait(campaign, timeout=0)
    row = Campaign.objects.get()
    assignment = assign_next_item(campaign=row, annotator=annotator)
    assert assignment is not None
    submit(assignment, user, "a")
    assert client.feedback.iter(campaign="Better / which?").to_pandas().annotator.tolist() == ["ann"]
    assert client.campaigns.agreement(campaign).kinds["pairwise"].once == 1
    changed = client.campaigns.update(campaign, state="closed", rubric=None, overlap=1)
    assert (changed.state, changed.rubric) == ("closed", None)
    assert client.campaigns.wait(campaign, timeout=0).state == "closed"
    assert [each.name for each in client.campaigns.list(state="closed")] == ["Better / which?"]


def test_lists_that_are_empty_have_their_columns(client: Client, workers: None) -> None:
    listings: list[Any] = [
        *(client.alerts.list(), client.metrics.list(), client.inductions.list(), client.judges.list()),
        *(client.judge_runs.list(), client.connectors.list(), client.webhooks.list(), client.runs.list()),
    ]
    for listing in listings:
        frame = listing.to_pandas()
        assert len(frame) == 0 and len(frame.columns) > 3


def test_webhooks_and_the_audit_trail(client: Client, settings: Any) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    made = client.webhooks.create("http://127.0.0.1/hook", events=["run.finished"])
    assert made.secret and made.secret not in repr(made) and made.secret not in made._repr_html_()
    assert [each.id for each in client.webhooks.list()] == [made.id]
    client.webhooks.delete(made.id)
    assert client.webhooks.list().to_list() == []
    assert {"webhook.added", "webhook.removed"} & {line.get("verb") for line in client.audit.iter()}


def test_connectors(client: Client, settings: Any) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    made = client.connectors.create(
        "langfuse", "Live", address="http://127.0.0.1", username="pk", secret="sk"
    )
    assert made.has_secret and client.connectors.update(made, every_minutes=30).every_minutes == 30
    assert client.connectors.update(made, every_minutes=None, state="paused").every_minutes is None
    client.connectors.delete(made)
    assert client.connectors.list().to_list() == []


def test_notifications_are_those_of_who_owns_the_key(client: Client, project: Project) -> None:
    assert client.notifications.list().to_list() == [] and client.notifications.mark_read() == 0
    owner = make_member(project, "own@example.org", Role.OWNER)
    for key in ("a", "b"):
        notify_people(
            project=project,
            users=[owner],
            event=NotificationEvent.JOB_FAILED,
            key=key,
            title=f"Job {key} failed",
            path="/p/desk/",
        )
    ApiKey.objects.update(owner_service_account=None, owner_user=owner)
    newest, first = client.notifications.list(unread=True, event="job.failed")
    assert (newest.title, first.title, newest.url) == ("Job b failed", "Job a failed", "/p/desk/")
    assert client.notifications.mark_read([newest]) == 1
    assert [each.id for each in client.notifications.list(unread=True)] == [first.id]
    assert client.notifications.mark_read() == 1


def test_an_archive_is_exported_and_downloaded(client: Client, workers: None, tmp_path: Path) -> None:
    client.trajectories.import_file(CHATS)
    export = client.exports.wait(client.exports.start(), timeout=60)
    assert export.available and export.contents["trajectories"] == len(CHATS)
    assert client.exports.get(export).size == export.size
    client.exports.file(export).download(tmp_path / "project.zip")
    assert "manifest.json" in ZipFile(tmp_path / "project.zip").namelist()
    assert [each.id for each in client.exports.list()] == [export.id]
