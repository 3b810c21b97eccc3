"""The command palette by keyboard, and the search page without a script."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import User
from apps.annotation.models import Campaign
from apps.trajectories.services import index_trajectories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_palette_goes_to_pages_and_objects_by_keyboard(
    page: Page, live_server: Any, tools: Any, campaign: Campaign
) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    palette = page.get_by_role("dialog", name="Search and commands")
    page.keyboard.press("Control+k")
    expect(palette).to_be_visible()
    box = palette.get_by_role("combobox")
    expect(box).to_be_focused()
    expect(palette.get_by_role("option", selected=True)).to_have_text("Home")
    tools.shoot(page, "palette")
    page.keyboard.type("endp")
    expect(palette.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url("**/p/desk/endpoints/")

    page.keyboard.press("Control+k")
    page.keyboard.type("create ")
    expect(palette.get_by_role("option").first).to_contain_text("Create campaign")
    page.keyboard.press("ArrowDown")
    second = palette.get_by_role("option").nth(1)
    expect(second).to_have_attribute("aria-selected", "true")
    assert box.get_attribute("aria-activedescendant") == second.get_attribute("id")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")  # from the first to the last
    expect(palette.get_by_role("option").last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()

    page.get_by_role("link", name="Search and commands").click()
    page.keyboard.type("which run")
    option = palette.get_by_role("option", name="Which run is better")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/campaigns/{campaign.pk}/")

    page.keyboard.press("Meta+k")
    page.keyboard.type("nothing is called so")
    expect(palette.get_by_text("Nothing found for")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=nothing+is+called+so")


def test_search_without_a_script(
    open_page: Callable[..., Page], live_server: Any, tools: Any, campaign: Campaign
) -> None:
    plain = open_page(java_script_enabled=False)
    tools.login(plain, live_server, User.objects.get(email="rose@example.org"))
    plain.get_by_role("link", name="Search and commands").click()
    plain.get_by_role("searchbox").fill("which run")
    plain.get_by_role("button", name="Search").click()
    plain.get_by_role("link", name="Which run is better").click()
    expect(plain.get_by_role("heading", level=1)).to_have_text("Which run is better")


def test_the_search_page(page: Page, live_server: Any, tools: Any, campaign: Campaign) -> None:
    index_trajectories(campaign.project)
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/search/?q=refund")
    expect(page.get_by_role("region", name="Trajectories")).to_be_visible()
    tools.shoot(page, "search")
    page.goto(f"{live_server.url}/p/desk/search/?q=zebra")
    tools.shoot(page, "search-nothing")
    page.goto(f"{live_server.url}/?all")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option", name="Support desk")).to_be_visible()
