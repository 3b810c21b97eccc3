"""Every decision of a guard is logged, sampled to people, and counted by rule."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key
from apps.core.errors import DomainError
from apps.rewards import accounting
from apps.rewards.guard_log import CUT, GuardResult, LoggedDecision, guard_redaction, last_steps
from apps.rewards.guard_services import keep_guard_log
from apps.rewards.models import Endpoint, GuardDecision
from apps.rewards.serving import usage_writer
from apps.rewards.usage import UsageEvent, UsageGroup
from tests.api_calls import ApiCaller
from tests.factories import make_member
from tests.rewards.conftest import wait_until
from tests.rewards.test_guard import CANCEL, TALK, guarded, post
from workers.schema import Task, Trajectory, from_messages

__all__ = ["guarded"]


def content(*texts: str) -> Trajectory:
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]
    return Trajectory(steps=tuple(from_messages(messages)), task=Task(id="t"))


def logged(trajectory: Trajectory, characters: int, decision: Any = "deny", **fields: Any) -> LoggedDecision:
    return LoggedDecision(
        result=GuardResult(decision=decision, **fields),
        at=timezone.now(),
        reward=0.5,
        is_sampled=True,
        redaction=guard_redaction(["order-[0-9]+"]),
        steps=last_steps(trajectory, characters),
        characters=characters,
    )


def test_decisions_are_logged_with_their_excerpts(service: Any, http: Any, guarded: str) -> None:
    endpoint = Endpoint.objects.get(name=guarded)
    keep_guard_log(endpoint=endpoint, review_share=0, days=3, characters=200, by=None)
    wait_until(lambda: service.deployed[guarded].info.guard_review_share == 0)
    secret = {"role": "user", "content": "My password: hunter2, mail eve@example.org"}
    post(http, guarded, messages=[secret, *TALK], action=CANCEL, run="r1", policy_version="3")
    post(http, guarded, messages=TALK[:1], action=CANCEL)
    post(http, guarded, messages=TALK, action={"name": "refund", "arguments": {"amount": 80, "token": "abc"}})
    wait_until(lambda: GuardDecision.objects.count() == 3)
    allowed, denied, asked = GuardDecision.objects.order_by("pk")
    assert (allowed.decision, allowed.rule, allowed.run, allowed.policy_version) == ("allow", "", "r1", "3")
    assert (
        "hunter2" not in allowed.prefix
        and "eve@" not in allowed.prefix
        and "Shall I cancel" in allowed.prefix
    )
    assert 'agent calls cancel_order {"order":7}' in allowed.action.replace('": 7', '":7')
    assert (denied.decision, denied.rule, denied.reason) == ("deny", "confirm", "Ask the customer first.")
    assert denied.violations[0]["rule"] == "confirm" and denied.milliseconds > 0
    assert (asked.decision, asked.rule, asked.review) == ("ask", "limit", "waiting"), "always reviewed"
    assert "abc" not in asked.action and "80" in asked.action
    assert (allowed.review, denied.review) == ("", "")


def test_a_repeated_request_is_one_decision(http: Any, guarded: str) -> None:
    for _ in range(2):
        http.post(
            f"/api/v1/rewards/{guarded}/guard",
            json={"messages": TALK, "action": CANCEL},
            headers={"Idempotency-Key": "one"},
        )
    post(http, guarded, messages=TALK, action=CANCEL)
    wait_until(lambda: GuardDecision.objects.count() == 2)


def test_excerpts_are_redacted_before_they_are_cut() -> None:
    long = content("x" * 50 + " sk-abcdefghijklmnopqrst", "ok", "order-123 " + "y" * 30, "done " + "z" * 60)
    found = logged(long, 40)
    assert found.prefix.startswith(CUT.lstrip()) and found.prefix.endswith("y" * 30)
    assert "order-1" not in found.prefix and "mnop" not in logged(long, 60).prefix
    assert found.action == f"agent: done {'z' * 8}{CUT}{'z' * 20}"
    assert logged(long, 0).action == logged(long, 0).prefix == ""
    assert logged(content("a\x00b", "c"), 100).prefix == "user: a\ufffdb"


def test_what_waits_for_the_database_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_writer, "MOST_DECISION_CHARACTERS", 100)
    writer = usage_writer.UsageWriter()
    group = UsageGroup(1, timezone.now(), 1, "tsk_1")
    for _ in range(2):
        writer.record(UsageEvent(group, 200, 1.0, decisions=(logged(content("q" * 40, "a" * 20), 1000),)))
    first, second = (event.decisions[0] for event in writer._events)
    assert first and second and first.action and not second.action and second.result.decision == "deny"


@pytest.fixture
def lab_endpoint(db: None) -> Endpoint:
    return Endpoint.objects.create(project=Project.objects.create(slug="lab", name="Lab"), name="reward")


def decided(
    lab_endpoint: Endpoint, decision: str, rule: str = "", hours: int = 0, **fields: Any
) -> GuardDecision:
    return GuardDecision.objects.create(
        endpoint=lab_endpoint, version=1, caller="tsk_1", decision=decision, rule=rule, reward=0.1, milliseconds=2.0,
        at=timezone.now() - timedelta(hours=hours), reason="Because.", action="secret", **fields,
    )  # fmt: skip


def test_retention(lab_endpoint: Endpoint) -> None:
    keep_guard_log(endpoint=lab_endpoint, review_share=0.5, days=2, characters=10, by=None)
    old, new = decided(lab_endpoint, "deny", hours=49), decided(lab_endpoint, "deny", hours=47)
    accounting.delete_expired()
    assert list(lab_endpoint.guard_decisions.all()) == [new] and old.pk != new.pk
    keep_guard_log(endpoint=lab_endpoint, review_share=0.5, days=2, characters=0, by=None)
    assert lab_endpoint.guard_decisions.get().action == ""
    for wrong in ({"review_share": 2}, {"days": 0}, {"characters": -1}, {"review_share": float("nan")}):
        with pytest.raises(DomainError):
            keep_guard_log(
                endpoint=lab_endpoint, by=None, **({"review_share": 0, "days": 2, "characters": 0} | wrong)
            )


def test_decisions_over_the_api(lab_endpoint: Endpoint, django_user_model: Any) -> None:
    asked = decided(lab_endpoint, "ask", "limit", 5, is_sampled=True)
    wrong = decided(lab_endpoint, "deny", "confirm", 3, is_right=False, is_sampled=True)
    right = decided(lab_endpoint, "deny", "confirm", 2, is_right=True)
    call = ApiCaller(lab_endpoint.project, Scope.REWARD)
    path = "/endpoints/reward/guard-decisions"

    def ids(**query: Any) -> list[int]:
        return [row["id"] for row in call("GET", path, **query)["items"]]

    assert ids() == [right.pk, wrong.pk, asked.pk] and ids(decision="ask") == [asked.pk]
    assert ids(rule="confirm", review="wrong") == [wrong.pk] and ids(review="waiting") == [asked.pk]
    assert ids(since=(timezone.now() - timedelta(hours=4)).isoformat()) == [right.pk, wrong.pk]
    assert ids(until=(timezone.now() - timedelta(hours=4)).isoformat()) == [asked.pk]
    assert "secret" not in str(call("GET", path)) and "Because" not in str(call("GET", path))
    call("GET", f"{path}/{asked.pk}")
    assert call.status == 403
    admin = ApiCaller(lab_endpoint.project, Scope.ADMIN)
    assert admin("GET", f"{path}/{asked.pk}")["action"] == "secret"
    admin("POST", f"{path}/{asked.pk}/answer", {"is_right": True})
    assert admin.status == 403, "a person answers"
    log = admin("PUT", "/endpoints/reward/guard-log", {"review_share": 0.25, "days": 7, "characters": 50})
    assert (log["review_share"], log["days"], log["characters"]) == (0.25, 7, 50)
    rows = {
        (row["rule"], row["decision"]): row for row in call("GET", "/endpoints/reward/guard-log")["rules"]
    }
    confirm = rows["confirm", "deny"]
    assert (confirm["count"], confirm["right"], confirm["wrong"], confirm["precision"]) == (2, 1, 1, 0.5)
    assert confirm["low"] == pytest.approx(0.0945, abs=1e-3) and confirm["high"] == pytest.approx(
        0.9055, abs=1e-3
    )
    assert rows["limit", "ask"]["waiting"] == 1 and rows["limit", "ask"]["precision"] is None


def test_a_member_answers_over_the_api(lab_endpoint: Endpoint) -> None:
    member = make_member(lab_endpoint.project, "rose@example.org", "owner")
    asked = decided(lab_endpoint, "ask", "limit", is_sampled=True)
    secret = create_api_key(project=lab_endpoint.project, scopes=[Scope.ADMIN], owner=member)[1]
    answer = Client().post(
        f"/api/v1/projects/lab/endpoints/reward/guard-decisions/{asked.pk}/answer",
        {"is_right": False, "note": "It was confirmed."},
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert answer.status_code == 200 and answer.json()["review"] == "wrong"
    asked.refresh_from_db()
    assert (asked.is_right, asked.note, asked.answered_by) == (False, "It was confirmed.", member)


def test_review_pages(lab_endpoint: Endpoint) -> None:
    member = make_member(lab_endpoint.project, "rose@example.org", "researcher")
    first = decided(lab_endpoint, "ask", "limit", 2, is_sampled=True)
    second = decided(lab_endpoint, "deny", "confirm", 1, is_sampled=True)
    decided(lab_endpoint, "allow")
    client = Client()
    client.force_login(member)
    base = "/p/lab/endpoints/reward/guard/"
    page = client.get(base).content.decode()
    assert "Review 2 decisions" in page and "confirm" in page
    assert client.get(f"{base}?rule=confirm&decision=deny&within=day").context["table"].count == 1
    assert client.get(f"{base}?rule=(none)").context["table"].count == 1
    assert client.get(f"{base}review/").url == f"{base}decisions/{first.pk}/"
    saved = client.post(f"{base}decisions/{first.pk}/", {"answer": "right", "note": "yes"}, follow=True)
    assert saved.redirect_chain[-1][0] == f"{base}decisions/{second.pk}/"
    assert "is required" in client.post(f"{base}decisions/{second.pk}/", {}).content.decode()
    client.post(f"{base}decisions/{second.pk}/", {"answer": "wrong"})
    assert client.get(f"{base}review/").url == base
    refused = client.post(base, {"review_share": 500, "days": 7, "characters": 50})
    assert refused.status_code == 200 and refused.context["form"].errors
    client.post(base, {"review_share": 50, "days": 7, "characters": 50})
    lab_endpoint.refresh_from_db()
    assert (lab_endpoint.guard_review_share, lab_endpoint.guard_days) == (0.5, 7)
    assert client.get(f"{base}decisions/{second.pk + 99}/").status_code == 404


def test_a_batch_is_written_once(lab_endpoint: Endpoint) -> None:
    group, batch = UsageGroup(lab_endpoint.pk, timezone.now(), 1, "tsk_1"), uuid.uuid4()
    event = UsageEvent(group, 200, 1.5, decisions=(logged(content("q", "a"), 100, rule="confirm"),))
    for _ in range(2):
        accounting.write_usage(batch=batch, events=[event])
    assert lab_endpoint.guard_decisions.get().rule == "confirm"
