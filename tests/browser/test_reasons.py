"""The reasons for a reward, opened next to the trajectory; and without a script, on a page of their own."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import User
from apps.annotation.models import Campaign
from apps.rewards.serving.state import StoredModels
from apps.trajectories.models import Trajectory
from apps.trajectories.services import store_trajectories
from tests.rewards.conftest import running_service

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_reasons(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, settings: Any, tmp_path: Path
) -> None:
    from tests.rewards.test_reasons_page import STORED, store_linear  # these import torch
    from tests.workers.models.linear_models import linear_model, save_linear

    project = campaign.project
    store_trajectories(project=project, trajectories=[STORED], source_format="openai")
    trajectory = Trajectory.objects.filter(project=project).latest("pk")
    folder = save_linear(linear_model([STORED]), tmp_path / "model")
    for name in ("plain", "second"):
        store_linear(project, folder, name=name)
    with running_service() as service:
        settings.REWARDS_ADDRESS = service.url
        service.state.deployments._load = StoredModels()
        tools.login(page, live_server, User.objects.get(email="rose@example.org"))
        page.goto(f"{live_server.url}/p/desk/trajectories/{trajectory.pk}/")
        page.get_by_text("Reasons for the reward").click()
        expect(page.get_by_role("table").filter(has_text="Events")).to_be_visible()
        tools.shoot(page, "trajectory-reasons")
        with page.expect_response("**/trajectory-reasons/*/?model=plain%401"):
            page.get_by_label("Model").select_option("plain@1")
        expect(page.get_by_label("Model")).to_have_value("plain@1")
        page.goto(f"{live_server.url}/p/desk/endpoints/trajectory-reasons/{trajectory.pk}/?model=second@1")
        expect(page.get_by_role("heading", name="Reasons for the reward")).to_be_visible()
        expect(page.get_by_label("Model")).to_have_value("second@1")
        tools.shoot(page, "reasons-page")
