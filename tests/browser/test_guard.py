"""What a researcher does with the decisions of a guard: filters them, and says whether they were right."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from apps.accounts.models import User
from apps.annotation.models import Campaign
from apps.rewards.models import Endpoint, GuardDecision

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DECISIONS: list[tuple[str, str, str, bool | None]] = [
    ("deny", "confirm", "Ask the customer before you cancel an order.", True),
    ("deny", "confirm", "Ask the customer before you cancel an order.", False),
    ("deny", "one refund", "refund was called 1 time before; at most 1 is allowed.", None),
    ("ask", "limit", "amount is 80; it must be at most 50.", None),
    ("allow", "", "", True),
    ("allow", "", "", None),
]


@pytest.fixture
def guarded(campaign: Campaign) -> Endpoint:
    endpoint = Endpoint.objects.create(project=campaign.project, name="reward")
    for place, (decision, rule, reason, is_right) in enumerate(DECISIONS):
        GuardDecision.objects.create(
            endpoint=endpoint,
            version=3,
            caller="tsk_941c9d6e",
            run="support-7",
            decision=decision,
            rule=rule,
            reason=reason,
            violations=[{"rule": rule, "reason": reason}] if rule else [],
            reward=-0.25,
            milliseconds=3.6 + place,
            prefix="user: Please cancel order 7.\nagent: Shall I cancel order 7?\nuser: What is the weather like?",
            action='agent calls cancel_order {"order": 7}',
            is_sampled=decision == "ask" or is_right is not None or bool(rule),
            is_right=is_right,
            at=timezone.now() - timedelta(hours=place),
        )
    return endpoint


def test_decisions_are_reviewed(page: Page, live_server: Any, tools: Any, guarded: Endpoint) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/endpoints/reward/")
    page.get_by_role("link", name="Guard", exact=True).click()
    expect(page.locator("#rules")).to_contain_text("0.50")
    tools.shoot(page, "guard_log")
    page.get_by_role("search").get_by_label("Rule").select_option("confirm")
    expect(page.locator("tbody").last.locator("tr")).to_have_count(2)
    page.goto(f"{live_server.url}/p/desk/endpoints/reward/guard/")
    page.get_by_role("link", name="Review 2 decisions").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Decision")
    tools.shoot(page, "guard_decision")
    page.get_by_label("Right").check()
    page.get_by_label("Note").fill("80 is above the limit.")
    page.get_by_role("button", name="Save answer").click()
    expect(page.get_by_text("by the rule one refund")).to_be_visible()
    page.get_by_label("Wrong").check()
    page.get_by_role("button", name="Save answer").click()
    expect(page.get_by_text("No decision is waiting for a review.")).to_be_visible()
    assert GuardDecision.objects.get(rule="limit").is_right is True
    assert GuardDecision.objects.get(rule="one refund").is_right is False


def test_an_endpoint_without_a_guard(page: Page, live_server: Any, tools: Any, campaign: Campaign) -> None:
    Endpoint.objects.create(project=campaign.project, name="reward")
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/endpoints/reward/guard/")
    expect(page.get_by_text("No guard", exact=True)).to_be_visible()
    page.get_by_text("Settings of the log").click()
    page.get_by_label("Retention, in days").fill("7")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Decisions are kept for 7 days.")).to_be_visible()
    tools.shoot(page, "guard_empty")


def test_guard_settings_in_the_builder(page: Page, live_server: Any, tools: Any, campaign: Campaign) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/endpoints/compose/")
    spec = lambda: json.loads(page.locator("#id_spec").input_value())  # noqa: E731
    before = spec()
    page.get_by_role("button", name="Add guard settings").click()
    card = page.get_by_role("region", name="Guard settings")
    expect(card.get_by_label("On failure")).to_have_value("deny")
    card.get_by_label("On failure").select_option("allow")
    card.get_by_label("Ask below").fill("-1.5")
    card.get_by_label("Ask below").blur()
    card.get_by_label("Ask when uncertain").uncheck()
    guard = {"on_failure": "allow", "ask_below": -1.5, "ask_when_uncertain": False}
    assert spec() == before | {"guard": guard}
    tools.shoot(page, "compose_guard")
    card.get_by_role("button", name="Remove").click()
    assert spec() == before
