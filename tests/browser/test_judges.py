"""Judges as a researcher meets them: without a language model, made, tried, compared with people, adjudicated."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.judges.models import Judge, JudgeRun
from apps.llm.services import LLMConnectionSpec, create_llm_connection
from benchmarks.rule_judge import judged
from tests.factories import make_member
from tests.judges import parcels
from tests.workers.llm.scripted import Body, Reply, Script, completion, scripted

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HOSTILE = "<img src=x onerror=alert(1)> {{ care }} </script><script>alert(2)</script>"


def answer(body: Body) -> Reply:
    """By rules; of three tasks the other way round, of one never, and with hostile words."""
    shown = body["messages"][1]["content"]
    if "parcels of task-3." in shown:
        return 200, completion("", refusal=f"I cannot judge this. {HOSTILE}")
    said = judged(body)
    if any(f"parcels of task-{number}." in shown for number in (4, 8, 12)):
        said = said.replace('"score": 5', '"score": 1').replace(
            "failed.", "failed. " + HOSTILE.replace('"', "'")
        )
    return said


@pytest.fixture
def people(project: Project) -> Project:
    parcels.rubric(project)
    parcels.say(project)
    return project


def test_from_nothing_to_a_judge_that_was_measured(
    page: Page, live_server: Any, tools: Any, people: Project, settings: Any
) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    researcher = make_member(people, "rosa@example.org", "researcher")
    tools.login(page, live_server, researcher)
    page.goto(f"{live_server.url}/p/{people.slug}/judges/")
    expect(page.get_by_text("A judge needs an LLM connection")).to_be_visible()
    tools.shoot(page, "judges-none")
    with scripted(Script(answer)) as url:
        spec = LLMConnectionSpec(name="rules", base_url=url, model="rules")
        create_llm_connection(project=people, spec=spec, by=None)
        _made_and_tried(page, tools)
        _measured(page, tools)
    _adjudicated(page)


def _made_and_tried(page: Page, tools: Any) -> None:
    page.reload()
    form = page.locator("form", has_text="New judge")
    form.get_by_label("Name", exact=True).fill("Careful")
    form.get_by_label("Rubric").select_option(label="Parcels@1")
    form.get_by_label("Guidelines").fill(f"A parcel that failed is lost. {HOSTILE}")
    tools.shoot(page, "judges-new")
    form.get_by_role("button", name="Create judge").click()
    expect(page.get_by_role("heading", name="Careful")).to_be_visible()
    expect(page.get_by_text("No judge runs yet")).to_be_visible()
    tools.shoot(page, "judge")
    page.get_by_role("button", name="Start test run").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    parcels.done(JudgeRun.objects.get())
    expect(page.locator("article")).to_have_count(3)
    tools.shoot(page, "judge-test-run")


def _measured(page: Page, tools: Any) -> None:
    page.get_by_role("link", name="Careful").click()
    page.get_by_label("Campaign").select_option(label=parcels.SCORED)
    page.get_by_role("button", name="Start judge run").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    tools.shoot(page, "judge-run-running")
    parcels.done(JudgeRun.objects.order_by("-pk")[0])
    expect(page.get_by_role("heading", name="Agreement with annotators")).to_be_visible()
    expect(page.get_by_role("heading", name="Failed results")).to_be_visible()
    expect(page.get_by_text("I cannot judge this.").first).to_be_visible()
    expect(page.get_by_text(HOSTILE.replace('"', "'")).first).to_be_visible()
    expect(page.locator("img[src=x]")).to_have_count(0)
    tools.shoot(page, "judge-run")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Save as annotations").click()
    expect(page.get_by_text("saved as annotations by judge:Careful")).to_be_visible()
    parcels.done(JudgeRun.objects.order_by("-pk")[0])
    expect(page.get_by_text(re.compile("^Saved as annotations"))).to_be_visible()  # not the message above
    expect(page.get_by_role("button", name="Save as annotations again")).to_be_visible()


def _adjudicated(page: Page) -> None:
    """From a disagreement to the page that settles it: there a judge is marked as one."""
    page.get_by_role("button", name="Adjudicate item").first.click()
    page.locator("summary", has_text="Other annotations").click()
    expect(page.get_by_text("judge:Careful")).to_be_visible()
    expect(page.locator(".badge", has_text="Judge").first).to_be_visible()
    assert Judge.objects.get().name == "Careful" and User.objects.filter(email="rosa@example.org").exists()
