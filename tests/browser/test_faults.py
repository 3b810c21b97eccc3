"""What can go wrong around an annotator, none of which may cost her a word."""

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from apps.accounts import services as accounts
from apps.accounts.models import Project, Role, User, UserSession
from apps.annotation import services
from apps.annotation.models import (
    Annotation,
    Assignment,
    Campaign,
    Comment,
    CriterionScore,
    Preference,
    Ranking,
    Rating,
    StepLabelSet,
)
from apps.rubrics.services import CriterionDraft, save_rubric
from tests.browser.desk import add_item

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def work(page: Page, live_server: Any, tools: Any, annotator: User, campaign: Campaign) -> Page:
    """Her work page, ready for keys."""
    tools.login_by_form(page, live_server, annotator)
    page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/")
    page.wait_for_load_state()
    return page


def say(page: Page, words: str) -> None:
    page.keyboard.press("5")
    page.keyboard.press("c")
    page.keyboard.type(words)
    page.keyboard.press("Escape")


def test_a_lost_network_at_the_moment_of_sending(work: Page) -> None:
    """She is told that nothing was saved, and the same form goes through when the network is back."""
    work.watched.wrong_is_expected = True  # type: ignore[attr-defined]
    say(work, "The second one says sorry.")
    expect(work.get_by_text(re.compile(r"saved \d+ s ago"))).to_be_visible()
    work.context.set_offline(True)
    work.keyboard.press("Enter")
    expect(work.get_by_text("The server cannot be reached. Nothing was saved")).to_be_visible()
    expect(work.get_by_role("radio", name="B is better", exact=True)).to_be_checked()
    work.context.set_offline(False)
    work.keyboard.press("Enter")
    expect(work.get_by_text("1 done")).to_be_visible()
    assert Annotation.objects.count() == 1
    assert Comment.objects.get().text == "The second one says sorry."


def test_every_kind_outlives_a_lost_network_and_a_closed_page(
    page: Page, live_server: Any, tools: Any, annotator: User, project: Project
) -> None:
    """Marks, scores, ratings, places and words said without a network are there again, and are sent once."""
    made = services.create_campaign(
        project=project,
        name="Everything",
        feedback_types=["pairwise", "ranking", "step", "rubric", "comment", "rating"],
        rubric=save_rubric(project=project, name="Support", criteria=[CriterionDraft(name="polite")]),
        options={"rating": {"scale": "5"}},
    )
    add_item(made, "refund-1", "Refunded.", "No refund.")
    page.watched.wrong_is_expected = True  # type: ignore[attr-defined]
    tools.login_by_form(page, live_server, annotator)
    url = f"{live_server.url}/p/desk/campaigns/{made.pk}/work/"
    page.goto(url)
    page.wait_for_load_state()
    page.context.set_offline(True)
    page.get_by_role("radio", name="A is much better", exact=True).check()
    for name, value in (
        ("rank-left", "2"), ("rank-right", "1"), ("step-left-2", "bad"), ("step-right-1", "good"),
    ):  # fmt: skip
        page.locator(f"[name='{name}'][value='{value}']").first.check(force=True)
    for button in page.locator("[name^='score-'][value='4'], [name^='rating-'][value='2']").all():
        button.check(force=True)
    page.locator("#comments summary").click()
    page.get_by_role("textbox", name="Comment", exact=True).fill("Said in a tunnel.")
    expect(page.get_by_text("offline: kept here")).to_be_visible()
    before = filled(page)
    assert len(before) >= 8
    page.close()  # the lid
    again = page.context.new_page()
    page.context.set_offline(False)
    again.goto(url)
    expect(again.get_by_role("textbox", name="Comment", exact=True)).to_have_value("Said in a tunnel.")
    assert filled(again) == before
    again.get_by_role("button", name="Submit").click()
    expect(again.get_by_text("All done")).to_be_visible()
    assert Annotation.objects.count() == 1
    assert Comment.objects.get().text == "Said in a tunnel."
    assert (Preference.objects.get().strength, sorted(Ranking.objects.get().ranks)) == (3, [1, 2])
    said = {label for step_label_set in StepLabelSet.objects.all() for label in step_label_set.labels.items()}
    assert said == {("2", "bad"), ("1", "good")}
    assert list(CriterionScore.objects.values_list("value", flat=True)) == [4, 4]
    assert list(Rating.objects.values_list("rating", flat=True)) == [2, 2]


def filled(page: Page) -> dict[str, str]:
    """What the form says now."""
    script = """() => Object.fromEntries([...new FormData(document.getElementById("decision"))].filter(
        ([name, value]) => value && !["csrfmiddlewaretoken", "idempotency_key", "active_seconds"].includes(name)))"""
    said: dict[str, str] = page.evaluate(script)
    return said


