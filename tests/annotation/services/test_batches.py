"""Items of a grid: held like locked ones, released alike, gold mixed in, practice first."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.annotation import services
from apps.annotation.models import Annotator, Assignment, Campaign, Item
from apps.core.errors import Conflict
from apps.trajectories.models import Task
from tests.annotation import rows

State = Assignment.State


@pytest.fixture
def rating(project: Project) -> Campaign:
    made = services.create_campaign(project=project, name="Accept", feedback_types=["rating"], gold_percent=0)
    for number in range(5):
        task = Task.objects.create(project=project, external_id=str(number), instruction="Refund.")
        run = rows.trajectory(task, f"run {number}")
        services.add_items(campaign=made, items=[services.ItemSpec(trajectories=[run])])
    return made


@pytest.fixture
def person(rating: Campaign, annotator: User) -> Annotator:
    return services.annotator_for(project=rating.project, user=annotator)


def test_a_batch_is_held_and_submitted(rating: Campaign, person: Annotator, annotator: User) -> None:
    batch = services.assign_batch(campaign=rating, annotator=person, size=3)
    assert {assignment.state for assignment in batch} == {State.ASSIGNED}
    assert rating.items.filter(claimed_count=1).count() == 3
    again = services.assign_batch(campaign=rating, annotator=person, size=3)
    assert {each.pk for each in again} == {each.pk for each in batch}  # the page loaded again holds no more
    services.submit_form(
        assignments=Assignment.objects.filter(pk=batch[0].pk),
        fields={"rating-left": "accept"},
        idempotency_key=uuid.uuid4(),
        by=annotator,
    )
    assert rating.items.filter(completed_count=1).count() == 1
    assert len(services.assign_batch(campaign=rating, annotator=person, size=12)) == 4  # all that is left


def test_a_batch_that_is_left_returns_to_the_queue(
    rating: Campaign, person: Annotator, researcher: User
) -> None:
    batch = services.assign_batch(campaign=rating, annotator=person)
    other = services.annotator_for(project=rating.project, user=researcher)
    assert services.assign_batch(campaign=rating, annotator=other) == []
    Assignment.objects.filter(pk=batch[0].pk).update(is_reserved=True, lock_expires_at=None)  # a researcher's
    Assignment.objects.filter(is_reserved=False).update(lock_expires_at=timezone.now() - timedelta(minutes=1))
    assert services.expire_locks(campaign=rating) == 4
    assert len(services.assign_batch(campaign=rating, annotator=other)) == 4


def test_one_by_one_goes_on_with_the_batch(rating: Campaign, person: Annotator) -> None:
    batch = services.assign_batch(campaign=rating, annotator=person, size=2)
    locked = services.assign_next_item(campaign=rating, annotator=person)
    assert locked is not None and locked.pk in {row.pk for row in batch} and locked.state == State.LOCKED
    assert {row.pk for row in services.assign_batch(campaign=rating, annotator=person, size=2)} == {
        row.pk for row in batch
    }


def test_gold_is_mixed_in_practice_comes_first_and_limits_hold(rating: Campaign, person: Annotator) -> None:
    first, second = rating.items.order_by("pk")[:2]
    Item.objects.filter(pk=first.pk).update(purpose="gold", overlap=0)
    services.update_campaign(campaign=rating, gold_percent=100, max_items_per_annotator=3)
    rating.refresh_from_db()
    batch = services.assign_batch(campaign=rating, annotator=person)
    assert len(batch) == 3 and [row.item_id for row in batch].count(first.pk) == 1
    Item.objects.filter(pk=second.pk).exclude(assignments__annotator=person)
    Item.objects.filter(campaign=rating, assignments=None).update(purpose="practice", overlap=0)
    with pytest.raises(Conflict, match="Practice items come first"):
        services.assign_batch(campaign=rating, annotator=person)
