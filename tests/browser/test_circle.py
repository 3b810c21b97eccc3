"""What comes back to people: which items are asked about first, and why."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts.models import User
from apps.active_learning.models import ItemSelection
from apps.active_learning.reasons import WORDS
from apps.active_learning.selecting import execute
from apps.active_learning.services import save_plan
from apps.annotation.models import Campaign
from apps.core.jobs.job_queue import claim_next
from tests.annotation import rows

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CURVE = {
    "points": [
        {"labels": labels, "accuracy": accuracy, "interval": [accuracy - 0.08, accuracy + 0.06]}
        for labels, accuracy in ((40, 0.56), (80, 0.61), (160, 0.66), (320, 0.7))
    ],
    "best": 0.83,
    "drop": 1.05,
    "rate": 0.36,
    "wanted": 0.75,
    "needed": 1130,
    "interval": [620, 4100],
}


def test_a_campaign_asks_first_what_helps_most(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, annotator: User
) -> None:
    for _ in range(2):
        rows.submit(rows.leased(campaign, annotator), annotator, "a", active_seconds=3)
    tools.login(page, live_server, User.objects.get(email="rose@example.org"))
    page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/")
    page.get_by_role("link", name="Set up active learning").click()
    expect(page.get_by_text("No items ranked yet")).to_be_visible()
    tools.shoot(page, "active-learning-none")
    page.get_by_label("Expected information gain").check()
    page.get_by_label("Target accuracy").fill("75")
    page.get_by_role("button", name="Start active learning").click()
    expect(page.get_by_text("Saved. Items are being ranked again.")).to_be_visible()
    selection = claim_next(ItemSelection)
    assert selection is not None
    execute(selection)
    expect(page.get_by_text("by the embedded encoder")).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(1 + campaign.items.count() - 2)
    expect(page.get_by_text("too few comparisons for a curve yet")).to_be_visible()

    selection.refresh_from_db()
    selection.result |= {"curve": CURVE, "comparisons": 400}
    selection.save()
    page.reload()
    expect(page.locator("#curve svg")).to_be_visible()
    expect(page.get_by_text("About 730 more comparisons for 75.0 %")).to_be_visible()
    drawn = json.loads(page.locator("#curve-data").text_content() or "")
    assert [series["name"] for series in drawn["series"]] == ["measured", "expected", "target"]
    tools.shoot(page, "active-learning")


def test_an_annotator_can_ask_why(
    page: Page, live_server: Any, tools: Any, campaign: Campaign, annotator: User
) -> None:
    save_plan(campaign=campaign, strategy="diversity")
    selection = claim_next(ItemSelection)
    assert selection is not None
    execute(selection)
    tools.login(page, live_server, annotator)
    page.goto(f"{live_server.url}/p/desk/campaigns/{campaign.pk}/work/")
    page.keyboard.press("y")
    # Which item comes first is drawn among equals, and with it the reason.
    because = re.compile("|".join([*WORDS.values(), "ranks best among the remaining"]), re.I)
    expect(page.get_by_text(because)).to_be_visible()
    assert page.locator("[title*='percentile among the open items']").count() == 0  # figures are the model's
    tools.shoot(page, "work-why")
