"""A table by keyboard: rows are walked, selected and opened; what is selected is counted, also across pages."""

import io
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.trajectories.services import import_trajectories
from tests.trajectories.conftest import lines, record

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_rows_are_walked_selected_and_opened(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    stream = io.BytesIO(lines(*(record(number) for number in range(60))))
    import_trajectories(project=project, stream=stream, format="openai", by=None)
    address = f"{live_server.url}/p/{project.slug}/trajectories/"
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(address)
    selection = page.locator(".table-selection")
    expect(page.locator(".table-total")).to_contain_text("60 trajectories")
    expect(selection).to_be_hidden()

    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(selection).to_contain_text("1 selected")
    page.keyboard.press("k")
    page.keyboard.press("x")
    expect(selection).to_contain_text("2 selected")
    expect(page.get_by_label("Select all 60")).to_be_hidden()
    tools.shoot(page, "table-selection")

    page.get_by_label("Select all on this page").check()
    expect(selection).to_contain_text("50 selected")
    page.get_by_label("Select all 60").check()
    expect(selection).to_contain_text("All that match are selected")
    page.keyboard.press("x")
    expect(selection).to_contain_text("49 selected")
    page.get_by_role("button", name="Clear").click()
    expect(selection).to_be_hidden()

    page.get_by_role("link", name="Steps").click()
    expect(page.get_by_role("columnheader", name="Steps")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".table-range")).to_have_text("51–60 of 60")
    page.go_back()
    expect(page.locator(".table-range")).to_have_text("1–50 of 60")

    page.locator(".table-columns > summary").click()
    page.get_by_role("checkbox", name="Format").check()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("columnheader", name="Format")).to_be_visible()

    page.keyboard.press("j")
    name = page.locator("[data-row].is-current .table-title a").get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{name}")
