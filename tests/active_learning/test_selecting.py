"""A choosing by a worker, with the real child process."""

import json

import pytest

from apps.active_learning.models import ItemSelection, SelectionPlan, SelectionReason
from apps.active_learning.selecting import execute
from apps.active_learning.services import delete_orphaned_features, select_next
from apps.annotation.models import Campaign, Item, ItemTrajectory
from apps.core.errors import NotFound
from apps.core.jobs.job_queue import ClaimLost, JobState
from apps.core.storage.artifacts import stage
from tests.active_learning.conftest import TASKS, claimed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.real_children
@pytest.mark.slow
def test_from_the_rows_to_the_order_of_the_items(plan: SelectionPlan, campaign: Campaign) -> None:
    plan.target_accuracy = 0.9
    plan.save()
    first = claimed(plan)
    execute(first)
    first.refresh_from_db()
    assert (first.state, first.error, first.basis) == (JobState.SUCCEEDED, "", "encoder")
    assert first.result["items"] == TASKS and first.result["comparisons"] == TASKS
    assert first.result["encoded"] == 2 * TASKS
    scores = list(campaign.items.order_by("-acquisition_score").values_list("acquisition_score", flat=True))
    assert len(set(scores)) == TASKS and scores[0] == 1
    assert SelectionReason.objects.filter(selection=first).count() == TASKS

    select_next(plan=plan)
    second = claimed(plan)
    execute(second)
    second.refresh_from_db()
    assert second.state == JobState.SUCCEEDED and second.result["encoded"] == 0
    assert len(json.loads((stage(second.artifact) / "keys.json").read_text())) == 2 * TASKS
    with pytest.raises(NotFound):
        stage(first.artifact)

    assert delete_orphaned_features() == 0
    gone = ItemTrajectory.objects.filter(item__campaign=campaign).first()
    assert gone is not None
    Item.objects.filter(places__trajectory=gone.trajectory).delete()
    gone.trajectory.delete()
    assert delete_orphaned_features() == 1
    with pytest.raises(NotFound):
        stage(second.artifact)


def test_a_refusal_is_told(plan: SelectionPlan) -> None:
    SelectionPlan.objects.update(strategy="tarot")
    selection = claimed(plan)
    execute(selection)
    selection.refresh_from_db()
    assert selection.state == JobState.FAILED and "tarot" in selection.error


def test_whoever_lost_the_claim_writes_nothing(plan: SelectionPlan, campaign: Campaign) -> None:
    selection = claimed(plan)
    ItemSelection.objects.update(attempt=7)
    with pytest.raises(ClaimLost):
        execute(selection)
    assert not campaign.items.filter(acquisition_score__isnull=False).exists()
    assert not SelectionReason.objects.exists()
