"""Ratings as a grid, suggestions by one key, and drafts, submitted and skipped items in My work."""

from typing import Any

import pytest
from django.db import transaction
from playwright.sync_api import Page, Route, expect

from apps.accounts.models import Project, User
from apps.annotation import services
from apps.annotation.models import Annotation, Annotator, Campaign, Preference, Rating
from apps.annotation.services.judge_annotations import save_judge_annotation
from tests.browser.desk import add_item

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_fourteen_ratings_take_one_key_each(
    page: Page, live_server: Any, tools: Any, annotator: User, project: Project
) -> None:
    made = services.create_campaign(project=project, name="Accept", feedback_types=["rating"])
    for number in range(14):
        add_item(made, f"refund-{number}", f"Refund {number} is on its way.")
    tools.login(page, live_server, annotator)
    page.goto(f"{live_server.url}/p/desk/campaigns/{made.pk}/work/")
    page.get_by_role("link", name="Rate as a grid").click()
    expect(page.get_by_role("article").filter(has=page.locator("form"))).to_have_count(12)
    page.wait_for_load_state()
    tools.shoot(page, "work-grid")
    for key in "aaraaaaaaaaa":
        page.keyboard.press(key)
    expect(page.get_by_text("Saved:")).to_have_count(12)
    page.keyboard.press("Enter")
    expect(page.get_by_text("12 done · 2 left")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("j")  # the second first
    page.keyboard.press("r")
    expect(page.get_by_text("Saved:")).to_have_count(1)
    page.keyboard.press("a")
    expect(page.get_by_text("Saved:")).to_have_count(2)
    assert sorted(Rating.objects.values_list("accept", flat=True)) == [False] * 2 + [True] * 12
    page.get_by_role("link", name="Edit", exact=True).first.click()
    expect(page.get_by_text("You have annotated this item.")).to_be_visible()


def test_a_suggestion_is_accepted_with_one_key_and_marked(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign, monkeypatch: Any
) -> None:
    monkeypatch.setattr("apps.annotation.services.suggestions._is_drawn", lambda assignment, percent: True)
    for item in campaign.items.all():
        with transaction.atomic():
            save_judge_annotation(
                project=campaign.project,
                name="strict judge",
                item=item.pk,
                rows=[Preference(choice="a", strength=2)],
            )
    source = Annotator.objects.get(name="strict judge")
    services.update_campaign(campaign=campaign, suggester=source)
    tools.login(page, live_server, annotator)
    page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/")
    page.wait_for_load_state()
    expect(page.get_by_text("by strict judge")).to_be_visible()
    expect(page.locator("[name=choice]:checked")).to_have_count(0)
    tools.shoot(page, "work-suggestion")
    for number, keys in enumerate((["v"], ["v", "x"], ["0"])):
        expect(page.get_by_text(f"{number} done")).to_be_visible()
        for key in [*keys, "Enter"]:
            page.keyboard.press(key)
    expect(page.get_by_text("3 done")).to_be_visible()
    mine = Annotation.objects.filter(origin="person").order_by("pk")
    assert list(mine.values_list("suggestion", flat=True)) == ["accepted", "changed", "shown"]
    accepted = Preference.objects.get(annotation=mine[0])
    assert (accepted.choice, accepted.strength) == ("a", 2)  # whichever side it was shown on
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/quality/")
    header = page.get_by_role("rowheader", name="Accepted", exact=True)
    expect(page.get_by_role("row").filter(has=header)).to_contain_text("100 %")
    tools.shoot(page, "quality-suggestions")


def test_my_work_has_drafts_submitted_and_skipped_items(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    tools.login(page, live_server, annotator)
    page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/")
    page.wait_for_load_state()
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 done")).to_be_visible()
    page.keyboard.press("s")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Skipped.")).to_be_visible()
    page.keyboard.press("3")
    expect(page.locator("#saved")).to_contain_text("saved")
    page.get_by_role("link", name=campaign.name).last.click()
    expect(page.get_by_role("link", name="Submitted 1")).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("link", name="Edit", exact=True)).to_have_count(1)
    page.get_by_role("link", name="Skipped 1").click()
    expect(page.get_by_text("Skipped: I do not know enough about this topic")).to_be_visible()
    page.get_by_role("link", name="Drafts 1").click()
    tools.shoot(page, "my-work-drafts")
    page.get_by_role("link", name="Continue", exact=True).last.click()
    expect(page.get_by_role("radio", name="A is slightly better")).to_be_checked()


def test_an_answer_before_the_script_is_there_has_a_draft(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    tools.login(page, live_server, annotator)
    late: list[Route] = []
    page.route("**/work-draft*.js", lambda route: late.append(route))
    page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/", wait_until="commit")
    page.get_by_role("radio", name="A is slightly better").check()
    expect(page.locator("#saved")).to_be_empty()
    late[0].continue_()
    expect(page.locator("#saved")).to_contain_text("saved")
    page.unroute_all()
    page.reload()
    expect(page.get_by_role("radio", name="A is slightly better")).to_be_checked()
