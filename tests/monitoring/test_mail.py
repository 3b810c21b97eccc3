"""Alerts by mail: to who asked and may see it, again after a failure, and not forever."""

from datetime import timedelta
from smtplib import SMTPServerDisconnected
from typing import Any

import pytest
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Membership, Project, Role, User
from apps.accounts.services import create_project, create_user, remove_member, set_member
from apps.core.environment import env_mail
from apps.core.errors import DomainError
from apps.monitoring.mail import RETRY_MINUTES, create_alert_emails, send_due_emails, set_alert_emails
from apps.monitoring.models import Alert, AlertEmail
from apps.rewards.models import Endpoint


@pytest.fixture
def desk(db: None, settings: Any) -> Project:
    settings.MAIL = {"EMAIL_HOST": "localhost"}
    return create_project(slug="desk")


@pytest.fixture
def endpoint(desk: Project) -> Endpoint:
    return Endpoint.objects.create(project=desk, name="reward", sample_share=1.0)


def person(desk: Project, name: str, role: Role = Role.RESEARCHER) -> User:
    user, _ = create_user(email=f"{name}@example.org", password="long enough for all")
    set_member(project=desk, user=user, role=role, by=None)
    return user


def alert_of(endpoint: Endpoint, rule: str = "length correlation") -> Alert:
    numbers = {"value": 0.9, "baseline": 0.1, "limit": 0.3, "margin": 0.1, "count": 300}
    return Alert.objects.create(
        endpoint=endpoint, version=1, rule=rule, measure="length_correlation", detail="It is.", **numbers
    )


def test_who_asked_and_may_see_it_is_told_once(endpoint, desk) -> None:
    researcher, gone, demoted, silent = (person(desk, name) for name in ("rose", "gone", "demoted", "silent"))
    for user in (researcher, gone, demoted):
        set_alert_emails(endpoint=endpoint, user=user, wanted=True)
    Membership.objects.filter(user=gone).delete()
    Membership.objects.filter(user=demoted).update(role=Role.ANNOTATOR)
    create_alert_emails(alert_of(endpoint))
    assert send_due_emails() == 1
    assert send_due_emails() == 0
    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == ([researcher.email], "[desk] reward: length correlation")
    assert "It is." in sent.body and "/p/desk/alerts/" in sent.body
    assert not AlertEmail.objects.filter(user=silent).exists()
    set_alert_emails(endpoint=endpoint, user=researcher, wanted=False)
    create_alert_emails(alert_of(endpoint, "another"))
    assert send_due_emails() == 0


def test_a_server_that_is_away_is_tried_again_and_then_no_more(endpoint, desk, monkeypatch) -> None:
    researcher = person(desk, "rose")
    set_alert_emails(endpoint=endpoint, user=researcher, wanted=True)
    create_alert_emails(alert_of(endpoint))

    def away(self: Any) -> None:
        raise SMTPServerDisconnected("not now")

    monkeypatch.setattr("django.core.mail.EmailMessage.send", away)
    for minutes in RETRY_MINUTES:
        assert send_due_emails() == 0
        email = AlertEmail.objects.get()
        assert email.error == "SMTPServerDisconnected: not now"
        wait = email.next_at - timezone.now()
        assert timedelta(minutes=minutes - 1) < wait <= timedelta(minutes=minutes)
        AlertEmail.objects.update(next_at=timezone.now())
    send_due_emails()
    email.refresh_from_db()
    assert (email.next_at, email.sent_at, email.attempts) == (None, None, len(RETRY_MINUTES) + 1)


def test_a_waiting_email_is_not_sent_to_who_left_meanwhile(endpoint, desk) -> None:
    researcher, gone, closed = (person(desk, name) for name in ("rose", "gone", "closed"))
    for user in (researcher, gone, closed):
        set_alert_emails(endpoint=endpoint, user=user, wanted=True)
    create_alert_emails(alert_of(endpoint))
    remove_member(membership=Membership.objects.get(user=gone), by=None)
    User.objects.filter(pk=closed.pk).update(is_active=False)
    assert send_due_emails() == 1
    assert [message.to for message in mail.outbox] == [[researcher.email]]
    assert not AlertEmail.objects.filter(user__in=(gone, closed)).exists()


def test_a_rule_with_line_breaks_writes_no_headers(endpoint, desk) -> None:
    researcher = person(desk, "rose")
    set_alert_emails(endpoint=endpoint, user=researcher, wanted=True)
    create_alert_emails(alert_of(endpoint, "a\nBcc: eve@example.org"))
    assert send_due_emails() == 1
    assert mail.outbox[0].subject == "[desk] reward: a Bcc: eve@example.org"
    assert mail.outbox[0].recipients() == [researcher.email]


def test_from_the_page(endpoint, desk, client, settings) -> None:
    researcher = person(desk, "rose")
    client.force_login(researcher)
    page, path = (
        reverse(f"monitoring:monitor-{record}", args=["desk", "reward"]) for record in ("detail", "mail")
    )
    assert "Email me alerts" in client.get(page).content.decode()
    assert (
        "Alerts are sent to rose@example.org."
        in client.post(path, {"wanted": "1"}, follow=True).content.decode()
    )
    assert "Stop emails" in client.get(page).content.decode()
    client.post(path)
    assert not researcher.monitors.exists()
    settings.MAIL = {}
    assert "Email me alerts" not in client.get(page).content.decode()
    with pytest.raises(DomainError, match="TOUCHSTONE_EMAIL_URL"):
        set_alert_emails(endpoint=endpoint, user=researcher, wanted=True)


def test_the_address_of_the_server(monkeypatch) -> None:
    def read(value: str) -> dict[str, Any]:
        monkeypatch.setenv("MAIL_HERE", value)
        return env_mail("MAIL_HERE")

    assert read("") == {}
    found = read("smtp+tls://me%40x:p%3Aw@mail.example.org")
    assert (found["EMAIL_HOST"], found["EMAIL_PORT"], found["EMAIL_USE_TLS"]) == (
        "mail.example.org",
        587,
        True,
    )
    assert (found["EMAIL_HOST_USER"], found["EMAIL_HOST_PASSWORD"]) == ("me@x", "p:w")
    assert read("smtps://mail:444")["EMAIL_PORT"] == 444 and read("smtps://mail")["EMAIL_USE_SSL"]
    for wrong in ("mail.example.org", "http://mail", "smtp://", "smtp://mail:secret-port"):
        with pytest.raises(ImproperlyConfigured) as raised:
            read(wrong)
        assert "secret" not in str(raised.value)
