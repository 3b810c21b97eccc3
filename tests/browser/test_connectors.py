"""A connector as an owner meets it: chosen by its kind, created, run, and pushed back to."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project
from apps.connectors.executor import execute
from apps.connectors.models import ConnectorRun
from apps.core.jobs import job_queue
from tests.connectors.contract_server import serve
from tests.connectors.langfuse_server import LangfuseServer
from tests.factories import make_member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
AT = "2026-01-01T00:00:00.000Z"


def run_waiting() -> None:
    run = job_queue.claim_next(ConnectorRun)
    assert run is not None
    job_queue.work(run, execute)


def test_a_connector_is_created_run_and_pushed(
    page: Page, live_server: Any, tools: Any, project: Project, settings: Any
) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    server = LangfuseServer()
    server.add("trace-1", AT, steps=2)
    server.add("trace-without-a-model-call", AT)
    server.traces["trace-without-a-model-call"] |= {"observations": [], "input": None, "output": None}
    tools.login(page, live_server, make_member(project, "olga@example.org", "owner"))
    page.goto(f"{live_server.url}/p/{project.slug}/connectors/")
    tools.shoot(page, "connectors-none")
    page.get_by_role("link", name="New connector").click()
    tools.shoot(page, "connectors-kinds")
    page.get_by_role("link", name="Langfuse").click()
    with serve(server) as url:
        page.get_by_label("Address").fill(url)
        page.get_by_label("Public key").fill("pk-lf-1")
        page.get_by_label("Secret key").fill("sk-lf-1")
        tools.shoot(page, "connectors-new")
        page.get_by_role("button", name="Create connector").click()
        expect(page.get_by_text("No runs yet")).to_be_visible()
        page.get_by_role("button", name="Run now").click()
        expect(page.get_by_role("button", name="Cancel")).to_be_visible()
        tools.shoot(page, "connector-running")
        run_waiting()
        expect(page.get_by_role("link", name="Pull 1")).to_be_visible()
        page.get_by_role("link", name="Pull").first.click()
        expect(page.get_by_role("heading", name="Rejected records")).to_be_visible()
        tools.shoot(page, "connector-run")
        page.go_back()
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Push scores back").click()
        expect(page.get_by_role("button", name="Cancel")).to_be_visible()
        run_waiting()
        expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
        expect(page.get_by_text("0 scores sent, 0 unchanged")).to_be_visible()
        tools.shoot(page, "connector")
    page.goto(f"{live_server.url}/p/{project.slug}/connectors/")
    tools.shoot(page, "connectors")
