"""Hindsight tasks: what a trajectory did, edited and accepted by a person."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.hindsight.models import HindsightTask
from apps.trajectories.models import Trajectory
from tests.bulk.stored import store_trajectories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_proposed_text_is_edited_and_accepted(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    store_trajectories(project, 3)
    trajectory = Trajectory.objects.filter(project=project).order_by("pk")[0]
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/hindsight/")
    expect(page.get_by_text("No hindsight tasks yet")).to_be_visible()
    tools.shoot(page, "hindsight-empty")
    page.get_by_role("link", name="Propose with an LLM").first.click()
    expect(page.get_by_text("A proposal needs an LLM connection.")).to_be_visible()
    tools.shoot(page, "hindsight-propose-empty")

    proposed = "Look up the newest order of the customer."
    own = HindsightTask.objects.create(project=project, trajectory=trajectory, text=proposed, evidence=[1])
    page.goto(f"{live_server.url}/p/desk/hindsight/")
    page.get_by_role("link", name=proposed, exact=True).click()
    text = page.get_by_role("textbox", name="Task that it fulfilled")
    expect(text).to_have_value(proposed)
    tools.shoot(page, "hindsight-detail")
    text.fill("Look up an order.")
    page.get_by_role("button", name="Accept", exact=True).click()
    expect(page.get_by_text("The task was accepted.")).to_be_visible()
    own.refresh_from_db()
    trajectory.refresh_from_db()
    assert (own.state, own.accepted_text) == ("accepted", "Look up an order.")
    assert trajectory.metadata["reached"] == ["Look up an order."]
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("The task was rejected.")).to_be_visible()
    trajectory.refresh_from_db()
    assert "reached" not in trajectory.metadata
