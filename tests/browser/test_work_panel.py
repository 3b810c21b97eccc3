"""The panel of questions: where it is, what it shows, and how many keys it takes."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.annotation import services
from apps.annotation.models import Annotation, Campaign, Preference
from apps.rubrics.services import CriterionDraft, save_rubric
from tests.browser.desk import add_item, add_pair

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

COUNT_KEYS = "() => { window.keys = 0; addEventListener('keydown', () => { window.keys += 1; }, true); }"
HEIGHT = 900


def begin(page: Page, live_server: Any, tools: Any, user: User, campaign: Campaign) -> None:
    tools.login(page, live_server, user)
    page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/")
    page.wait_for_load_state()


def test_fifty_comparisons_take_two_keys_each(
    page: Page, live_server: Any, tools: Any, annotator: User, project: Project
) -> None:
    made = services.create_campaign(project=project, name="Fifty", feedback_types=["pairwise"])
    for number in range(50):
        add_pair(made, f"refund-{number}", "Here is your refund.", f"Order {number} cannot be refunded.")
    begin(page, live_server, tools, annotator, made)
    page.evaluate(COUNT_KEYS)
    for number in range(50):
        expect(page.get_by_text(f"{number} done")).to_be_visible()
        page.keyboard.press("123456"[number % 6])
        page.keyboard.press("Enter")
    expect(page.get_by_text("All done")).to_be_visible()
    assert Preference.objects.count() == 50
    assert page.evaluate("window.keys") == 100


def test_the_panel_is_next_to_the_trajectories_and_a_sheet_when_narrow(
    page: Page, live_server: Any, tools: Any, annotator: User, project: Project
) -> None:
    polite = CriterionDraft(name="polite", definition="Stays courteous.", good_example="I am sorry.")
    rubric = save_rubric(project=project, name="Support", criteria=[polite, CriterionDraft(name="correct")])
    made = services.create_campaign(
        project=project,
        name="All",
        feedback_types=["pairwise", "rubric", "rating", "step", "comment"],
        rubric=rubric,
        guidelines="Prefer **short** answers.",
        options={"pairwise": {"by": "both"}},
    )
    for number in range(2):
        add_item(made, f"refund-{number}", "Refunded.", "No refund.", length=30)
    begin(page, live_server, tools, annotator, made)
    expect(page.locator("#guidelines strong")).to_have_text("short")  # open on the first item
    titles = page.locator(".work-group-title, .work-question-title").all_inner_texts()
    assert [title.split("\n")[0] for title in titles] == [
        "Overall", "polite", "correct",
        "A", "Rating", "polite", "correct",
        "B", "Rating", "polite", "correct",
        "Label each agent step",
    ]  # fmt: skip
    expect(page.locator(".work-definition").first).to_have_text("Stays courteous.")
    panel = page.locator("#decision")
    stage, box = page.locator(".work-stage").bounding_box(), panel.bounding_box()
    assert stage and box and stage["x"] + stage["width"] <= box["x"] + 1
    page.keyboard.press("PageDown")  # the keys that scroll go to the trajectories
    expect(page.locator("#row-0")).not_to_be_in_viewport()
    expect(page.get_by_role("button", name="Submit")).to_be_in_viewport()
    tools.shoot(page, "work-panel")

    page.set_viewport_size({"width": 480, "height": HEIGHT})
    box = panel.bounding_box()
    assert box and box["height"] <= HEIGHT / 3 and box["y"] + box["height"] <= HEIGHT + 1
    questions = panel.locator(".work-question:visible")
    expect(questions).to_have_count(1)  # one question at a time
    expect(questions).to_have_accessible_name("Overall")
    panel.get_by_role("radio", name="A is better", exact=True).check(force=True)
    expect(questions).to_have_accessible_name("polite")
    expect(page.get_by_role("button", name="Submit")).to_be_in_viewport()
    page.get_by_role("button", name="All questions").click()
    expect(questions).to_have_count(9)
    page.get_by_role("button", name="Fold").click()
    expect(questions).to_have_count(1)


def test_a_mistake_is_shown_at_its_question_until_it_is_answered(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    begin(page, live_server, tools, annotator, campaign)
    page.watched.expect(400)  # type: ignore[attr-defined]
    page.keyboard.press("Enter")
    error = page.get_by_text("Choose an answer first")
    expect(error).to_be_visible()
    expect(page.locator("#toasts")).to_be_empty()
    after = error.evaluate("one => one.nextElementSibling.querySelector('legend').textContent")
    assert after == "Which trajectory is better?"
    page.keyboard.press("2")
    expect(error).to_be_hidden()


def test_saved_and_undone(
    page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign
) -> None:
    begin(page, live_server, tools, annotator, campaign)
    expect(page.get_by_text("Item 1 of 6")).to_be_visible()
    expect(page.locator("#guidelines")).to_have_attribute("open", "")
    for key in "26":
        page.keyboard.press(key)
        page.keyboard.press("Enter")
        expect(page.locator("#toasts .toast-line")).to_have_count(1)
        expect(page.locator("#toasts")).to_contain_text("Saved.")
    expect(page.get_by_text("Item 3 of 6")).to_be_visible()
    expect(page.locator("#guidelines")).not_to_have_attribute("open", "")
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Item 2 of 6")).to_be_visible()
    expect(page.get_by_role("radio", name="B is much better")).to_be_checked()
    assert Annotation.objects.filter(is_surplus=True, withdrawn_at__isnull=False).count() == 1
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Item 3 of 6")).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_role("radio", name="A is much better")).to_be_checked()
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Item 3 of 6")).to_be_visible()
    assert sorted(Annotation.objects.values_list("revision", flat=True)) == [1, 1, 2, 3]
    counted = Preference.objects.filter(annotation__is_surplus=False).order_by("annotation")
    assert [preference.strength for preference in counted] == [2, 2]
