"""Every kind of feedback by keyboard alone, as a plain form, and several on one page."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.annotation import services
from apps.annotation.models import (
    Annotation,
    Assignment,
    Campaign,
    CategoryChoice,
    CriterionScore,
    Preference,
    Ranking,
    Rating,
    StepLabelSet,
)
from apps.rubrics.services import CriterionDraft, save_rubric
from apps.trajectories.models import Trajectory
from tests.browser.desk import add_item

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def campaign(project: Project, name: str, *kinds: str, **fields: Any) -> Campaign:
    return services.create_campaign(project=project, name=name, feedback_types=kinds, **fields)


def rubric(project: Project) -> Any:
    polite = CriterionDraft(
        name="polite", definition="Stays courteous.", good_example="I am sorry.", bad_example="As I said."
    )
    return save_rubric(
        project=project,
        name="Support",
        criteria=[polite, CriterionDraft(name="correct", scale_low=0, scale_high=3)],
    )


@pytest.fixture
def at_work(page: Page, live_server: Any, tools: Any, annotator: User) -> Callable[[Campaign], Page]:
    def begin(campaign: Campaign) -> Page:
        tools.login(page, live_server, annotator)
        page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/")
        page.wait_for_load_state()
        return page

    return begin


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_scores_by_a_rubric(at_work: Any, tools: Any, project: Project) -> None:
    made = campaign(project, "Scores", "rubric", rubric=rubric(project))
    add_item(made, "refund-1", "Here is your refund.")
    page = at_work(made)
    expect(page.locator(".work-question.is-asked")).to_contain_text("polite")
    tools.shoot(page, "work-rubric")
    press(page, "4")
    expect(page.locator(".work-question.is-asked")).to_contain_text("correct")
    page.watched.expect(400)  # type: ignore[attr-defined]
    press(page, "Enter")
    expect(page.get_by_text("“correct” has no score; choose ? if you cannot tell.")).to_be_visible()
    press(page, "x", "ArrowUp", "2", "Enter")
    expect(page.get_by_text("All done")).to_be_visible()
    assert [(row.criterion.name, row.value) for row in CriterionScore.objects.all()] == [("polite", 2)]


def test_a_rating_is_one_key(at_work: Any, tools: Any, project: Project) -> None:
    made = campaign(project, "Accept", "rating")
    for number in range(3):
        add_item(made, f"refund-{number}", "Here is your refund.")
    page = at_work(made)
    tools.shoot(page, "work-rating")
    for number, key in enumerate("ara"):
        expect(page.get_by_text(f"{number} done")).to_be_visible()
        press(page, key, "Enter")
    expect(page.get_by_text("All done")).to_be_visible()
    assert sorted(Rating.objects.values_list("accept", flat=True)) == [False, True, True]


def test_a_ranking_by_keys_and_by_dragging(at_work: Any, tools: Any, project: Project) -> None:
    made = campaign(project, "Order", "ranking")
    add_item(made, "refund-1", "Refunded.", "No refund.", "What refund?", "Maybe later.")
    page = at_work(made)
    press(page, "2", "1", "3", "3")
    tools.shoot(page, "work-ranking")
    chip, bin_ = page.locator(".work-chip", has_text="D"), page.locator(".work-bin[data-rank='1']")
    chip.hover()
    page.mouse.down()
    bin_.hover(force=True)
    page.mouse.up()
    expect(page.locator("[name=rank-fourth][value='1']")).to_be_checked()
    press(page, "Enter")
    expect(page.get_by_text("All done")).to_be_visible()
    assert sorted(Ranking.objects.get().ranks) == [1, 1, 2, 3]


def test_step_labels_with_a_correction_far_down(at_work: Any, tools: Any, project: Project) -> None:
    made = campaign(project, "Steps", "step", "comment")
    add_item(made, "refund-1", "Looking for it.", length=40)
    page = at_work(made)
    press(page, "j", "g", "m", "b", "w")
    page.keyboard.type("Ask for the number first.")
    press(page, "Escape")
    tools.shoot(page, "work-steps")
    for marked in range(4, 31):  # beyond what the page first had
        press(page, "g")
        expect(page.get_by_text(f"{marked} of 41 steps marked")).to_be_visible()
    press(page, "g", "k", "g")  # the last one again, which takes it away
    expect(page.get_by_text("saved")).to_be_visible()
    marked = page.locator(".work-marked-count").inner_text()
    page.reload()  # what was marked below the first rows is there though its steps are not
    expect(page.get_by_text("Your draft has been restored")).to_be_visible()
    expect(page.get_by_text(marked)).to_be_visible()
    press(page, "Enter")
    expect(page.get_by_text("All done")).to_be_visible()
    said = StepLabelSet.objects.get()
    assert (said.labels["0"], said.labels["1"], said.labels["2"]) == ("good", "neutral", "bad")
    assert said.corrections == {"2": "Ask for the number first."}
    assert f"{len(said.labels)} of 41 steps marked" == marked and len(said.labels) == 30


TOOLS = [
    {"name": "find_order", "description": "Finds an order.", "input_schema": {
        "type": "object", "required": ["order"],
        "properties": {"order": {"type": "string", "description": "its number"}, "full": {"type": "boolean"}}}},
    {"name": "refund", "description": "Pays money back.", "input_schema": {
        "type": "object", "required": ["order", "amount"],
        "properties": {"order": {"type": "string"}, "amount": {"type": "number", "minimum": 0}}}},
]  # fmt: skip


def defines_tools(name: str) -> None:
    Trajectory.objects.filter(task__external_id=name).update(metadata={"tools": TOOLS})


def test_a_tool_call_as_what_it_should_have_done(at_work: Any, tools: Any, project: Project) -> None:
    made = campaign(project, "Steps", "step")
    add_item(made, "refund-1", "Looking for it.", length=2)
    defines_tools("refund-1")
    page = at_work(made)
    press(page, "j", "g", "b", "w")
    page.keyboard.type("I pay it back.")
    press(page, "Tab")
    page.keyboard.type("ref")  # the tool, by its first letters
    expect(page.locator(".correction-call-parameters").nth(1)).to_contain_text("amount number, required")
    press(page, "Tab")
    arguments = page.locator("[name=step-left-1-arguments]")
    expect(arguments).to_be_focused()
    expect(arguments).to_have_value('{\n "order": "",\n "amount": 0\n}')
    press(page, "Control+a")
    page.keyboard.type('{"order": "7", "amount": -1}')
    page.watched.expect(400)  # type: ignore[attr-defined]
    press(page, "Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("amount: expected at least 0, got -1")
    expect(arguments).to_be_focused()
    expect(arguments).to_have_attribute("aria-invalid", "true")
    tools.shoot(page, "work-correction")
    press(page, "Control+a")
    page.keyboard.type('{"order": "7", "amount": 5}')
    expect(arguments).not_to_have_attribute("aria-invalid", "true")
    press(page, "Escape")
    expect(page.get_by_text("saved")).to_be_visible()
    page.reload()
    expect(arguments).to_have_value('{"order": "7", "amount": 5}')
    expect(page.locator(".correction-call-parameters").nth(1)).to_contain_text("Pays money back.")
    press(page, "Enter")
    expect(page.get_by_text("All done")).to_be_visible()
    call = {"name": "refund", "arguments": {"order": "7", "amount": 5}}
    assert StepLabelSet.objects.get().corrections == {"1": {"text": "I pay it back.", "tool_calls": [call]}}


def test_a_call_that_is_half_written_comes_back_unfolded(at_work: Any, tools: Any, project: Project) -> None:
    """From the draft in the browser, where sending it fails."""
    made = campaign(project, "Steps", "step")
    add_item(made, "refund-1", "Looking for it.", length=2)
    defines_tools("refund-1")
    page = at_work(made)
    page.route("**/draft/", lambda route: route.abort())
    page.watched.wrong_is_expected = True  # type: ignore[attr-defined]
    press(page, "j", "j", "b", "w", "Tab")
    page.keyboard.type("ref")
    arguments = page.locator("[name=step-left-1-arguments]")
    arguments.fill('{"order": ')
    page.reload()
    expect(arguments).to_be_visible()
    expect(arguments).to_have_value('{"order": ')
    expect(page.locator("[name=step-left-1-tool]")).to_have_value("refund")
    expect(page.locator(".correction-call-parameters").nth(1)).to_contain_text("Pays money back.")


def test_what_it_should_have_done_at_the_first_error(at_work: Any, tools: Any, project: Project) -> None:
    made = campaign(project, "First error", "step", options={"step": {"mark": "first_error"}})
    add_item(made, "refund-1", "Looking for it.", length=2)
    page = at_work(made)
    expect(page.get_by_text("what it should have done").and_(page.locator("summary"))).to_have_count(3)
    for summary in page.locator("summary", has_text="what it should have done").all():
        expect(summary).not_to_be_visible()
    press(page, "j", "j", "e", "w")
    page.keyboard.type("Ask for the number.")
    press(page, "Escape")
    tools.shoot(page, "work-first-error-correction")
    press(page, "Enter")
    expect(page.get_by_text("All done")).to_be_visible()
    said = StepLabelSet.objects.get()
    assert (said.first_error, said.corrections) == (1, {"1": "Ask for the number."})


def test_the_first_error_of_two(at_work: Any, tools: Any, project: Project) -> None:
    made = campaign(project, "First error", "pairwise", "step", options={"step": {"mark": "first_error"}})
    add_item(made, "refund-1", "Refunded.", "No refund.")
    page = at_work(made)
    press(page, "1", "j", "j", "e")
    tools.shoot(page, "work-first-error")
    page.watched.expect(400)  # type: ignore[attr-defined]
    press(page, "Enter")
    expect(page.get_by_text("Mark the first error in")).to_be_visible()
    asked = page.locator(".work-question.is-asked").inner_text()
    press(page, "0", "Enter")
    expect(page.get_by_text("All done")).to_be_visible()
    assert "First error in" in asked
    assert sorted(str(record) for record in StepLabelSet.objects.values_list("first_error", flat=True)) in (
        ["1", "None"],
        ["2", "None"],
    )
    assert Preference.objects.count() == 1


def test_several_kinds_on_one_page_each_key_where_it_is_asked(
    at_work: Any, tools: Any, project: Project
) -> None:
    options = {"pairwise": {"by": "both"}, "rating": {"scale": "5"}}
    made = campaign(
        project, "All", "pairwise", "rubric", "rating", "comment", rubric=rubric(project), options=options
    )
    add_item(made, "refund-1", "Refunded.", "No refund.")
    page = at_work(made)
    tools.shoot(page, "work-everything")
    press(page, "1", "5", "0")  # overall, polite, correct
    press(page, "4", "5", "3")  # A: rating, polite, correct
    press(page, "2", "1", "0", "Enter")  # B
    expect(page.get_by_text("All done")).to_be_visible()
    swapped = Assignment.objects.get().swapped
    overall = Preference.objects.get(criterion=None)
    assert (overall.choice, overall.strength) == ("b" if swapped else "a", 3)
    assert [row.choice for row in Preference.objects.exclude(criterion=None).order_by("pk")] == [
        "a" if swapped else "b",
        "tie",
    ]
    assert sorted(Rating.objects.values_list("rating", flat=True)) == [2, 4]
    assert sorted(CriterionScore.objects.values_list("value", flat=True)) == [0, 1, 3, 5]


def test_everything_as_a_plain_form(
    open_page: Callable[..., Page], live_server: Any, tools: Any, annotator: User, project: Project
) -> None:
    made = campaign(project, "Plain", "rating", "rubric", "step", rubric=rubric(project))
    add_item(made, "refund-1", "Looking for it.", length=30)
    page = open_page(java_script_enabled=False)
    tools.login(page, live_server, annotator)
    page.goto(f"{live_server.url}/p/desk/campaigns/{made.pk}/work/")
    page.get_by_role("group", name="Agent step 1", exact=True).get_by_label("bad").check()
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_role("group", name="Agent step 1", exact=True).get_by_label("bad")).to_be_checked()
    page.get_by_role("group", name="Agent step 29", exact=True).get_by_label("good").check()
    page.get_by_label("Accept").check()
    page.get_by_role("group", name="polite").get_by_label("3 of 5").check()
    page.watched.expect(400)  # type: ignore[attr-defined]
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("“correct” has no score; choose ? if you cannot tell.")).to_be_visible()
    page.get_by_role("group", name="correct").get_by_label("cannot tell").check()
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("All done")).to_be_visible()
    assert StepLabelSet.objects.get().labels == {"1": "bad", "29": "good"}
    assert CriterionScore.objects.get().value == 3 and Rating.objects.get().accept is True
    assert Annotation.objects.count() == 1
    page.get_by_role("link", name="view my annotations").click()
    expect(page.get_by_text("1 good, 1 bad")).to_be_visible()


def test_a_ranking_and_a_comparison_by_criterion_as_plain_forms(
    open_page: Callable[..., Page], live_server: Any, tools: Any, annotator: User, project: Project
) -> None:
    page = open_page(java_script_enabled=False)
    tools.login(page, live_server, annotator)
    order = campaign(project, "Order", "ranking")
    add_item(order, "refund-1", "Refunded.", "No refund.", "What refund?")
    page.goto(f"{live_server.url}/p/desk/campaigns/{order.pk}/work/")
    for side, rank in (("left", "2"), ("right", "1"), ("third", "2")):
        page.locator(f"[name='rank-{side}'][value='{rank}']").check()
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("All done")).to_be_visible()
    assert sorted(Ranking.objects.get().ranks) == [1, 2, 2]

    by_criterion = campaign(
        project, "Why", "pairwise", rubric=rubric(project), options={"pairwise": {"by": "criteria"}}
    )
    add_item(by_criterion, "refund-2", "Refunded.", "No refund.")
    page.goto(f"{live_server.url}/p/desk/campaigns/{by_criterion.pk}/work/")
    polite, correct = (page.get_by_role("group", name=name) for name in ("polite", "correct"))
    polite.get_by_label("A is better").check()
    page.watched.expect(400)  # type: ignore[attr-defined]
    page.get_by_role("button", name="Submit").click()
    expect(polite.get_by_label("A is better")).to_be_checked()
    correct.get_by_label("tie").check()
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("All done")).to_be_visible()
    swapped = Assignment.objects.get(item__campaign=by_criterion).swapped
    said = {row.criterion.name: row.choice for row in Preference.objects.all()}
    assert said == {"polite": "b" if swapped else "a", "correct": "tie"}


def taxonomy(project: Project) -> Any:
    def categories(*names: str) -> list[dict[str, str]]:
        return [{"name": name, "definition": f"It is a case of {name}."} for name in names]

    return save_rubric(
        project=project,
        name="Failures",
        criteria=[
            CriterionDraft(name="topic", answer_type="category", categories=categories("refund", "shipping")),
            CriterionDraft(
                name="failure",
                answer_type="categories",
                categories=categories("wrong tool", "gave up", "loop"),
            ),
            CriterionDraft(
                name="errors", answer_type="step_tags", categories=categories("typo", "false claim")
            ),
        ],
    )


def test_categories_and_tags_of_steps(at_work: Any, tools: Any, project: Project) -> None:
    made = campaign(project, "Failures", "category", "step", rubric=taxonomy(project))
    add_item(made, "refund-1", "Here is your refund.")
    add_item(made, "refund-2", "No.")
    page = at_work(made)
    press(page, "1")
    expect(page.get_by_role("group", name="topic").get_by_label("refund")).to_be_checked()
    failure = page.get_by_role("group", name="failure")
    press(page, "0", "1", "3")
    expect(failure.get_by_label("none of these")).not_to_be_checked()
    press(page, "j")
    page.get_by_label("Agent step 0: false claim").check()
    press(page, "b")
    tools.shoot(page, "categories-and-tags")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("1 done")).to_be_visible()
    topic, failed = CategoryChoice.objects.order_by("criterion__name").reverse()
    assert (topic.categories, failed.categories) == (["refund"], ["wrong tool", "loop"])
    (labels,) = StepLabelSet.objects.all()
    assert (labels.labels, labels.tags) == ({"0": "bad"}, {"0": ["false claim"]})
    # An edit shows what was answered.
    page.goto(page.url.split("/p/")[0] + f"/p/desk/campaigns/items/{topic.annotation.assignment_id}/")
    expect(page.get_by_label("Agent step 0: false claim")).to_be_checked()
    expect(page.get_by_role("group", name="failure").get_by_label("loop")).to_be_checked()
