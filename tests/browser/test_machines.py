"""The page of joined machines: a token is made and copied, and machines with their runs are seen and revoked."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.machines import services
from apps.machines.launcher import MachineLauncher
from tests.machines.test_calls import described, job, joined

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_token_and_a_machine(page: Page, live_server: Any, tools: Any, project: Project) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/machines/")
    tools.shoot(page, "machines-none")
    page.get_by_role("button", name="Create join token").click()
    expect(page.locator("#secret")).to_contain_text("touchstone join http")
    tools.shoot(page, "machines-token")

    MachineLauncher().submit(job(project))
    gpus = {"device": "NVIDIA H100 80GB HBM3", "gpus": 1}
    machine, _ = joined(project, **gpus)
    services.claim_job(machine=machine, described=described(**gpus))
    joined(project)
    page.goto(f"{live_server.url}/p/desk/machines/")
    expect(page.get_by_role("row", name="NVIDIA H100")).to_be_visible()
    tools.shoot(page, "machines")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("row", name="NVIDIA H100").get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("row", name="NVIDIA H100")).to_be_hidden()