def test_an_expired_login(work: Page, tools: Any, annotator: User) -> None:
    """The way leads over the login back to the same item, with everything still there."""
    work.keyboard.press("5")
    work.keyboard.press("c")
    work.keyboard.type("Half of it before lunch")
    expect(work.get_by_text(re.compile(r"saved \d+ s ago"))).to_be_visible()
    UserSession.objects.all().delete()
    work.watched.wrong_is_expected = True  # type: ignore[attr-defined]  # the draft that found no session
    words = "Half of it before lunch, half after."
    work.get_by_role("textbox", name="Comment", exact=True).fill(words)
    expect(work.get_by_text("offline: kept here")).to_be_visible()
    work.keyboard.press("Escape")
    work.keyboard.press("Enter")
    work.wait_for_url("**/login?next=*")
    work.fill("#id_username", annotator.email)
    work.fill("#id_password", tools.password)
    work.click("main button")
    work.wait_for_url("**/work/")
    expect(work.get_by_role("radio", name="B is better", exact=True)).to_be_checked()
    work.wait_for_load_state()
    expect(work.get_by_role("textbox", name="Comment", exact=True)).to_have_value(words)
    work.keyboard.press("Enter")
    expect(work.get_by_text("1 done")).to_be_visible()
    assert Comment.objects.get().text == words
    assert Preference.objects.get().strength == 2


def test_a_lid_closed_until_the_item_was_given_to_somebody_else(
    work: Page, project: Project, campaign: Campaign, tools: Any
) -> None:
    """What she sends late is kept, and she is told that it is kept aside."""
    say(work, "Thought over lunch.")
    expect(work.get_by_text(re.compile(r"saved \d+ s ago"))).to_be_visible()
    hers = Assignment.objects.get()
    Assignment.objects.update(lock_expires_at=timezone.now() - timedelta(minutes=1))
    services.expire_locks()
    other_annotator = accounts.create_user(email="ben@example.org", password=tools.password)[0]
    accounts.set_member(project=project, user=other_annotator, role=Role.ANNOTATOR, by=None)
    his = services.annotator_for(project=project, user=other_annotator)
    for _ in range(6):  # he judges everything there is
        taken = services.assign_next_item(campaign=campaign, annotator=his)
        assert taken is not None
        services.submit_annotation(
            assignment=taken,
            idempotency_key=uuid.uuid4(),
            records=[Preference(choice="tie")],
            by=other_annotator,
        )
    work.keyboard.press("Enter")
    expect(
        work.get_by_text("Saved, but not needed: the item already has all its annotations.")
    ).to_be_visible()
    kept = Annotation.objects.get(assignment=hers)
    assert kept.is_surplus and kept.comments.get().text == "Thought over lunch."


def test_two_tabs_on_one_item(work: Page, live_server: Any, campaign: Campaign) -> None:
    """Sent in both: two revisions of one judgement, the later one counts, and nothing is counted twice."""
    other = work.context.new_page()
    other.goto(work.url)
    other.wait_for_load_state()
    other.keyboard.press("1")
    other.keyboard.press("Enter")
    expect(other.get_by_text("1 done")).to_be_visible()
    first = Annotation.objects.get().assignment
    say(work, "From the tab behind.")
    work.keyboard.press("Enter")
    expect(work.get_by_text("1 done")).to_be_visible()
    said = list(Annotation.objects.filter(assignment=first).order_by("revision"))
    assert [line.revision for line in said] == [1, 2]
    assert said[1].comments.get().text == "From the tab behind."
    first.item.refresh_from_db()
    assert (first.item.claimed_count, first.item.completed_count) == (1, 1)
    assert Assignment.objects.filter(state="locked").count() == 1
    other.close()


def test_a_double_enter_is_one_judgement(work: Page) -> None:
    work.keyboard.press("2")
    work.keyboard.press("Enter")
    work.keyboard.press("Enter")
    expect(work.get_by_text("1 done")).to_be_visible()
    work.wait_for_load_state("networkidle")
    assert Annotation.objects.count() == 1


@pytest.mark.parametrize("script", [True, False], ids=["script", "plain"])
def test_the_back_button_judges_nothing_twice(
    open_page: Any, live_server: Any, tools: Any, annotator: User, campaign: Campaign, script: bool
) -> None:
    """Wherever it leads, what is sent next is either the next item or the same form, which counts once."""
    page = open_page(java_script_enabled=script)
    tools.login_by_form(page, live_server, annotator)
    page.goto(f"{live_server.url}/p/desk/campaigns/")
    page.get_by_role("link", name="Start").first.click()

    def judge(done: int) -> None:
        page.wait_for_load_state()
        page.locator("input[name=choice]").nth(1).check(force=True)
        page.get_by_role("button", name="Submit").click()
        expect(page.get_by_text(f"{done} done")).to_be_visible()

    judge(1)
    page.go_back()
    if script:  # the page was swapped in place, so back leads out of it
        expect(page.get_by_role("link", name=re.compile("Start|Continue")).first).to_be_visible()
        page.go_forward()
    judge(2)
    judged = Annotation.objects.values_list("assignment__item", "revision")
    assert len(set(judged)) == 2 and {revision for _, revision in judged} == {1}
    form = page.locator("#decision")
    sent = {"idempotency_key": form.locator("[name=idempotency_key]").input_value(), "choice": "left-1"}
    token = form.locator("[name=csrfmiddlewaretoken]").input_value()
    if not script:
        url = f"{live_server.url}{form.get_attribute('action')}"
        for _ in range(2):  # a page from the browser's memory, sent again as it was
            answer = page.request.post(url, form=sent | {"csrfmiddlewaretoken": token})
            assert answer.ok
        assert Annotation.objects.count() == 3
