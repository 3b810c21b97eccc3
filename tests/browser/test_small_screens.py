"""Lists and comparisons on a narrow screen: cards with the title on the left, and cards that name their side."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.annotation import services
from tests.bulk.stored import store_trajectories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
NARROW = {"width": 480, "height": 900}


@pytest.fixture
def narrow(page: Page, live_server: Any, tools: Any, project: Project) -> Page:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    return page


def test_titles_of_cards_are_on_the_left(narrow: Page, live_server: Any, project: Project) -> None:
    store_trajectories(project, 2)
    services.create_campaign(project=project, name="Pairs", feedback_types=["rating"])
    for path in ("campaigns", "trajectories", "trajectories/agents"):
        narrow.goto(f"{live_server.url}/p/desk/{path}/")
        title = narrow.locator("td.table-title").first
        expect(title).to_have_css("display", "block")
        row, link = title.locator("..").bounding_box(), title.locator("a").first.bounding_box()
        assert row and link and link["x"] - row["x"] < 70, path
    narrow.goto(f"{live_server.url}/p/desk/trajectories/")
    ink = narrow.evaluate("getComputedStyle(document.body).getPropertyValue('--ts-accent').trim()")
    narrow.set_viewport_size({"width": 1200, "height": 900})
    narrow.get_by_label("Select all on this page").check()
    narrow.evaluate(f"document.body.style.outlineColor = '{ink}'")
    colour = narrow.evaluate("getComputedStyle(document.body).outlineColor")
    expect(narrow.get_by_label("Select all on this page")).to_have_css("background-color", colour)
    narrow.keyboard.press("Escape")
    narrow.locator("[name=selected]").first.uncheck()
    expect(narrow.get_by_label("Select all on this page")).to_have_css("background-color", colour)


def test_stacked_steps_of_a_comparison_name_their_side(
    narrow: Page, live_server: Any, project: Project
) -> None:
    first, second = store_trajectories(project, 2)
    narrow.goto(f"{live_server.url}/p/desk/trajectories/{first}/compare/{second}/")
    expect(narrow.locator(".work-letter")).to_have_text(["A", "B"])
    expect(narrow.locator(".work-letter").first).to_be_visible()
    cells = narrow.locator(".work-cell[data-letter]:has(.step)")
    shown = cells.evaluate_all("all => all.map((one) => getComputedStyle(one, '::before').content)")
    assert shown and set(shown) == {'"A"', '"B"'}
