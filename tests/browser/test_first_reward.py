"""The way of a newcomer from own data to the first reward, with a count of clicks and keys: at most 12 clicks.

Workers and the reward service are functions and a thread of this process; everything else is done in the browser.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from apps.accounts.models import User
from apps.accounts.services import create_user
from apps.annotation.models import Annotation
from apps.core.jobs.job_queue import JobState, claim_next
from apps.datasets.tasks import advance_dataset_versions
from apps.overview.checklist import checklist_steps
from apps.rewards.serving.state import StoredModels
from apps.training import runner
from apps.training.models import TrainingRun
from apps.trajectories.tasks import advance_imports
from tests.rewards.conftest import running_service, serves, wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("own_home"),
]
MOST_CLICKS = 12


class Hand:
    """What a person does with the mouse and the keyboard, counted; a text that is typed counts as its letters."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.keys = page, 0, 0

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def choose_file(self, path: Path) -> None:
        self.page.set_input_files("input[name=file]", path)
        self.clicks += 1

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.keys += 1

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.keys += len(text)

    def home(self) -> None:
        """By the project's name in the bar; Enter then is the checklist's next step."""
        self.click(self.page.locator(".bar-project"))
        expect(self.page.get_by_role("heading", name="From your data to the first reward")).to_be_visible()
        self.page.wait_for_load_state("networkidle")


@pytest.fixture
def nora(transactional_db: None, tools: Any) -> User:
    return create_user(email="nora@example.org", password=tools.password)[0]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two agents on four tasks; the outcome is known."""
    records = [
        {
            "task": {"id": f"order-{number}", "instruction": f"Refund order {number}."},
            "agent": {"name": agent},
            "reward": reward,
            "messages": [
                {"role": "user", "content": f"Please refund order {number}."},
                {"role": "assistant", "content": f"{answer} (order {number})"},
            ],
        }
        for number in range(4)
        for agent, reward, answer in (
            ("careful", 1.0, "I checked it, refunded 20 euros and sent you a mail."),
            ("rude", 0.0, "No. That is your problem."),
        )
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_first_reward_from_own_data_takes_twelve_clicks(
    page: Page, live_server: Any, tools: Any, nora: User, file: Path, settings: Any
) -> None:
    tools.login(page, live_server, nora)
    hand = Hand(page)
    with running_service() as service:
        settings.REWARDS_ADDRESS = service.url
        service.state.deployments._load = StoredModels()
        expect(page.get_by_role("button", name="Open the sample project")).to_be_visible()
        tools.shoot(page, "projects-none")
        page.locator("#id_name").focus()  # it has the focus already; the screenshots took it
        hand.type("Refunds")
        hand.press("Enter")
        page.wait_for_url("**/p/refunds/")
        page.wait_for_load_state("networkidle")
        tools.shoot(page, "home-new")

        hand.press("Enter")  # Import
        page.wait_for_url("**/upload/")
        hand.choose_file(file)
        hand.click(page.get_by_role("button", name="Preview"))
        hand.click(page.get_by_role("button", name="Import 8 records"))
        page.wait_for_url("**/imports/*/")
        advance_imports()
        expect(page.get_by_text("succeeded")).to_be_visible()
        hand.home()

        hand.press("Enter")  # Create campaign
        page.wait_for_url("**/campaigns/new/")
        page.locator("#id_name").focus()
        hand.type("Which is better")
        hand.press("Enter")
        hand.click(page.get_by_role("link", name="Annotate", exact=True).last)
        for done in range(3):
            page.wait_for_url("**/work/")
            page.wait_for_load_state("networkidle")
            form = page.locator("form[action*='/submit/']")
            item = form.get_attribute("action") or ""
            hand.press("1")
            hand.press("Enter")
            wait_until(partial(_has_annotations, nora, done + 1))
            expect(form).not_to_have_attribute("action", item)  # the next one is there
        hand.home()

        hand.press("Enter")  # Freeze feedback
        page.wait_for_url("**/datasets/new/")
        hand.click(page.locator("main form .btn-primary").last)
        page.wait_for_url(lambda url: "/new" not in url)
        advance_dataset_versions()
        hand.click(page.get_by_role("link", name="Train model"))
        hand.click(page.get_by_role("button", name="Start training"))
        page.wait_for_url("**/training/runs/*/")
        run = claim_next(TrainingRun)
        assert run is not None
        runner.execute(run)
        run.refresh_from_db()
        assert run.state == JobState.SUCCEEDED, run.error
        expect(
            page.get_by_role("heading", name="Report")
        ).to_be_visible()  # the page shows it when the run has ended
        hand.home()
        hand.press("Enter")  # Deploy
        page.wait_for_url("**/endpoints/deploy/**")
        expect(page.get_by_label("Reason to deploy it all the same")).to_be_focused()
        hand.type("To try the endpoint")  # three annotations prove nothing
        hand.click(page.get_by_role("button", name="Deploy", exact=True))
        page.wait_for_url("**/endpoints/refunds/")
        wait_until(lambda: serves(service, "refunds", 1))
        page.reload()
        page.get_by_label("Response").focus()
        hand.type("I checked it and refunded you.")
        hand.click(page.get_by_role("button", name="Score input"))
        expect(page.get_by_text("Reward ", exact=False).first).to_be_visible()
    assert hand.clicks <= MOST_CLICKS, f"{hand.clicks} clicks and {hand.keys} keys"
    assert [step.title for step in checklist_steps(run.project) if not step.is_done] in (
        [],
        ["Request a reward"],
    )


def _has_annotations(user: User, count: int) -> bool:
    return Annotation.objects.filter(assignment__annotator__user=user).count() == count
