"""What a removed member had given out, or still has, opens nothing: links, letters, pages. Keys are in test_keys.py."""

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts import services
from apps.accounts.account_links import Purpose, link_for, show_link
from apps.accounts.invitations import accept, invite
from apps.accounts.models import Membership, Project, Role, User
from apps.core.errors import Forbidden, NotFound
from apps.webhooks.models import Webhook


@pytest.fixture
def second(project: Project, people: dict[str, User], owner: User) -> User:
    user = people["reviewer"]
    services.set_member(project=project, user=user, role=Role.OWNER, by=owner)
    return user


def end(project: Project, user: User, by: User, how: str) -> None:
    if how == "removed":
        services.remove_member(membership=project.memberships.get(user=user), by=by)
    elif how == "lowered":
        services.set_member(project=project, user=user, role=Role.RESEARCHER, by=by)
    else:  # past every service of ours
        Membership.objects.filter(project=project, user=user).delete()


@pytest.mark.parametrize("how", ["removed", "lowered", "deleted"])
def test_a_link_into_the_project_ends_with_its_maker(
    project: Project, people: dict[str, User], owner: User, second: User, how: str
) -> None:
    """An owner who was removed came back by the link they had made."""
    _, token = invite(project=project, role=Role.OWNER, by=second, most_uses=5)
    _, other = invite(project=project, role=Role.REVIEWER, by=owner)
    end(project, second, owner, how)
    for user in (second, people["stranger"]):
        with pytest.raises(NotFound, match="no longer valid"):
            accept(token=token, user=user)
    assert accept(token=other, user=people["stranger"]).role == "reviewer"


def test_who_was_removed_does_not_come_back_by_an_older_link(
    project: Project, people: dict[str, User], owner: User
) -> None:
    _, token = invite(project=project, role=Role.ANNOTATOR, by=owner, most_uses=5)
    user = people["annotator"]
    services.remove_member(membership=project.memberships.get(user=user), by=owner)
    with pytest.raises(Forbidden, match="removed from this project"):
        accept(token=token, user=user)
    _, new = invite(project=project, role=Role.ANNOTATOR, by=owner)
    assert accept(token=new, user=user).role == "annotator"


@pytest.mark.parametrize("how", ["removed", "lowered"])
def test_a_link_to_a_members_password_ends_with_its_maker(
    project: Project, people: dict[str, User], owner: User, second: User, how: str
) -> None:
    _, token = show_link(user=people["annotator"], purpose=Purpose.PASSWORD, by=second, project=project)
    assert link_for(token).user == people["annotator"]
    end(project, second, owner, how)
    with pytest.raises(NotFound):
        link_for(token)


def test_sessions_open_nothing_of_the_project(project: Project, people: dict[str, User], owner: User) -> None:
    user, client = people["researcher"], Client()
    client.force_login(user)
    pages = [reverse("datasets:export-list", args=["desk"]), reverse("accounts:project-home", args=["desk"])]
    assert {client.get(page).status_code for page in pages} == {200}
    services.remove_member(membership=project.memberships.get(user=user), by=owner)
    assert {client.get(page).status_code for page in pages} == {404}
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert client.get(reverse("accounts:home")).status_code == 302


def test_the_page_names_webhooks_of_who_left(
    project: Project, people: dict[str, User], owner: User, second: User
) -> None:
    for user in (owner, second):
        Webhook.objects.create(
            project=project, url=f"https://{user.name}.example.org/", events=["run.finished"], created_by=user
        )
    services.remove_member(membership=project.memberships.get(user=second), by=owner)
    client = Client()
    client.force_login(owner)
    left = client.get(reverse("webhooks:webhook-list", args=["desk"])).context["left"]
    assert [webhook.created_by for webhook in left] == [second]
