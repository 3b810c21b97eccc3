"""Links into a project: good for whom and how long they say, shown once, never logged."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.invitations import accept, invite, register, revoke_invitation
from apps.accounts.models import AuditEvent, Invitation, Membership, Project, Role, Scope, User
from apps.accounts.services import create_api_key, create_project, create_user
from apps.core.errors import Conflict, DomainError, Forbidden, NotFound
from apps.core.logs import Redactor
from tests.api_calls import ApiCaller
from tests.factories import make_member

GOOD = "correct horse battery"


@pytest.fixture
def owner(db: None) -> User:
    return create_user(email="olga@example.org", password=GOOD)[0]


@pytest.fixture
def project(owner: User) -> Project:
    return create_project(slug="desk", name="Support desk", owner=owner)


def link(project: Project, owner: User, **more: Any) -> str:
    return invite(project=project, role=more.pop("role", Role.ANNOTATOR), by=owner, **more)[1]


def role_of(user: User) -> str:
    return Membership.objects.get(user=user).role


def test_a_new_person_comes_in_and_the_link_is_used_up(project: Project, owner: User) -> None:
    token = link(project, owner, role=Role.REVIEWER)
    assert role_of(register(token=token, email="Nora@Example.org", password=GOOD, name="Nora")) == "reviewer"
    with pytest.raises(NotFound, match="no longer valid"):
        register(token=token, email="other@example.org", password=GOOD)
    assert not User.objects.filter(email="other@example.org").exists()
    verbs = list(AuditEvent.objects.filter(project=project).values_list("verb", flat=True))
    assert {"invitation.created", "invitation.accepted", "member.added"} <= set(verbs)


def test_who_is_a_member_stays_what_she_is(project: Project, owner: User) -> None:
    token = link(project, owner)
    assert accept(token=token, user=owner).role == "owner"
    assert Invitation.objects.get().uses == 0


def test_a_link_for_one_address_is_for_nobody_else(project: Project, owner: User) -> None:
    token = link(project, owner, email="Nora@example.org", most_uses=5)
    with pytest.raises(Forbidden, match="nora"):
        accept(token=token, user=create_user(email="eve@example.org")[0])
    assert register(token=token, email="eve2@example.org", password=GOOD).email == "nora@example.org"


def test_what_is_over_or_revoked_opens_nothing(project: Project, owner: User) -> None:
    late, closed = link(project, owner), link(project, owner, most_uses=3)
    Invitation.objects.filter(most_uses=1).update(expires_at=timezone.now() - timedelta(seconds=1))
    revoke_invitation(invitation=Invitation.objects.get(most_uses=3), by=owner)
    for token in (late, closed, "tsi_00000000_guessed", ""):
        with pytest.raises(NotFound):
            accept(token=token, user=owner)


def test_a_known_address_logs_in_instead_and_passwords_are_checked(project: Project, owner: User) -> None:
    token = link(project, owner)
    with pytest.raises(Conflict, match="already a user"):
        register(token=token, email=owner.email, password=GOOD)
    with pytest.raises(DomainError, match="common"):
        register(token=token, email="nora@example.org", password="password123")
    assert Invitation.objects.get().uses == 0


@pytest.mark.parametrize("bad", [{"most_uses": 0}, {"days": 91}])
def test_bounds(project: Project, owner: User, bad: dict[str, int]) -> None:
    with pytest.raises(DomainError, match="to"):
        link(project, owner, **bad)


def test_the_pages(client: Client, project: Project, owner: User) -> None:
    client.force_login(owner)
    made = client.post(
        reverse("accounts:invitation-create", args=["desk"]),
        {"invitation-role": "annotator", "invitation-most_uses": "2", "invitation-days": "3"},
    )
    url = made.context["link"]
    assert url.startswith("http://testserver/join/tsi_") and url in made.content.decode()
    listed = client.get(reverse("accounts:member-list", args=["desk"])).content.decode()
    assert "0 of 2" in listed and url not in listed
    guest = Client()
    page = guest.get(url)
    assert page["Cache-Control"].startswith("max-age=0") and "Join Support desk" in page.content.decode()
    refused = guest.post(url, {"email": owner.email, "password": GOOD})
    assert refused.status_code == 422 and "Log in with it instead" in refused.content.decode()
    assert guest.post(url, {"email": "nora@example.org", "password": "short"}).status_code == 422
    assert guest.post(url, {"email": "nora@example.org", "password": GOOD})["Location"] == "/p/desk/"
    assert guest.get("/p/desk/").status_code == 200
    other = Client()
    other.force_login(create_user(email="zoe@example.org")[0])
    assert "Join as zoe@example.org" in other.get(url).content.decode()
    assert other.post(url).status_code == 302
    assert Client().get(url).status_code == 404  # two have used it
    again = client.post(
        reverse("accounts:invitation-create", args=["desk"]),
        {"invitation-role": "king", "invitation-most_uses": "2", "invitation-days": "3"},
    )
    assert again.status_code == 422
    client.post(reverse("accounts:invitation-revoke", args=["desk", Invitation.objects.get().pk]))
    assert Invitation.objects.get().revoked_at is not None


def test_a_token_is_no_word_of_a_log(project: Project, owner: User) -> None:
    token = link(project, owner)
    said = Redactor([])(f"GET /join/{token} 200")
    assert token[13:] not in said and token[:12] in said


def test_the_key_of_a_service_account_makes_no_owners(project: Project, owner: User) -> None:
    key = create_api_key(project=project, scopes=[Scope.ADMIN])[0]
    with pytest.raises(Forbidden, match="Only a person may make someone an owner"):
        invite(project=project, role=Role.OWNER, by=key)
    call = ApiCaller(project, Scope.ADMIN)
    call("POST", "/members", {"email": "new@example.org", "role": "owner"})
    assert call.status == 403 and not User.objects.filter(email="new@example.org").exists()
    member = make_member(project, "member@example.org", Role.RESEARCHER)
    call("PATCH", f"/members/{member.email}", {"role": "owner"})
    assert call.status == 403 and Membership.objects.get(user=member).role == Role.RESEARCHER
    own = create_api_key(project=project, scopes=[Scope.ADMIN], owner=owner)[0]
    assert invite(project=project, role=Role.OWNER, by=own)[1].startswith("tsi_")
    assert invite(project=project, role=Role.ANNOTATOR, by=key)[1].startswith("tsi_")
