"""A reward program from its code to a dry run that passed, and the difference of two versions."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import User
from apps.annotation.models import Campaign
from apps.llm.models import LLMConnection
from apps.reward_programs import tasks

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
FIRST = "def reward(trajectory):\n    return 1.0\n"
SECOND = "def reward(trajectory):\n    return -float(len(trajectory['steps']))\n"


def test_a_program_is_written_compared_and_tried(
    page: Page, live_server: Any, tools: Any, campaign: Campaign
) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/reward-programs/")
    page.get_by_role("link", name="New program").first.click()
    page.get_by_label("Name").fill("short")
    page.get_by_label("Code").fill(FIRST)
    tools.shoot(page, "reward-program-create")
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_role("heading", name="short@1")).to_be_visible()
    page.get_by_role("link", name="New version").click()
    expect(page.get_by_label("Code")).to_have_value(FIRST)
    page.get_by_label("Code").fill(SECOND)
    page.get_by_role("button", name="Store").click()
    expect(page.locator(".diff-removed")).to_have_text("-     return 1.0")
    expect(page.locator(".diff-added")).to_contain_text("return -float")
    tools.shoot(page, "reward-program-detail")
    page.get_by_role("button", name="Start dry run").click()
    tasks.advance_reward_programs()
    expect(page.get_by_role("heading", name="Passed", exact=True)).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(1 + 12)  # each trajectory once
    tools.shoot(page, "reward-program-dry-run")
    page.goto(f"{live_server.url}/p/desk/reward-programs/draft/")
    expect(page.get_by_text("A draft needs an LLM connection.")).to_be_visible()
    expect(page.get_by_role("button", name="Start draft")).to_have_count(0)
    LLMConnection.objects.create(
        project=campaign.project, name="local", base_url="http://127.0.0.1:9/v1", model="quick"
    )
    page.reload()
    expect(page.get_by_role("textbox", name="Task", exact=True).first).to_be_visible()
    tools.shoot(page, "reward-program-draft")
