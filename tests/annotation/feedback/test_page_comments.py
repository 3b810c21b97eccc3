"""Comments of trajectory pages become feedback, once each, and are read by metric induction."""

import io
from importlib import import_module

from django.apps import apps as installed
from django.test import Client

from apps.accounts.leaving import delete_user
from apps.accounts.models import Project, Role, User
from apps.annotation.feedback.page_comments import CAMPAIGN, copy_page_comments
from apps.annotation.models import Annotator, Assignment, Comment
from apps.datasets.erasure import erase_judgements, plan_erasure
from apps.metrics.selectors import list_comments
from apps.trajectories import comments, services
from apps.trajectories.models import Trajectory, TrajectoryComment
from tests.factories import make_member
from tests.trajectories.conftest import lines, record


def test_they_are_added_once_and_again_when_they_were_edited(
    project: Project, researcher: User, client: Client
) -> None:
    services.import_trajectories(project=project, stream=io.BytesIO(lines(record(), record())), by=None)
    first, second = Trajectory.objects.order_by("pk")  # equal in content
    on_step = comments.create_comment(trajectory=second, text="Slow.", step=1, sign=-1, by=researcher)
    comments.create_comment(trajectory=first, text="Good.", by=researcher)
    client.force_login(researcher)
    page = client.get("/p/desk/metrics/").content.decode()
    assert "2 comments on trajectory pages" in page
    assert client.post("/p/desk/metrics/page-comments/").status_code == 302
    rows = Comment.objects.order_by("pk")
    assert [(row.text, row.trajectory_id, row.first_step, row.last_step, row.sign) for row in rows] == [
        ("Slow.", second.pk, 1, 1, -1),
        ("Good.", first.pk, None, None, None),
    ]
    assert {row.annotation.assignment.item.campaign.name for row in rows} == {CAMPAIGN}
    assert list_comments(project, None).count() == 2
    again = copy_page_comments(project=project, by=researcher)
    assert (again.created, again.duplicates) == (0, 2)
    comments.edit_comment(comment=on_step, text="Very slow.", step=1, sign=-1, by=researcher)
    assert copy_page_comments(project=project, by=researcher).created == 1
    assert "Very slow." in set(list_comments(project, None).values_list("text", flat=True))


def commented(project: Project, *users: User) -> None:
    """A comment of each on one trajectory, copied."""
    services.import_trajectories(project=project, stream=io.BytesIO(lines(record())), by=None)
    for user in users:
        comments.create_comment(trajectory=Trajectory.objects.get(), text=f"By {user.email}.", by=user)
    copy_page_comments(project=project, by=users[0])


def people_of_one_name(project: Project) -> tuple[User, User]:
    people = (
        make_member(project, "ann@example.org", Role.RESEARCHER),
        make_member(project, "ann@example.com", Role.RESEARCHER),
    )
    User.objects.update(name="Ann")
    for person in people:
        person.refresh_from_db()
    return people


def test_copies_belong_to_the_account_and_are_deleted_with_its_data(project: Project) -> None:
    first, second = people_of_one_name(project)
    commented(project, first, second)
    assert set(Annotator.objects.values_list("user", "name")) == {
        (first.pk, "ann@example.org"),
        (second.pk, "ann@example.com"),
    }
    annotator = Annotator.objects.get(user=first)
    assert plan_erasure(annotator).page_comments == 1
    assert erase_judgements(annotator=annotator, by=None).page_comments == 1
    assert [row.text for row in Comment.objects.all()] == ["By ann@example.com."]
    assert [row.text for row in TrajectoryComment.objects.all()] == ["By ann@example.com."]


def test_copies_of_a_deleted_account_have_no_name_and_are_not_copied_again(project: Project) -> None:
    first, second = people_of_one_name(project)
    commented(project, first, second)
    delete_user(user=first, erase_comments=False, by=second, reason="asked")
    assert not Annotator.objects.filter(name__icontains="ann@example.org").exists()
    assert copy_page_comments(project=project, by=second).created == 0
    delete_user(user=second, erase_comments=True, by=None, reason="asked")
    assert "By ann@example.com." not in set(Comment.objects.values_list("text", flat=True))


def test_copies_of_before_get_their_account(project: Project) -> None:
    first, second = people_of_one_name(project)
    commented(project, first, second)
    by_name = Annotator.objects.create(project=project, name="Ann")
    Assignment.objects.update(annotator=by_name)
    Annotator.objects.exclude(pk=by_name.pk).delete()
    import_module("apps.annotation.migrations.0012_page_comment_authors").attribute_copies(installed, None)
    assert set(Assignment.objects.values_list("annotator__user", flat=True)) == {first.pk, second.pk}
