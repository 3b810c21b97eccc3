"""A filter is built of fields, saved views and chips in every form that asks for one; without a script it is text."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.bulk.models import BulkJob
from apps.trajectories.models import Trajectory
from apps.trajectories.saved_views import create_view
from tests.trajectories.conftest import record
from tests.trajectories.test_filter_builder import FORMS
from tests.trajectories.test_views import bring

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def desk(project: Project) -> Project:
    bring(project, *(record(n, agent="fox" if n % 3 else "owl", success=n < 4) for n in range(9)))
    create_view(
        project=project, name="Foxes", source="agent=fox", by=User.objects.get(email="rose@example.org")
    )
    return project


def test_a_filter_is_built_where_one_is_asked_for(
    page: Page, live_server: Any, tools: Any, desk: Project
) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    for path in FORMS:
        page.goto(f"{live_server.url}/p/desk/{path}")
        text, matches = page.locator("[data-filter-url]"), page.locator(".filter-matches")
        expect(matches).to_contain_text("9 trajectories match: all of the project")
        expect(text).to_be_hidden()
        page.get_by_role("button", name="Foxes", exact=True).click()
        expect(matches).to_contain_text("6 trajectories match")
        expect(page.get_by_role("button", name="Foxes", exact=True)).to_have_attribute("aria-pressed", "true")
        page.get_by_text("Choose trajectories").click()
        expect(page.locator("#condition_agent")).to_have_value("fox")
        page.locator("#condition_success").select_option("yes")
        expect(matches).to_contain_text("2 trajectories match")
        assert parse_qs(text.input_value()) == {"agent": ["fox"], "success": ["yes"]}
        page.get_by_label("Remove the condition Agent: fox").click()
        expect(matches).to_contain_text("4 trajectories match")
        expect(page.locator("#condition_agent")).to_have_value("")
        page.locator("#condition_text").fill("no such word")
        page.locator("#condition_text").press("Enter")  # does not send the form around it
        expect(matches).to_contain_text("0 trajectories match")
        page.get_by_text("As text", exact=True).click()
        text.fill("agnet=fox")
        text.blur()
        expect(matches).to_contain_text("Did you mean agent?")
        text.fill("agent=owl")
        text.blur()
        expect(matches).to_contain_text("3 trajectories match")
    tools.shoot(page, "filter-builder")


def test_what_was_chosen_is_what_is_sent(page: Page, live_server: Any, tools: Any, desk: Project) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/datasets/trajectories/delete/")
    page.get_by_role("button", name="Foxes", exact=True).click()
    expect(page.locator(".filter-matches")).to_contain_text("6 trajectories match")
    page.get_by_role("button", name="Choose these").click()
    page.wait_for_url("**/delete/?agent=fox")
    page.fill("#confirmed", "6")
    page.get_by_role("button", name="Delete permanently").click()
    expect(page.get_by_text("0 of 6 deleted")).to_be_visible()
    assert Trajectory.objects.count() == 9  # the worker deletes


def test_without_a_script_the_filter_is_text(
    open_page: Callable[..., Page], live_server: Any, tools: Any, desk: Project
) -> None:
    page = open_page(java_script_enabled=False)
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/bulk/new/")
    page.get_by_label("Filter").fill("agnet=fox")
    page.watched.expect(400)  # type: ignore[attr-defined]
    page.get_by_role("button", name="Estimate").click()
    expect(page.get_by_label("Filter")).to_have_value("agnet=fox")
    assert not BulkJob.objects.exists()
    page.goto(f"{live_server.url}/p/desk/datasets/trajectories/export/")
    page.get_by_label("Trajectories").fill("agent=owl")
    page.get_by_role("button", name="Choose these").click()
    expect(page.get_by_text("3 trajectories")).to_be_visible()
