"""Scores by agent version: what drifted is named, and its evidence is shown."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from tests.agent_drift.test_agent_drift import add_version

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_version_that_is_worse_is_seen(page: Page, live_server: Any, tools: Any, project: Project) -> None:
    add_version(project, "1.0", count=120, bad=4)
    add_version(project, "1.1", count=120, bad=5)
    add_version(project, "2.0", count=120, bad=48)
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/trajectories/")
    page.get_by_role("link", name="Agent versions").click()
    expect(page.get_by_text("desk 2.0 is worse than version 1.0 in failed outcome")).to_be_visible()
    expect(page.locator("tbody tr").first).to_contain_text("desk 2.0")
    expect(page.locator("tbody tr").first).to_contain_text("40.0 %")
    tools.shoot(page, "agent-drift")
