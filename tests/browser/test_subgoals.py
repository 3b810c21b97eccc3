"""Subgoals of tasks: proposed by a language model, edited and accepted by a person."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.subgoals.models import TaskSubgoals
from apps.trajectories.models import Task
from tests.bulk.stored import store_trajectories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PROPOSED = {"goal": "The order is looked up", "expression": "order [0-9]+", "weight": 1.0}


def test_a_proposed_list_is_edited_and_accepted(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    store_trajectories(project, 3)
    task = Task.objects.filter(project=project).order_by("pk")[0]
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/subgoals/")
    expect(page.get_by_text("No subgoals yet")).to_be_visible()
    tools.shoot(page, "subgoals-empty")
    page.get_by_role("link", name="Propose with an LLM").first.click()
    expect(page.get_by_text("A proposal needs an LLM connection.")).to_be_visible()
    expect(page.get_by_role("link", name="Create an LLM connection")).to_be_visible()
    expect(page.get_by_role("button", name="Start proposal")).to_have_count(0)
    tools.shoot(page, "subgoals-propose-empty")

    own = TaskSubgoals.objects.create(project=project, task=task, subgoals=[PROPOSED])
    page.goto(f"{live_server.url}/p/desk/subgoals/")
    page.get_by_role("link", name=task.external_id, exact=True).click()
    page.watched.expect(422)  # type: ignore[attr-defined]
    page.get_by_label("Expression 1").fill("order ([0-9]+")
    page.get_by_role("button", name="Accept", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("regular expression")
    expect(page.get_by_label("Expression 1")).to_have_value("order ([0-9]+")  # nothing that was typed is lost
    page.get_by_label("Expression 1").fill("order #?[0-9]+")
    page.get_by_label("Weight 1").fill("2")
    tools.shoot(page, "subgoals-detail")
    page.get_by_role("button", name="Accept", exact=True).click()
    expect(page.get_by_text("The subgoals were accepted.")).to_be_visible()
    own.refresh_from_db()
    task.refresh_from_db()
    assert own.state == TaskSubgoals.State.ACCEPTED
    assert task.metadata["subgoals"] == own.subgoals
    assert own.subgoals[0]["expression"] == "order #?[0-9]+"
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("The subgoals were rejected.")).to_be_visible()
    task.refresh_from_db()
    assert "subgoals" not in task.metadata
