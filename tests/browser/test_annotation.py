"""Annotation as a person does it: by keyboard alone, with a closed page in between, and without JavaScript."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.annotation import services
from apps.annotation.models import Annotation, Assignment, Campaign, Comment, Preference
from apps.trajectories.models import Task, Trajectory
from tests.browser.desk import add_pair

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)><a href='javascript:alert(2)'>here</a>"
CHOICES = [("1", "left", 3), ("2", "left", 2), ("4", "right", 1), ("0", "tie", 1), ("x", "both_bad", 1)]


def stored(swapped: bool, side: str) -> str:
    return {("left", False): "a", ("right", False): "b", ("left", True): "b", ("right", True): "a"}.get(
        (side, swapped), side
    )


def test_five_pairs_by_keyboard_alone(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    tools.login(page, live_server, annotator)
    expect(page.get_by_role("link", name="Start")).to_be_visible()
    page.wait_for_load_state()
    tools.shoot(page, "annotator-home")
    page.keyboard.press("Enter")
    expect(page.get_by_text("2 shared steps")).to_be_visible()
    page.wait_for_load_state()  # keys pressed before the scripts are there do nothing
    tools.shoot(page, "work")
    for number, (key, side, strength) in enumerate(CHOICES):
        expect(page.get_by_text(f"{number} done · {6 - number} left")).to_be_visible()
        assignment = Assignment.objects.get(state="locked")
        page.keyboard.press(key)
        expect(page.locator("[name=choice]:checked")).to_have_count(1)
        if number == 0:
            page.keyboard.press("c")
            page.keyboard.type("Says why it cannot be done.")
            page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        expect(page.get_by_text(f"{number + 1} done")).to_be_visible()
        said = Preference.objects.get(annotation__assignment=assignment)
        assert (said.choice, said.strength) == (stored(assignment.swapped, side), strength)
    assert Comment.objects.get().text == "Says why it cannot be done."
    assert Annotation.objects.exclude(active_seconds=None).count() == 5

    page.keyboard.press("u")
    expect(page.get_by_text("Your draft has been restored.")).to_be_visible()
    expect(page.get_by_text("4 done · 2 left")).to_be_visible()
    expect(page.get_by_role("radio", name="Both are bad")).to_be_checked()
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    expect(page.get_by_text("5 done · 1 left")).to_be_visible()
    withdrawn, kept = Annotation.objects.filter(assignment=Annotation.objects.latest("pk").assignment)
    assert withdrawn.withdrawn_at is not None and kept.withdrawn_at is None

    page.goto(f"{live_server.url}/p/desk/")
    expect(page.get_by_text("5 done")).to_be_visible()
    page.get_by_role("link", name=campaign.name).click()
    expect(page.get_by_role("link", name="Edit", exact=True)).to_have_count(5)
    tools.shoot(page, "history")


def test_a_closed_page_loses_nothing(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    tools.login(page, live_server, annotator)
    work = f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/"
    page.goto(work)
    page.keyboard.press("5")
    page.keyboard.press("c")
    page.keyboard.type("Half a thought")
    expect(page.get_by_text(re.compile(r"saved \d+ s ago"))).to_be_visible()
    tools.shoot(page, "work-comment")
    again = page.context.new_page()
    page.close()
    again.goto(work)
    expect(again.get_by_text("Your draft has been restored.")).to_be_visible()
    expect(again.get_by_role("radio", name="B is better", exact=True)).to_be_checked()
    expect(again.get_by_role("textbox", name="Comment", exact=True)).to_have_value("Half a thought")

    again.context.set_offline(True)  # the network is gone, the words stay
    again.get_by_role("textbox", name="Comment", exact=True).fill("A whole thought")
    expect(again.get_by_text("offline: kept here")).to_be_visible()
    assert again.evaluate("Object.values(localStorage).join()").find("A whole thought") >= 0
    again.context.set_offline(False)
    expect(again.get_by_text(re.compile(r"saved \d+ s ago"))).to_be_visible()
    assert Assignment.objects.get().draft["comment-0-text"] == "A whole thought"


def test_differences_folds_quotes_and_reasons(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    campaign.items.all().delete()
    add_pair(campaign, "long", "Done.", "Not done.", length=45)
    tools.login(page, live_server, annotator)
    page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/")
    for _ in range(22):  # beyond the rows that came with the page
        page.keyboard.press("n")
    expect(page.locator(".work-row.is-current")).to_have_id(re.compile("row-2[01]"))
    page.keyboard.press("p")
    expect(page.locator(".work-row.is-current")).to_have_id(re.compile("row-(19|20)"))
    page.keyboard.press("]")
    expect(page.locator("#row-0 details").first).to_have_attribute("open", "")
    page.keyboard.press("[")
    expect(page.locator("#row-0 details").first).not_to_have_attribute("open", "")
    box = page.locator("#decision").bounding_box()
    assert box is not None and box["y"] + box["height"] <= 901  # the bar is in view wherever the page is

    text = page.locator("#row-1 [data-side=right] .step-text")
    text.scroll_into_view_if_needed()
    text.select_text()
    page.keyboard.press("c")
    expect(page.get_by_role("textbox", name="Quoted words")).to_have_value(re.compile("one"))
    expect(page.get_by_role("combobox", name="About")).to_have_value("right")
    expect(page.get_by_role("textbox", name="From step")).to_have_value("3")
    page.keyboard.press("Escape")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", name="Skip this item")).to_be_visible()
    tools.shoot(page, "work-skip")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Only an item that you skipped is left")).to_be_visible()
    assert Assignment.objects.get().reason == "I see no difference"
    tools.shoot(page, "work-none")


def test_five_pairs_and_a_comment_without_javascript(
    open_page: Callable[..., Page], live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    page = open_page(java_script_enabled=False)
    tools.login(page, live_server, annotator)
    page.goto(f"{live_server.url}/p/desk/campaigns/")
    page.get_by_role("link", name="Start").click()
    for number, name in enumerate(
        ["A is much better", "A tie", "Both are bad", "B is better", "A is slightly better"]
    ):
        page.get_by_role("radio", name=name, exact=True).check(force=True)
        if number == 2:
            page.get_by_text("Comments").click()
            page.get_by_role("textbox", name="Comment", exact=True).fill("Both forget the refund.")
            page.get_by_role("combobox", name="About").select_option("right")
        page.get_by_role("button", name="Submit").click()
        expect(page.get_by_text(f"{number + 1} done")).to_be_visible()
    assert Annotation.objects.count() == 5
    comment = Comment.objects.get()
    item = comment.annotation.assignment.item
    shown_right = 0 if comment.annotation.assignment.swapped else 1
    assert item.places.get(position=shown_right).trajectory_id == comment.trajectory_id
    tools.shoot(page, "work-no-script")


def test_what_agents_wrote_never_runs(
    page: Page, live_server: Any, tools: Any, annotator: User, project: Project
) -> None:
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    campaign = services.create_campaign(
        project=project,
        name=HOSTILE[:180],
        feedback_types=["pairwise", "comment"],
        guidelines=HOSTILE,
        blind_agents=False,
    )
    add_pair(campaign, HOSTILE, f"well {HOSTILE}", f"badly {HOSTILE}")
    Trajectory.objects.update(agent_name=HOSTILE)
    Task.objects.update(reference=HOSTILE)
    tools.login(page, live_server, annotator)
    expect(page.get_by_text("<script>").first).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("Enter")
    expect(page.locator("#row-0").get_by_text("<script>").first).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("]")
    page.keyboard.press("6")
    page.keyboard.press("c")
    page.keyboard.type(HOSTILE)
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="All done")).to_be_visible()
    page.get_by_role("link", name="view my annotations").click()
    expect(page.get_by_text("<script>").first).to_be_visible()
    page.get_by_role("link", name="Edit", exact=True).click()
    expect(page.get_by_role("textbox", name="Comment", exact=True)).to_have_value(HOSTILE)
    assert page.locator("main script, main img, main a[href^=javascript]").count() == 0


def test_a_researcher_makes_and_follows_a_campaign(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    researcher = User.objects.get(email="rose@example.org")
    tools.login(page, live_server, researcher)
    page.goto(f"{live_server.url}/p/desk/campaigns/")
    tools.shoot(page, "campaign-list")
    page.get_by_role("link", name="New campaign").click()
    expect(page.get_by_text("6 items")).to_be_visible()
    page.get_by_label("Trajectories differ in").select_option("agent")
    expect(page.get_by_text("No items.")).to_be_visible()
    page.get_by_label("Trajectories differ in").select_option("any")
    expect(page.get_by_text("6 items")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("By anything")
    tools.shoot(page, "campaign-create")
    page.get_by_role("button", name="Create campaign").click()
    expect(page.get_by_role("heading", name="By anything")).to_be_visible()
    expect(page.get_by_text("By anything has 6 new items")).to_be_visible()
    tools.shoot(page, "campaign-detail")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("link", name="Edit", exact=True).click()
    tools.shoot(page, "campaign-update")
