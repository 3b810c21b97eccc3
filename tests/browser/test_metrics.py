"""Metrics induced, looked at and decided on, as a researcher does."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import User
from apps.annotation.models import Campaign
from apps.core import jobs
from apps.metrics import inducing
from apps.metrics.models import Induction
from tests.metrics.said import comments, import_comments

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HOSTILE = "<img src=x onerror=alert(1)> {{ order }} </script><script>alert(2)</script>"


def work_off() -> None:
    claimed = jobs.claim_next(Induction)
    assert claimed is not None
    inducing.execute(claimed)


def test_from_comments_to_a_rubric(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inducing, "CHILD", "tests.metrics.fake_child")
    lines = comments(4)
    lines[0]["text"] = HOSTILE
    import_comments(campaign.project, lines)
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/metrics/")
    tools.shoot(page, "metrics-none")
    page.get_by_role("button", name="Induce").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    work_off()
    expect(page.get_by_role("heading", name="What people wrote, drawn")).to_be_visible()
    expect(page.locator(".chart svg").first).to_be_visible()
    tools.shoot(page, "induction")

    page.get_by_role("button", name="Accept metric 1").click()
    page.get_by_role("link", name="metric 0").click()
    expect(page.get_by_role("heading", name="metric 0")).to_be_visible()
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    tools.shoot(page, "metric")
    page.get_by_label("Name", exact=True).fill("looks first")
    page.get_by_label("Definition").fill("Looks the order up before it acts.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="looks first")).to_be_visible()
    page.get_by_role("button", name="Accept as a criterion").click()
    expect(page.get_by_text("as a criterion, version 1")).to_be_visible()

    page.get_by_label(HOSTILE[:20]).check()
    page.get_by_label("Name of the new one").fill("hostile")
    page.get_by_role("button", name="Split").click()
    expect(page.get_by_text("All runs are being judged")).to_be_visible()
    work_off()
    page.get_by_role("link", name="How far it is").click()
    expect(page.get_by_role("link", name="hostile")).to_be_visible()
    expect(page.get_by_text("have been changed since they were induced")).to_be_visible()

    page.get_by_role("button", name="Make a rubric of 2").click()
    expect(page.get_by_role("heading", name="Induced metrics")).to_be_visible()
    expect(page.get_by_text("Looks the order up before it acts.").first).to_be_visible()
