"""Below researcher a trajectory is shown to whom it was assigned, with its pictures, and to no one else."""

import base64
import io
from typing import Any

import pytest

from apps.accounts.models import Project, User
from apps.annotation import services
from apps.annotation.models import Assignment, Campaign, Item, ItemTrajectory
from apps.trajectories.models import Attachment, Trajectory
from apps.trajectories.services import import_trajectories
from tests.factories import make_member, signed_in
from tests.trajectories.conftest import lines, record
from tests.trajectories.test_views import PNG

STATES = [state for state in Assignment.State if state != Assignment.State.BY_JUDGE]


def imported(project: Project, *records: Any) -> list[Trajectory]:
    before = set(Trajectory.objects.values_list("pk", flat=True))
    import_trajectories(project=project, stream=io.BytesIO(lines(*records)), format="openai", by=None)
    return list(Trajectory.objects.exclude(pk__in=before).order_by("pk"))


def item_with(campaign: Campaign, *trajectories: Trajectory, **more: Any) -> Item:
    item = Item.objects.create(
        campaign=campaign, task=trajectories[0].task, key=f"k{trajectories[0].pk}", overlap=1, **more
    )
    for position, row in enumerate(trajectories):
        ItemTrajectory.objects.create(item=item, trajectory=row, position=position)
    return item


def seen(user: User, trajectory: Trajectory) -> set[int]:
    client, path = signed_in(user), f"/p/desk/trajectories/{trajectory.pk}/steps/"
    return {client.get(path).status_code, client.get(f"{path}0/").status_code}


def test_without_an_assignment_nothing_is_shown(
    project, campaign, annotator, other_annotator, researcher
) -> None:
    mine, other, loose = imported(project, record(1), record(2), record(3))
    item = item_with(campaign, mine)
    item_with(campaign, other)
    Assignment.objects.create(
        item=item,
        annotator=services.annotator_for(project=project, user=annotator),
        state="submitted",
    )
    assert [seen(annotator, row) for row in (mine, other, loose)] == [{200}, {404}, {404}]
    assert [seen(other_annotator, row) for row in (mine, other, loose)] == [{404}, {404}, {404}]
    assert [seen(researcher, row) for row in (mine, other, loose)] == [{200}, {200}, {200}]


@pytest.mark.parametrize("state", STATES)
def test_whatever_became_of_it_what_was_assigned_stays_readable(project, campaign, annotator, state) -> None:
    """A page that is open goes on loading its steps after the time for it ran out."""
    (mine,) = imported(project, record(1))
    times = {"lock_expires_at": "2030-01-01T00:00Z"} if state == "locked" else {}
    annotator_row = services.annotator_for(project=project, user=annotator)
    Assignment.objects.create(item=item_with(campaign, mine), annotator=annotator_row, state=state, **times)
    assert seen(annotator, mine) == {200}


def test_examples_are_for_every_annotator_and_items_for_reviewers(project, campaign, annotator) -> None:
    example, item, loose = imported(project, record(1), record(2), record(3))
    item_with(campaign, example, purpose=Item.Purpose.EXAMPLE)
    item_with(campaign, item)
    reviewer = make_member(project, "rev@example.org", "reviewer")
    assert [seen(annotator, row) for row in (example, item, loose)] == [{200}, {404}, {404}]
    assert [seen(reviewer, row) for row in (example, item, loose)] == [{200}, {200}, {404}]


def test_a_researcher_who_looks_as_an_annotator_sees_what_they_would(project, campaign, researcher) -> None:
    (row,) = imported(project, record(1))
    client = signed_in(researcher)
    client.post("/p/desk/as-annotator")
    assert client.get(f"/p/desk/trajectories/{row.pk}/steps/").status_code == 404


def test_an_assignment_in_one_project_opens_nothing_in_another(project, campaign, annotator) -> None:
    other = Project.objects.create(slug="other", name="Other")
    (theirs,) = imported(other, record(1))
    make_member(other, "x@example.org", "owner")
    Assignment.objects.create(
        item=item_with(
            services.create_campaign(project=other, name="C", feedback_types=["pairwise"]), theirs
        ),
        annotator=services.annotator_for(project=other, user=annotator),
        state="submitted",
    )
    assert seen(annotator, theirs) == {404}


def with_picture(number: int) -> dict[str, Any]:
    """A trajectory of a picture of its own."""
    data = base64.b64encode(PNG + bytes([number])).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    messages = [{"role": "user", "content": [part]}, {"role": "assistant", "content": "a"}]
    return {"task": f"t{number}", "messages": messages}


def test_pictures_go_with_the_trajectories_that_have_them(
    own_home, project, campaign, annotator, researcher
) -> None:
    mine, other = imported(project, with_picture(1), with_picture(2))
    annotator_row = services.annotator_for(project=project, user=annotator)
    Assignment.objects.create(item=item_with(campaign, mine), annotator=annotator_row, state="submitted")
    item_with(campaign, other)
    digests = list(Attachment.objects.order_by("pk").values_list("sha256", flat=True))
    assert len(digests) == 2

    def statuses(user: User) -> list[int]:
        client = signed_in(user)
        paths = [f"/p/desk/trajectories/attachments/{digest}/small/" for digest in digests]
        return [client.get(path).status_code for path in paths]

    assert statuses(annotator) == [200, 404]
    assert statuses(researcher) == [200, 200]
