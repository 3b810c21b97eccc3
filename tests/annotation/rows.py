"""Rows for the tests of this folder: the smallest that the services take."""

import hashlib
import uuid
from typing import Any

from apps.accounts.models import User
from apps.annotation import services
from apps.annotation.models import Annotation, Annotator, Assignment, Campaign, Item, Preference
from apps.trajectories.models import Step, Task, Trajectory


def trajectory(task: Task, words: str, *, texts: list[str] | None = None, **fields: Any) -> Trajectory:
    """One user step and agent steps that say `texts` (one that says `words`)."""
    said = texts or [words]
    row = Trajectory.objects.create(
        project=task.project,
        task=task,
        source_format="test",
        content_hash=hashlib.sha256(f"{task.pk} {words} {said}".encode()).hexdigest(),
        step_count=len(said) + 1,
        agent_step_count=len(said),
        token_count=10,
        **fields,
    )
    part = {"type": "text", "text": task.instruction, "source": None, "media_type": None, "extra": {}}
    Step.objects.create(trajectory=row, index=0, source="user", message=[part])
    Step.objects.bulk_create(
        Step(trajectory=row, index=n + 1, agent_step=n, source="agent", message=[part | {"text": text}])
        for n, text in enumerate(said)
    )
    return row


def pair(campaign: Campaign, name: str) -> Item:
    """An item of two runs of a task of its own."""
    task = Task.objects.create(project=campaign.project, external_id=name, instruction=f"Do {name}.")
    runs = [trajectory(task, f"{name} well", success=True), trajectory(task, f"{name} badly", success=False)]
    added = services.add_items(campaign=campaign, items=[services.ItemSpec(trajectories=runs)])
    return Item.objects.get(pk=added.items[0])


def annotator(campaign: Campaign, user: User) -> Annotator:
    return services.annotator_for(project=campaign.project, user=user)


def lease(campaign: Campaign, user: User) -> Assignment | None:
    return services.assign_next_item(campaign=campaign, annotator=annotator(campaign, user))


def leased(campaign: Campaign, user: User) -> Assignment:
    assignment = lease(campaign, user)
    assert assignment is not None
    return assignment


def submit(assignment: Assignment, user: User, choice: str = "a", **fields: Any) -> Annotation:
    return services.submit_annotation(
        assignment=assignment,
        idempotency_key=fields.pop("key", None) or uuid.uuid4(),
        records=[Preference(choice=choice, strength=fields.pop("strength", 1))],
        by=user,
        **fields,
    )


def let_expire(assignment: Assignment) -> None:
    from datetime import timedelta

    from django.utils import timezone

    Assignment.objects.filter(pk=assignment.pk).update(lock_expires_at=timezone.now() - timedelta(seconds=1))


def assert_counts_are_right(campaign: Campaign) -> None:
    """`claimed_count` and `completed_count` say what the assignments say."""
    for item in Item.objects.filter(campaign=campaign):
        theirs = item.assignments.filter(is_adjudication=False)
        held = theirs.filter(state__in=["locked", "assigned"]).count()
        counted = theirs.filter(annotations__is_surplus=False).distinct().count()
        assert (item.claimed_count, item.completed_count) == (held + counted, counted), item
        assert item.claimed_count <= item.overlap
