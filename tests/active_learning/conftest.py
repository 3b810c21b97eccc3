"""A project with feedback, and a campaign with open items over its runs."""

from typing import Any

import pytest

from apps.accounts.models import Project
from apps.active_learning.models import ItemSelection, SelectionPlan
from apps.active_learning.services import save_plan, store_selection
from apps.annotation import services
from apps.annotation.models import Campaign
from apps.core.jobs.job_queue import JobState, claim_next
from tests.datasets.feedback import import_pairs, pair

TASKS = 8


@pytest.fixture
def campaign(project: Project) -> Campaign:
    import_pairs(project, [pair(f"order {number}") for number in range(TASKS)])
    found = services.create_campaign(project=project, name="More", feedback_types=["pairwise"])
    services.build_items(campaign=found, choice=services.ItemBuildOptions(differ="any"))
    return found


@pytest.fixture
def plan(campaign: Campaign) -> SelectionPlan:
    return save_plan(campaign=campaign, strategy="information_gain")


def claimed(plan: SelectionPlan) -> ItemSelection:
    """The selection that waits, as a worker holds it."""
    found = claim_next(ItemSelection)
    assert found is not None and found.plan_id == plan.pk
    return found


def chose(plan: SelectionPlan, **result: Any) -> ItemSelection:
    """As if a worker had chosen, the items in the order they were made."""
    selection = claimed(plan)
    items = list(plan.campaign.items.order_by("pk").values_list("pk", flat=True))
    chosen = [
        {
            "id": pk,
            "rank": rank,
            "score": 1 - rank / 100,
            "measures": {"information_gain": 0.9, "diversity": 0.3},
        }
        for rank, pk in enumerate(items)
    ]
    store_selection(
        selection=selection,
        chosen=chosen,
        result={"items": len(items), "comparisons": 40, "encoded": 0, "curve": None} | result,
        facts={"basis": "encoder", "basis_label": "the embedded encoder", "artifact": ""},
    )
    assert selection.state == JobState.SUCCEEDED
    return selection


@pytest.fixture(autouse=True)
def quick_children(forked_children: None) -> None:
    """As all of these are."""
