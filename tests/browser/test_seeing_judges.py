"""An LLM connection that reads pictures, entered and tested by its owner, and a judge run that sees some of them."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project
from apps.judges.services import start_test_run
from apps.llm.models import LLMConnection
from tests.factories import make_member
from tests.judges import parcels
from tests.judges.test_pictures import store
from tests.llm.test_pictures import names_the_colour
from tests.picture_files import BLUE, RED
from tests.workers.llm.scripted import Body, Reply, Script, scripted
from tests.workers.llm.seeing import scored_by_colour, text_of

pytestmark = [pytest.mark.browser, pytest.mark.ml, pytest.mark.django_db(transaction=True)]


def answer(body: Body) -> Reply:
    return scored_by_colour(body) if "The criteria, one" in text_of(body) else names_the_colour(body)


def test_a_connection_is_tested_and_a_judge_run_says_what_was_seen(
    page: Page, live_server: Any, tools: Any, project: Project, settings: Any, tmp_path: Path
) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    tools.login(page, live_server, make_member(project, "olga@example.org", "owner"))
    with scripted(Script(answer)) as url:
        page.goto(f"{live_server.url}/p/{project.slug}/llm-connections/")
        page.get_by_label("Name", exact=True).fill("eyes")
        page.get_by_label("Base URL").fill(url)
        page.locator("#id_model").fill("seeing")
        page.get_by_label("Reads pictures").check()
        page.get_by_text("Pictures", exact=True).click()
        page.get_by_label("Pictures per call").fill("4")
        tools.shoot(page, "connection-pictures")
        page.get_by_role("button", name="Create connection").click()
        page.get_by_role("button", name="Test eyes").click()
        expect(page.get_by_text("counted as 765 tokens")).to_be_visible()
        tools.shoot(page, "connection-tested")
        judge = parcels.judge(LLMConnection.objects.get(), "Sharp")
        trajectories = [store(project, RED), store(project, BLUE, 6)]
        seen = parcels.done(start_test_run(judge=judge, trajectories=trajectories))
        page.goto(f"{live_server.url}/p/{project.slug}/judge-runs/{seen.pk}/")
        expect(page.get_by_text("Pictures: 5 of 7 seen, the others left out.")).to_be_visible()
        tools.shoot(page, "judge-run-pictures")
        LLMConnection.objects.update(reads_pictures=False)
        blind = parcels.done(start_test_run(judge=judge, trajectories=trajectories))
    page.goto(f"{live_server.url}/p/{project.slug}/judge-runs/{blind.pk}/")
    expect(page.get_by_text("Pictures: 7 not seen.")).to_be_visible()
    tools.shoot(page, "judge-run-blind")
    page.goto(f"{live_server.url}/p/{project.slug}/judges/{judge.pk}/")
    expect(page.get_by_text("the LLM connection does not read pictures")).to_be_visible()
    tools.shoot(page, "judge-blind")
