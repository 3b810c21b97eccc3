"""Who hears of what: members only, once for each event, on the page and by mail as they chose."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Membership, Project, Role, User
from apps.annotation import services as annotation
from apps.annotation.models import Annotator, Item
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState, claim_next, finish
from apps.datasets.models import DatasetVersion
from apps.inbox import services
from apps.inbox.mail import send_due_mail
from apps.inbox.mentions import notify_mentioned
from apps.inbox.models import Notification, NotificationEvent
from apps.inbox.selectors import own_notifications, unread_count
from apps.inbox.services import NotificationChoice, notify_people
from apps.trajectories.comments import create_comment, edit_comment
from apps.trajectories.models import Task
from apps.webhooks.services import alert
from tests.annotation import rows
from tests.factories import make_member, signed_in

MENTION = NotificationEvent.COMMENT_MENTION


def tell(
    project: Project, *users: User, key: str = "k", title: str = "Ann mentioned you", **more: Any
) -> int:
    return notify_people(
        project=project, users=users, event=MENTION, key=key, title=title, path="/p/desk/", **more
    )


def choose(user: User, *, page: bool = True, by_mail: str = "off") -> None:
    services.save_preferences(user=user, chosen={MENTION: NotificationChoice(page, by_mail)})


@pytest.fixture
def sends_mail(settings: Any) -> None:
    settings.MAIL, settings.PUBLIC_URL = True, "https://rewards.example.org"


def test_members_are_told_once_and_strangers_never(
    project: Project, researcher: User, outsider: User
) -> None:
    assert tell(project, researcher, outsider) == 1
    assert tell(project, researcher) == 0
    assert Notification.objects.get().user == researcher
    assert unread_count(researcher) == 1 and unread_count(outsider) == 0


def test_who_left_a_project_sees_nothing_of_it(project: Project, researcher: User) -> None:
    tell(project, researcher)
    Membership.objects.filter(user=researcher).delete()
    assert not own_notifications(researcher).exists()
    assert signed_in(researcher).get(f"/inbox/{Notification.objects.get().pk}/").status_code == 404


@pytest.mark.usefixtures("sends_mail")
def test_who_has_a_lower_role_by_now_sees_and_gets_nothing(project: Project, researcher: User) -> None:
    services.save_preferences(
        user=researcher, chosen={NotificationEvent.ALERT_RAISED: NotificationChoice(True, "immediate")}
    )
    alert(project, name="gold.low", detail="Ann is paused.", path="/p/desk/")
    tell(project, researcher)
    assert own_notifications(researcher).count() == 2
    Membership.objects.filter(user=researcher).update(role=Role.ANNOTATOR)
    assert [row.event for row in own_notifications(researcher)] == [MENTION]
    assert unread_count(researcher) == 1
    assert send_due_mail() == 0 and mail.outbox == []
    assert Notification.objects.get(event="alert.raised").mail_error == "no longer researcher or above"


@pytest.mark.parametrize("rule", ["require_two_factor", "require_single_sign_on"])
def test_a_session_that_lacks_what_a_project_requires_sees_nothing_of_it(
    project: Project, researcher: User, rule: str
) -> None:
    tell(project, researcher, title="Secret plans")
    client = signed_in(researcher)
    assert "Secret plans" in client.get("/inbox/").content.decode()
    Project.objects.update(**{rule: True})
    page = client.get("/inbox/").content.decode()
    assert "Secret plans" not in page and "another way to sign in" in page and "Nothing unread" in page
    (row,) = Notification.objects.all()
    assert client.get(f"/inbox/{row.pk}/").status_code == 404
    client.post("/inbox/read/", {"all": "1"})
    row.refresh_from_db()
    assert row.read_at is None


def test_what_a_person_turned_off_does_not_come(project: Project, researcher: User) -> None:
    choose(researcher, page=False)
    assert tell(project, researcher) == 0
    assert not Notification.objects.exists()


@pytest.mark.usefixtures("sends_mail")
def test_mail_has_the_title_and_the_link_and_never_the_detail(project: Project, researcher: User) -> None:
    choose(researcher, by_mail="immediate")
    tell(project, researcher, detail="what the agent wrote")
    assert send_due_mail() == 1 and send_due_mail() == 0
    (message,) = mail.outbox
    assert message.subject == "[desk] Ann mentioned you" and message.to == [researcher.email]
    assert "https://rewards.example.org/p/desk/" in message.body
    assert "what the agent wrote" not in message.body
    assert Notification.objects.get().mail_sent_at is not None


@pytest.mark.usefixtures("sends_mail")
def test_the_mail_of_a_day_is_one(project: Project, researcher: User) -> None:
    choose(researcher, by_mail="daily")
    for number in range(3):
        tell(project, researcher, key=str(number), title=f"Mention {number}")
    assert send_due_mail() == 0
    due = Notification.objects.values_list("mail_next_at", flat=True)
    assert {moment.strftime("%H:%M") for moment in due if moment} == {"07:00"}
    Notification.objects.update(mail_next_at=timezone.now())
    assert send_due_mail() == 1
    assert mail.outbox[0].subject == "3 notifications"
    assert all(f"Mention {number}" in mail.outbox[0].body for number in range(3))


@pytest.mark.usefixtures("sends_mail")
def test_who_left_while_mail_waited_gets_none(project: Project, researcher: User) -> None:
    choose(researcher, by_mail="immediate")
    tell(project, researcher)
    Membership.objects.filter(user=researcher).delete()
    assert send_due_mail() == 0 and mail.outbox == []
    assert Notification.objects.get().mail_next_at is None


@pytest.mark.usefixtures("sends_mail")
def test_mail_that_cannot_be_sent_is_tried_again(
    project: Project, researcher: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(researcher, by_mail="immediate")
    tell(project, researcher)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise ConnectionRefusedError("no server there")

    with monkeypatch.context() as broken:
        broken.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", refuse)
        assert send_due_mail() == 0
    waiting = Notification.objects.get()
    assert "no server there" in waiting.mail_error
    assert waiting.mail_next_at and waiting.mail_next_at > timezone.now() + timedelta(seconds=50)
    Notification.objects.update(mail_next_at=timezone.now())
    assert send_due_mail() == 1 and len(mail.outbox) == 1


def test_mail_is_refused_where_none_is_sent(researcher: User) -> None:
    with pytest.raises(DomainError, match="sends no mail"):
        choose(researcher, by_mail="daily")


def test_the_end_of_a_job_reaches_who_started_it(project: Project, researcher: User) -> None:
    for state in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED):
        DatasetVersion.objects.create(project=project, name=state, version=1, created_by=researcher)
        job = claim_next(DatasetVersion)
        assert job is not None
        finish(job, state, error="It has no records." if state == JobState.FAILED else "")
    titles = {row.event: (row.title, row.detail) for row in Notification.objects.filter(user=researcher)}
    assert titles == {
        "job.succeeded": ("The freeze of succeeded@1 finished", ""),
        "job.failed": ("The freeze of failed@1 failed", "It has no records."),
    }


def test_assigned_items_are_told_together(project: Project, annotator: User) -> None:
    campaign = annotation.create_campaign(project=project, name="Which", feedback_types=["comment"])
    task = Task.objects.create(project=project, external_id="t")
    items = [Item.objects.create(campaign=campaign, task=task, key=str(n), overlap=1) for n in range(2)]
    who = Annotator.objects.create(project=project, user=annotator, name="ann")
    assert annotation.assign_items(annotator=who, items=items) == 2
    assert annotation.assign_items(annotator=who, items=items) == 0
    (row,) = Notification.objects.filter(user=annotator)
    assert row.title == "2 items were assigned to you in Which"


def test_alerts_reach_researchers_and_owners(project: Project, researcher: User, annotator: User) -> None:
    owner = make_member(project, "owner@example.org", Role.OWNER)
    alert(project, name="gold.low", detail="Ann is paused.", path="/p/desk/")
    told = Notification.objects.filter(event="alert.raised").values_list("user", "title")
    assert set(told) == {(researcher.pk, "Ann is paused."), (owner.pk, "Ann is paused.")}


def test_only_members_who_may_open_the_page_are_told(project: Project, researcher: User) -> None:
    for address, role in (("zoe@example.org", Role.REVIEWER), ("kim@example.org", Role.ANNOTATOR)):
        make_member(project, address, role)
    told = notify_mentioned(
        project=project,
        text="@zoe @kim please look",
        by=researcher,
        key="c2",
        where="a comment in Which",
        path="/p/desk/",
        least_role=Role.REVIEWER,
    )
    assert told == 1 and Notification.objects.get().user.email == "zoe@example.org"


def test_a_comment_on_a_trajectory_tells_whom_it_mentions(project: Project, researcher: User) -> None:
    zoe = make_member(project, "zoe@example.org", Role.RESEARCHER)
    task = Task.objects.create(project=project, external_id="t")
    trajectory = rows.trajectory(task, "Hello.")
    comment = create_comment(trajectory=trajectory, text="@zoe is this a loop?", by=researcher)
    edit_comment(comment=comment, text="@zoe is this one?", step=None, sign=None, by=researcher)
    (row,) = Notification.objects.all()
    assert row.user == zoe and row.path == f"/p/desk/trajectories/{trajectory.pk}/"
    assert row.title == f"{researcher} mentioned you in a comment on trajectory {trajectory.pk}"


def test_a_mention_is_told_once_and_not_to_its_author(project: Project, researcher: User) -> None:
    zoe = make_member(project, "zoe@example.org", Role.REVIEWER)
    author = researcher.email.partition("@")[0]
    for _ in range(2):
        notify_mentioned(
            project=project,
            text=f"@zoe @{author}",
            by=researcher,
            key="c1",
            where="a comment on trajectory 3",
            path="/p/desk/",
        )
    (row,) = Notification.objects.all()
    assert row.user == zoe and row.title == f"{researcher} mentioned you in a comment on trajectory 3"


def test_the_page_lists_filters_and_marks(project: Project, researcher: User) -> None:
    tell(project, researcher, key="1", title="First", detail="A detail.")
    tell(project, researcher, key="2", title="Second")
    client = signed_in(researcher)
    page = client.get("/inbox/").content.decode()
    assert "First" in page and "A detail." in page and "2 unread" in page
    assert 'aria-label="Inbox, 2 unread"' in client.get("/p/desk/").content.decode()
    first = Notification.objects.get(key="1")
    response = client.get(f"/inbox/{first.pk}/")
    assert (response.status_code, response["Location"]) == (302, "/p/desk/")
    page = client.get("/inbox/?show=unread").content.decode()
    assert "First" not in page and "Second" in page
    wrong = client.get("/inbox/?event=x")
    assert wrong.status_code == 422 and "Second" not in wrong.content.decode()
    client.post("/inbox/read", {"notification": [Notification.objects.get(key="2").pk]})
    assert unread_count(researcher) == 0
    tell(project, researcher, key="3")
    client.post("/inbox/read", {"all": "1"})
    assert unread_count(researcher) == 0


def test_no_one_reads_what_is_anothers(project: Project, researcher: User, annotator: User) -> None:
    tell(project, researcher)
    pk = Notification.objects.get().pk
    client = signed_in(annotator)
    client.post("/inbox/read", {"notification": [pk]})
    client.post("/inbox/read", {"all": "1"})
    assert client.get(f"/inbox/{pk}/").status_code == 404
    assert unread_count(researcher) == 1


def test_older_pages_go_on_after_the_last_row(project: Project, researcher: User) -> None:
    for number in range(60):
        tell(project, researcher, key=str(number), title=f"Number {number:02}")
    client = signed_in(researcher)
    first = client.get("/inbox/")
    assert "Number 59" in first.content.decode() and "Number 09" not in first.content.decode()
    older = client.get("/inbox/", {"cursor": first.context["following"]}).content.decode()
    assert "Number 09" in older and "Number 59" not in older


@pytest.mark.usefixtures("sends_mail")
def test_preferences_are_saved(researcher: User) -> None:
    client = signed_in(researcher)
    assert "Notification preferences" in client.get("/inbox/preferences/").content.decode()
    client.post("/inbox/preferences/", {"job.failed-page": "on", "job.failed-mail": "immediate"})
    chosen = services.preferences(researcher)
    assert chosen["job.failed"] == NotificationChoice(True, "immediate")
    assert chosen["job.succeeded"] == NotificationChoice(False, "off")


def test_old_notifications_are_forgotten(project: Project, researcher: User) -> None:
    for key, days, read in (("a", 100, True), ("b", 100, False), ("c", 400, False), ("d", 1, True)):
        tell(project, researcher, key=key)
        moment = timezone.now() - timedelta(days=days)
        Notification.objects.filter(key=key).update(created_at=moment, read_at=moment if read else None)
    services.forget_old_notifications()
    assert set(Notification.objects.values_list("key", flat=True)) == {"b", "d"}


@pytest.mark.django_db
def test_strangers_log_in_first() -> None:
    assert Client().get("/inbox/").status_code == 302
