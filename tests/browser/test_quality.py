"""What a data manager looks at: rubrics, how far people agree, and the judgements behind a figure."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.templatetags.static import static
from django.utils import timezone
from playwright.sync_api import Page, expect

from apps.accounts import services as accounts
from apps.accounts.models import Role, User
from apps.annotation import services
from apps.annotation.models import Campaign, Preference
from apps.datasets.tasks import advance_exports
from tests.annotation import rows

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def judged(campaign: Campaign, annotator: User) -> Campaign:
    """Everything judged by three people, who part at times."""
    services.update_campaign(campaign=campaign, overlap=3)
    people = [annotator]
    for name in ("ben", "cleo"):
        people.append(accounts.create_user(email=f"{name}@example.org")[0])
        accounts.set_member(project=campaign.project, user=people[-1], role=Role.ANNOTATOR, by=annotator)
    for number, user in enumerate(people):
        for _ in range(6):
            held = rows.leased(campaign, user)
            apart = number == 2 and held.item.task.external_id in ("refund-1", "refund-4")
            rows.submit(held, user, "b" if apart else "a", active_seconds=0)
            held.annotations.update(active_seconds=20 + 5 * number)
    return campaign


def test_from_a_campaign_to_what_was_said(page: Page, live_server: Any, tools: Any, judged: Campaign) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/campaigns/{judged.pk}/")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("link", name="Preview").click()
    expect(page.get_by_text("Nothing is saved.")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("2")
    expect(page.get_by_role("radio", name="A is better")).to_be_checked()
    tools.shoot(page, "campaign-preview")
    page.get_by_role("link", name="Back to the campaign").click()
    page.get_by_role("link", name="Quality").click()
    expect(page.get_by_role("heading", name="Annotation quality")).to_be_visible()
    expect(page.locator("#alpha svg")).to_be_visible()
    ends = page.evaluate(
        f"import('{static('vendor/echarts/echarts.min.js')}').then(({{ getInstanceByDom }}) =>"
        " getInstanceByDom(document.getElementById('alpha')).getModel().getComponent('yAxis').axis.scale.getExtent())"
    )
    assert ends[0] <= 0 and ends[1] == 1, "the length of a bar is its value"
    tools.shoot(page, "quality")
    page.get_by_role("link", name="2 disputed").click()
    expect(page.get_by_role("link", name="refund-4")).to_be_visible()
    tools.shoot(page, "items-in-dispute")
    page.get_by_role("link", name="refund-4").click()
    expect(page.get_by_text("cleo@example.org")).to_be_visible()
    tools.shoot(page, "item")


def test_a_rubric_is_written_and_changed(
    page: Page, live_server: Any, tools: Any, campaign: Campaign
) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/rubrics/")
    tools.shoot(page, "rubrics-empty")
    page.get_by_role("link", name="New rubric").first.click()
    page.fill("#id_name", "Support")
    page.fill("#id_criteria-0-name", "polite")
    page.fill("#id_criteria-0-definition", "The agent stays courteous.")
    page.fill("#id_criteria-0-good_example", "I am sorry to hear that.")
    page.get_by_role("button", name="Add criterion").click()
    expect(page.locator("#id_criteria-0-name")).to_have_value("polite")
    page.fill("#id_criteria-1-name", "correct")
    tools.shoot(page, "rubric-edit")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Support is saved as version 1.")).to_be_visible()
    page.get_by_label("Add a factor").fill("outcome")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Move outcome up").click()
    expect(page.locator("#factors li").nth(1)).to_contain_text("outcome")
    tools.shoot(page, "rubric")
    page.get_by_role("link", name="Rubrics").first.click()
    tools.shoot(page, "rubrics")
    page.get_by_role("link", name="Import YAML").click()
    page.fill("#id_text", "name: Other\ncriteria: [{name: brief, scale: [0, 2]}]")
    tools.shoot(page, "rubric-yaml")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("0 to 2")).to_be_visible()


def test_a_dispute_is_decided_and_becomes_practice(
    page: Page, live_server: Any, tools: Any, judged: Campaign
) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/campaigns/{judged.pk}/judged/?disputed=1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("You are adjudicating this item.")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("o")
    expect(page.get_by_text("cleo@example.org")).to_be_visible()
    tools.shoot(page, "adjudication")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Task refund-4", exact=True)).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No disputed items are left to adjudicate.")).to_be_visible()
    tools.shoot(page, "items-adjudicated")
    page.get_by_role("link", name="refund-4").click()
    page.get_by_label("Practice: annotated first").check()
    page.get_by_label("Why the answer is right").fill(
        "A gives the order number back and asks before it pays."
    )
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The item is a practice item: annotators get it first")).to_be_visible()
    tools.shoot(page, "item-practice")
    page.goto(f"{live_server.url}/p/desk/campaigns/{judged.pk}/quality/")
    tools.shoot(page, "quality-decided")


def decide(campaign: Campaign, purpose: str, explanation: str) -> None:
    """Rose says what is right of the first item, and what it is for."""
    researcher = User.objects.get(email="rose@example.org")
    item = campaign.items.get(task__external_id="refund-1")
    services.submit_annotation(
        assignment=services.start_adjudication(item=item, annotator=rows.annotator(campaign, researcher)),
        idempotency_key=uuid.uuid4(),
        records=[Preference(choice="a", strength=3)],
        by=researcher,
    )
    services.set_item_purpose(item=item, purpose=purpose, explanation=explanation, by=researcher)


@pytest.mark.parametrize("script", [True, False], ids=["script", "plain"])
def test_practice_tells_what_is_right(
    open_page: Any, live_server: Any, tools: Any, campaign: Campaign, annotator: User, script: bool
) -> None:
    decide(campaign, "practice", "A pays the *right* person.")
    page = open_page(java_script_enabled=script)
    tools.login(page, live_server, annotator)
    page.goto(f"{live_server.url}/p/desk/campaigns/")
    expect(page.get_by_text("1 practice item first")).to_be_visible()
    page.get_by_role("link", name="Start").first.click()
    expect(page.get_by_text("Practice item: after you submit")).to_be_visible()
    page.wait_for_load_state()
    if script:
        page.keyboard.press("1")
        page.keyboard.press("Enter")
    else:
        page.locator("input[name=choice]").first.check(force=True)
        page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("A pays the *right* person.")).to_be_visible()
    if script:
        tools.shoot(page, "practice-answer")
    page.get_by_role("link", name="Start annotating").click()
    expect(page.get_by_role("button", name="Submit")).to_be_visible()
    expect(page.get_by_text("Practice item: after you submit")).to_be_hidden()


def test_an_example_beside_the_guidelines(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, annotator: User
) -> None:
    decide(campaign, "example", "A pays the right person.")
    tools.login(page, live_server, annotator)
    page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/")
    page.wait_for_load_state()
    tools.shoot(page, "work-guidelines")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="refund-1").click()
    example = opened.value
    expect(example.get_by_text("A pays the right person.")).to_be_visible()
    expect(example.get_by_role("radio", name="A is much better", exact=True)).to_be_checked()
    expect(example.get_by_role("button", name="Submit")).to_have_count(0)
    example.runs_scripts = True  # type: ignore[attr-defined]
    tools.shoot(example, "example")


def test_feedback_is_written_to_a_file_and_fetched(
    page: Page, live_server: Any, tools: Any, judged: Campaign, tmp_path: Path, settings: Any
) -> None:
    settings.HOME = tmp_path
    settings.STORAGES = settings.STORAGES | {
        "artifacts": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path},
        }
    }
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/campaigns/{judged.pk}/")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("link", name="Export", exact=True).click()
    expect(page.get_by_text("No exports yet")).to_be_visible()
    tools.shoot(page, "exports-empty")
    page.get_by_label("csv: a row for each annotation").check()
    page.get_by_role("button", name="Create export").click()
    expect(page.get_by_text("Next in the queue")).to_be_visible()
    advance_exports()
    expect(page.get_by_role("link", name="Download")).to_be_visible()  # without being asked again
    tools.shoot(page, "exports")
    with page.expect_download() as loaded:
        page.get_by_role("link", name="Download").click()
    text = loaded.value.path().read_text()
    assert text.startswith("\ufeffkind,task,item")
    assert text.count(judged.name) == text.count("\n") - 1 > 0


def test_a_pilot_and_somebody_paused_are_seen_on_the_campaign(
    page: Page, live_server: Any, tools: Any, judged: Campaign, annotator: User
) -> None:
    services.start_pilot(campaign=judged, items=4)
    services.update_campaign(campaign=judged, hourly_pay=24)
    judged.participations.create(
        annotator=rows.annotator(judged, annotator),
        paused_at=timezone.now(),
        reason="On items whose answer is known, 1 of 5 of your answers were as expected.",
    )
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/campaigns/{judged.pk}/")
    expect(page.get_by_text("ann@example.org is paused")).to_be_visible()
    tools.shoot(page, "campaign-pilot")
    page.get_by_role("button", name="Resume annotator").click()
    expect(page.get_by_text("ann@example.org is no longer paused.")).to_be_visible()
    page.get_by_role("button", name="Finish pilot and release all items").click()
    expect(page.get_by_text("The pilot is finished")).to_be_visible()
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.get_by_text("is closed.")).to_be_visible()
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(page.get_by_text("is archived.")).to_be_visible()
    assert [question.split(" ")[0] for question in asked] == ["Close", "Archive"]
    page.goto(f"{live_server.url}/p/desk/campaigns/")
    page.get_by_role("link", name="1 archived").click()
    expect(page.get_by_role("link", name=judged.name)).to_be_visible()
