"""Metrics induced, looked at and decided on, as a researcher does."""

from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Membership, Role, User
from apps.annotation.models import Campaign
from apps.core.jobs import job_queue
from apps.metrics import executor
from apps.metrics.models import Induction
from apps.metrics.services import start_induction
from apps.trajectories.models import Trajectory
from tests.metrics.said import comments, import_comments
from tests.workers.induce.rule_based_model import TONE, answer
from tests.workers.llm.scripted import Script, scripted

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HOSTILE = "<img src=x onerror=alert(1)> {{ order }} </script><script>alert(2)</script>"


def work_off() -> None:
    claimed = job_queue.claim_next(Induction)
    assert claimed is not None
    executor.execute(claimed)


def test_from_comments_to_a_rubric(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "CHILD", "tests.metrics.fake_child")
    lines = comments(4)
    lines[0]["text"] = HOSTILE
    import_comments(campaign.project, lines)
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/metrics/")
    tools.shoot(page, "metrics-none")
    page.get_by_role("button", name="Extract metrics").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    work_off()
    expect(page.get_by_role("heading", name="Comment map")).to_be_visible()
    expect(page.locator(".chart svg").first).to_be_visible()
    tools.shoot(page, "induction")
    marks = page.locator("[data-chart=map-data] svg path")
    for place in range(marks.count()):
        marks.nth(place).hover(force=True)
        if page.locator("[data-chart=map-data] svg").get_by_text("onerror").count():
            break  # the tooltip shows what was written, as text
    expect(page.locator("[data-chart=map-data] svg").get_by_text("onerror")).to_be_visible()
    expect(page.locator("img[src=x]")).to_have_count(0)

    page.get_by_role("button", name="Accept metric 1").click()
    page.get_by_role("link", name="metric 0").click()
    expect(page.get_by_role("heading", name="metric 0")).to_be_visible()
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    tools.shoot(page, "metric")
    page.get_by_label("Name", exact=True).fill("looks first")
    page.get_by_label("Definition").fill("Looks the order up before it acts.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="looks first")).to_be_visible()
    page.get_by_role("button", name="Accept as criterion").click()
    expect(page.get_by_text("as a criterion, version 1")).to_be_visible()

    page.get_by_label(HOSTILE[:20]).check()
    page.get_by_label("Name of the new metric").fill("hostile")
    page.get_by_role("button", name="Split").click()
    expect(page.get_by_text("All trajectories are being judged")).to_be_visible()
    work_off()
    page.get_by_role("link", name="Show progress").click()
    expect(page.get_by_role("link", name="hostile")).to_be_visible()
    expect(page.get_by_text("have been changed since")).to_be_visible()

    page.get_by_role("button", name="Create rubric from 2 accepted metrics").click()
    expect(page.get_by_role("heading", name="Extracted metrics")).to_be_visible()
    expect(page.get_by_text("Looks the order up before it acts.").first).to_be_visible()


def test_what_metrics_are_good_for(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scoreboard, the runs that violate one, and what is frozen with it."""
    monkeypatch.setattr(executor, "CHILD", "tests.metrics.fake_child")
    import_comments(campaign.project, comments(6))
    runs = Trajectory.objects.filter(project=campaign.project, facts=None).order_by("pk")
    for number, run in enumerate(runs):
        version = f"v{1 + number % 3}"
        day = run.created_at - timedelta(days=number)
        Trajectory.objects.filter(pk=run.pk).update(
            agent_name="desk-bot", agent_version=version, created_at=day
        )
    start_induction(project=campaign.project)
    work_off()
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/metrics/")
    page.get_by_role("link", name="Scoreboard").click()
    expect(page.get_by_role("heading", name="By agent and version")).to_be_visible()
    expect(page.locator(".chart svg")).to_have_count(2)
    page.get_by_label("Metric", exact=True).select_option("metric 1")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_label("Metric", exact=True)).to_have_value("metric 1")
    tools.shoot(page, "scoreboard")

    page.goto(f"{live_server.url}/p/desk/metrics/")
    page.get_by_role("link", name="Induction", exact=False).last.click()
    page.get_by_role("link", name="metric 0").click()
    page.get_by_role("link", name="Show all").first.click()
    expect(page.get_by_label("Metric or judge", exact=True)).to_have_value("metric 0")
    expect(page.get_by_text("All that match")).to_be_visible()
    tools.shoot(page, "explorer-by-metric")
    page.goto(f"{live_server.url}/p/desk/datasets/new/")
    page.get_by_text("Advanced: filters").click()
    page.get_by_label("points of comments").check()
    tools.shoot(page, "freeze-derived")


def test_a_language_model_is_added_and_used(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, settings: Any
) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    import_comments(campaign.project, comments(8))
    researcher = User.objects.get(email="rose@example.org")
    Membership.objects.filter(user=researcher).update(role=Role.OWNER)
    tools.login(page, live_server, researcher)
    page.goto(f"{live_server.url}/p/desk/llm-connections/")
    tools.shoot(page, "llm-connections-none")
    with scripted(Script(answer)) as url:
        page.get_by_label("Name", exact=True).fill("House model")
        page.get_by_label("Base URL").fill(url)
        page.get_by_label("Model optional").fill("rules")
        page.get_by_label("API key optional").fill("sk-canary")
        page.get_by_role("button", name="Create connection").click()
        expect(page.get_by_role("link", name="House model")).to_be_visible()
        expect(page.locator("main")).not_to_contain_text("sk-canary")
        tools.shoot(page, "llm-connections")
        page.goto(f"{live_server.url}/p/desk/metrics/")
        page.get_by_label("Engine optional").select_option("House model")
        page.get_by_role("button", name="Extract metrics").click()
        expect(page.get_by_role("button", name="Cancel")).to_be_visible()
        work_off()
    expect(page.get_by_text("Language model House model")).to_be_visible()
    expect(page.get_by_role("link", name=TONE)).to_be_visible()
    tools.shoot(page, "induction-by-a-language-model")
