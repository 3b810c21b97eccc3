"""Tasks by difficulty: sorted, narrowed to an agent, exported."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import Project, User
from apps.trajectories.models import Task
from tests.task_difficulty.test_task_difficulty import KINDS, add_outcome

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_next_tasks_are_found_and_exported(
    page: Page, live_server: Any, tools: Any, project: Project, tmp_path: Path
) -> None:
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/task-difficulty/")
    expect(page.get_by_text("No known outcomes")).to_be_visible()
    for kind, successes in KINDS.items():
        for number in range(4):
            task = Task.objects.create(
                project=project,
                external_id=f"{kind.split()[0]}-{number}",
                instruction=f"{kind}, case {number}",
            )
            for trial in range(10 if number else 0):
                add_outcome(project, task, agent="desk-a", success=trial < successes)
    page.goto(f"{live_server.url}/p/desk/")
    page.get_by_role("link", name="Data").first.click()
    page.get_by_role("link", name="Task difficulty").click()
    expect(page.locator("tbody tr").first).to_contain_text("book-")
    tools.shoot(page, "task-difficulty")
    page.get_by_role("link", name="Expected success").click()
    expect(page.locator("tbody tr").first).to_contain_text("refund-")
    page.get_by_role("combobox", name="Tasks").select_option("untried")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("tbody tr")).to_have_count(3)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export by difficulty").click()
    path = tmp_path / "tasks.jsonl"
    download.value.save_as(path)
    assert [json.loads(line)["task"] for line in path.read_text().splitlines()] == [
        "refund-0",
        "book-0",
        "translate-0",
    ]
