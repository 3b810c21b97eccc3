"""Items: once by key, never with itself, never across tasks."""

import pytest

from apps.accounts.models import Project
from apps.annotation import services
from apps.annotation.models import Campaign, Item
from apps.core.errors import DomainError
from apps.trajectories.models import Task
from tests.annotation import rows


def test_the_same_pair_in_any_order_is_one_item(campaign: Campaign, task: Task) -> None:
    first, second = rows.trajectory(task, "one"), rows.trajectory(task, "two")
    specs = [services.ItemSpec(trajectories=[first, second]), services.ItemSpec(trajectories=[second, first])]
    added = services.add_items(campaign=campaign, items=specs)
    assert (added.created, added.duplicates) == (1, 1)
    assert services.add_items(campaign=campaign, items=specs).created == 0
    places = Item.objects.get().places.order_by("position")
    assert [p.trajectory_id for p in places] == [first.pk, second.pk]


def test_wrong_items_are_refused_and_nothing_is_added(
    campaign: Campaign, task: Task, project: Project
) -> None:
    first, second = rows.trajectory(task, "one"), rows.trajectory(task, "two")
    other = rows.trajectory(Task.objects.create(project=project, external_id="other"), "three")
    elsewhere = Project.objects.create(slug="elsewhere", name="Elsewhere")
    far = Task.objects.create(project=elsewhere, external_id="far")
    theirs = [rows.trajectory(far, "four"), rows.trajectory(far, "five")]
    for places, message in (
        ([first], "needs 2"),
        ([first, first], "twice"),
        ([first, other], "different tasks"),
        (theirs, "another project"),
    ):
        good = services.ItemSpec(trajectories=[first, second])
        with pytest.raises(DomainError, match=message):
            services.add_items(campaign=campaign, items=[good, services.ItemSpec(trajectories=places)])
        assert not Item.objects.exists()
