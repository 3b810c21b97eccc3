"""A bulk job in a browser: estimated, created, and its results."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.bulk.models import BulkJob
from apps.training.models import RewardModel
from tests.bulk.stored import end_chunks, store_trajectories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_bulk_job_is_estimated_and_created(
    page: Page, live_server: Any, tools: Any, project: Project
) -> None:
    keys = store_trajectories(project, 6)
    RewardModel.objects.create(
        project=project, name="quick", version=1, artifact="models/none", manifest={"aggregation": "value"}
    )
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/bulk/new/?agent=desk")
    for work, engine in (
        ("judge", "Judge"),
        ("induce", "Induction"),
        ("endpoint", "Endpoint"),
        ("index", ""),
    ):
        page.get_by_label("Work").select_option(work)
        expect(page.locator("main select:visible")).to_have_count(2 if engine else 1)
        if engine:
            expect(page.get_by_label(engine, exact=True)).to_be_visible()
    page.get_by_label("Work").select_option("score")
    page.get_by_label("Model").select_option("desk/quick@1")
    page.get_by_role("button", name="Estimate").click()
    expect(page.get_by_role("status").filter(has_text="Time of one worker")).to_contain_text("not known yet")
    tools.shoot(page, "bulk-job-create")
    page.get_by_role("button", name="Create bulk job").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    tools.shoot(page, "bulk-job-running")
    end_chunks(BulkJob.objects.get(), problems=frozenset(keys[:1]))
    expect(page.get_by_role("button", name="Retry problems")).to_be_visible()
    tools.shoot(page, "bulk-job-ended")
    page.get_by_role("link", name="Bulk jobs").first.click()
    tools.shoot(page, "bulk-job-list")
