"""A served reward followed to its judgements, and back, as a researcher does."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import User
from apps.annotation.models import Annotator, Campaign
from apps.core.jobs import job_queue
from apps.datasets.erasure import erase_judgements
from apps.lineage.models import Tracing
from apps.lineage.tracing import execute
from tests.lineage.served_rewards import train_and_serve

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_there_and_back(page: Page, live_server: Any, tools: Any, campaign: Campaign, own_home: None) -> None:
    researcher = User.objects.get(email="rose@example.org")
    sample = train_and_serve(campaign.project)
    tools.login(page, live_server, researcher)
    page.goto(f"{live_server.url}/p/desk/endpoints/")
    page.get_by_role("link", name="Lineage").click()
    tools.shoot(page, "lineage")
    page.get_by_role("row", name="reward").get_by_role("link", name="0.500").click()
    expect(page.get_by_role("heading", name="Lineage of the reward 0.500")).to_be_visible()
    page.get_by_role("button", name="Compute influence").click()
    expect(page.get_by_text("The gradient of the reward is compared")).to_be_visible()
    claimed = job_queue.claim_next(Tracing)
    assert claimed is not None
    execute(claimed)
    expect(page.get_by_text("training records raises the reward")).to_be_visible()
    tools.shoot(page, "lineage-sample")

    page.get_by_role("link", name="A is better, slightly").first.click()
    expect(page.get_by_role("heading", name="Lineage of task-")).to_be_visible()
    tools.shoot(page, "lineage-item")
    page.get_by_role("link", name="All annotations").click()
    expect(page.get_by_role("heading", name="Feedback records")).to_be_hidden()
    page.get_by_role("link", name="Lineage").click()
    page.get_by_role("link", name="reward 0.500").click()
    expect(page.get_by_role("heading", name="Lineage of the reward 0.500")).to_be_visible()

    page.get_by_role("link", name="in the training split").click()
    expect(page.get_by_role("heading", name="Feedback records in first@1")).to_be_visible()
    tools.shoot(page, "lineage-dataset")
    page.go_back()
    page.get_by_role("link", name="bea").click()
    expect(page.get_by_role("link", name="reward revision 1")).to_be_visible()
    tools.shoot(page, "lineage-annotator")

    erase_judgements(annotator=Annotator.objects.get(name="bea"), by=researcher)
    page.goto(f"{live_server.url}/p/desk/lineage/")
    expect(page.get_by_text("annotations in it were deleted")).to_be_visible()
    tools.shoot(page, "lineage-deleted")
    page.goto(f"{live_server.url}/p/desk/training/models/{sample.endpoint.active.reward_models.get().pk}/")
    expect(page.get_by_text("trained on deleted data")).to_be_visible()
