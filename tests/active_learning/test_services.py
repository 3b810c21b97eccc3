from uuid import uuid4

import pytest

from apps.accounts.models import AuditEvent, Project
from apps.active_learning.models import ItemSelection, SelectionPlan, SelectionReason
from apps.active_learning.selectors import is_due, next_items
from apps.active_learning.services import save_plan, select_due_plans, select_next, store_selection
from apps.annotation import services as annotation
from apps.annotation.models import Campaign, Item, Preference
from apps.core.errors import Conflict, DomainError
from apps.core.jobs.job_queue import JobState, finish
from apps.rewards.services import create_endpoint
from tests.active_learning.conftest import chose, claimed
from tests.datasets.feedback import import_pairs, pair
from tests.factories import make_member

pytestmark = pytest.mark.django_db


def test_a_plan_makes_the_campaign_ask_by_it(campaign: Campaign) -> None:
    plan = save_plan(campaign=campaign, strategy="diversity", annotations_between=3, target_accuracy=0.8)
    campaign.refresh_from_db()
    assert campaign.ordering == Campaign.Ordering.ACTIVE
    assert plan.selections.get().state == JobState.QUEUED
    assert AuditEvent.objects.filter(verb="active_learning.set").exists()
    assert save_plan(campaign=campaign, strategy="mix").pk == plan.pk


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"strategy": "tarot"}, "/strategy"),
        ({"annotations_between": 0}, "/annotations_between"),
        ({"target_accuracy": 0.5}, "/target_accuracy"),
        ({"target_accuracy": 1.0}, "/target_accuracy"),
    ],
)
def test_what_makes_no_sense_is_refused(campaign: Campaign, wrong: dict[str, object], pointer: str) -> None:
    with pytest.raises(DomainError) as caught:
        save_plan(campaign=campaign, **wrong)  # type: ignore[arg-type]
    assert caught.value.pointer == pointer
    assert not SelectionPlan.objects.exists()


def test_another_projects_endpoint_is_not_there(campaign: Campaign) -> None:
    other = create_endpoint(project=Project.objects.create(slug="other"), name="theirs", by=None)
    with pytest.raises(DomainError) as caught:
        save_plan(campaign=campaign, endpoint=other)
    assert caught.value.status == 404


def test_one_choosing_at_a_time(plan: SelectionPlan) -> None:
    assert select_next(plan=plan) is None
    assert ItemSelection.objects.count() == 1


def test_what_was_chosen_is_handed_out_first(plan: SelectionPlan, campaign: Campaign) -> None:
    chose(plan)
    wanted = [item.pk for item in campaign.items.order_by("pk")]
    assert [item.item_id for item in next_items(plan, 3)] == wanted[:3]
    campaign.refresh_from_db()
    annotator = annotation.annotator_for(
        project=campaign.project, user=make_member(campaign.project, "a@example.org", "annotator")
    )
    leased = annotation.assign_next_item(campaign=campaign, annotator=annotator)
    assert leased is not None and leased.item_id == wanted[0]
    assert [item.item_id for item in next_items(plan, 3)] == wanted[1:4]  # it is taken


def test_a_later_choice_takes_the_place_of_the_one_before(plan: SelectionPlan, campaign: Campaign) -> None:
    chose(plan)
    last = campaign.items.order_by("pk").last()
    assert last is not None
    select_next(plan=plan)
    store_selection(
        selection=claimed(plan),
        chosen=[
            {"id": last.pk, "rank": 0, "score": 1.0, "measures": {}},
            {"id": 10**9, "rank": 1, "score": 0.5},
        ],
        result={},
        facts={},
    )
    assert list(Item.objects.filter(acquisition_score__isnull=False)) == [last]
    assert SelectionReason.objects.get(item=last).rank == 0


def test_it_is_due_when_enough_was_said(plan: SelectionPlan, campaign: Campaign) -> None:
    plan.annotations_between = 2
    plan.save()
    chose(plan)
    assert not is_due(plan)
    user = make_member(campaign.project, "a@example.org", "annotator")
    annotator = annotation.annotator_for(project=campaign.project, user=user)
    for expected in (False, True):
        assignment = annotation.assign_next_item(campaign=campaign, annotator=annotator)
        assert assignment is not None
        said = [Preference(choice="a")]
        annotation.submit_annotation(assignment=assignment, idempotency_key=uuid4(), records=said, by=user)
        assert is_due(plan) is expected
    assert select_due_plans() == 1
    assert not is_due(plan)  # it waits already


def test_it_is_due_when_items_come(plan: SelectionPlan, campaign: Campaign) -> None:
    chose(plan)
    import_pairs(campaign.project, [pair("order 99")])
    annotation.build_items(campaign=campaign, choice=annotation.ItemBuildOptions(differ="any"))
    assert is_due(plan)


def test_a_choosing_that_failed_is_not_begun_again_at_once(plan: SelectionPlan) -> None:
    finish(claimed(plan), JobState.FAILED, error="no room")
    assert not is_due(plan)


def test_the_order_alone_is_enough(campaign: Campaign) -> None:
    """Whoever chose the order in the campaign's own form gets the usual plan."""
    annotation.update_campaign(campaign=campaign, ordering=Campaign.Ordering.ACTIVE)
    assert select_due_plans() == 1
    assert SelectionPlan.objects.get(campaign=campaign).strategy == "mix"
    annotation.update_campaign(campaign=campaign, ordering=Campaign.Ordering.RANDOM)
    ItemSelection.objects.all().delete()
    assert select_due_plans() == 0


def test_a_campaign_that_is_closed_asks_nothing(plan: SelectionPlan, campaign: Campaign) -> None:
    ItemSelection.objects.all().delete()
    plan.campaign = annotation.close_campaign(campaign=campaign)
    assert select_due_plans() == 0
    with pytest.raises(Conflict, match="Reopen the campaign"):
        select_next(plan=plan)
