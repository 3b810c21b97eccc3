"""Adding people, changing what they are, and never losing the last owner."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts import selectors, services
from apps.accounts.models import Project, User


def test_somebody_new_gets_a_link_and_nobody_sees_a_password(
    as_: Callable[[str], Client], project: Project
) -> None:
    client = as_("owner")
    answer = client.post(
        reverse("accounts:member-add", args=["desk"]), {"email": "New@Example.org", "role": "reviewer"}
    )
    link = answer.context["link"]
    assert "/link/tsl_" in link and link in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    new = User.objects.get(email="new@example.org")
    assert not new.has_usable_password()
    assert project.memberships.get(user=new).role == "reviewer"
    assert link not in client.get(reverse("accounts:member-list", args=["desk"])).content.decode()


def test_somebody_known_and_verified_is_a_member_and_keeps_the_password(
    as_: Callable[[str], Client], project: Project, people: dict[str, User]
) -> None:
    User.objects.filter(pk=people["stranger"].pk).update(email_verified_at=timezone.now())
    before = people["stranger"].password
    data = {"email": "stranger@example.org", "role": "annotator"}
    answer = as_("owner").post(reverse("accounts:member-add", args=["desk"]), data)
    assert answer.status_code == 302
    people["stranger"].refresh_from_db()
    assert people["stranger"].password == before
    assert project.memberships.filter(user=people["stranger"], role="annotator").exists()


def test_somebody_known_whose_address_nothing_shows_is_asked_first(
    as_: Callable[[str], Client], project: Project, people: dict[str, User]
) -> None:
    data = {"email": "stranger@example.org", "role": "owner"}
    answer = as_("owner").post(reverse("accounts:member-add", args=["desk"]), data)
    assert "has an account with an unverified address" in answer.content.decode()
    assert not project.memberships.filter(user=people["stranger"]).exists()
    outsider = as_("stranger")
    (invitation,) = outsider.get(reverse("accounts:home")).context["invitations"]
    accept = reverse("accounts:invitation-accept", args=[invitation.pk])
    refused = outsider.post(accept)
    assert (refused.status_code, "Verify your address" in refused.content.decode()) == (403, True)
    User.objects.filter(pk=people["stranger"].pk).update(email_verified_at=timezone.now())
    assert outsider.post(accept)["Location"] == "/p/desk/"
    assert project.memberships.get(user=people["stranger"]).role == "owner"
    assert as_("annotator").post(accept).status_code == 404  # of another address


def test_the_link_that_was_handed_over_lets_in_as_well(
    as_: Callable[[str], Client], project: Project, people: dict[str, User]
) -> None:
    data = {"email": "stranger@example.org", "role": "annotator"}
    link = as_("owner").post(reverse("accounts:member-add", args=["desk"]), data).context["link"]
    assert "/join/tsi_" in link
    assert as_("annotator").post(link).status_code == 403
    assert as_("stranger").post(link)["Location"] == "/p/desk/"


def test_a_member_is_not_added_twice(as_: Callable[[str], Client], project: Project) -> None:
    data = {"email": "ANNOTATOR@example.org", "role": "owner"}
    answer = as_("owner").post(reverse("accounts:member-add", args=["desk"]), data)
    assert answer.status_code == 422
    assert "is a member already" in answer.content.decode()
    assert project.memberships.get(user__email="annotator@example.org").role == "annotator"


def test_a_role_is_changed_and_an_unknown_one_refused(as_: Callable[[str], Client], project: Project) -> None:
    member = project.memberships.get(user__email="annotator@example.org")
    url = reverse("accounts:member-change", args=["desk", member.pk])
    assert as_("owner").post(url, {"role": "researcher"}).status_code == 302
    member.refresh_from_db()
    assert member.role == "researcher"
    answer = as_("owner").post(url, {"role": "emperor"})
    assert answer.status_code == 400
    assert "There is no such role" in answer.content.decode()


def test_the_last_owner_can_neither_leave_nor_step_down(
    as_: Callable[[str], Client], project: Project
) -> None:
    member = project.memberships.get(role="owner")
    for name, data in (("member-remove", {}), ("member-change", {"role": "annotator"})):
        answer = as_("owner").post(reverse(f"accounts:{name}", args=["desk", member.pk]), data)
        assert answer.status_code == 409
        assert "only owner" in answer.content.decode()
    member.refresh_from_db()
    assert member.role == "owner"


def test_htmx_gets_the_sentence_alone(as_: Callable[[str], Client], project: Project) -> None:
    member = project.memberships.get(role="owner")
    url = reverse("accounts:member-remove", args=["desk", member.pk])
    answer = as_("owner").post(url, headers={"HX-Request": "true"})
    assert answer.status_code == 409
    assert "<html" not in answer.content.decode()
    assert "data-error" in answer.content.decode()


def test_removing_a_member_asks_what_becomes_of_their_keys(
    as_: Callable[[str], Client], project: Project, people: dict[str, User]
) -> None:
    first, second = (
        services.create_api_key(project=project, scopes=["train"], by=people[who], name=who)
        for who in ("researcher", "owner")
    )
    member = project.memberships.get(user=people["researcher"])
    url, client = reverse("accounts:member-remove", args=["desk", member.pk]), as_("owner")
    asked = client.post(url)
    assert (asked.status_code, asked.templates[0].name) == (200, "accounts/member_remove.html")
    assert first[0].prefix in asked.content.decode()
    assert second[0].prefix not in asked.content.decode()
    assert client.post(url, {"keys": "hand-over"}).status_code == 422
    assert project.memberships.filter(pk=member.pk).exists()
    assert client.post(url, {"keys": "hand-over", "service_account": "nightly"}).status_code == 302
    assert not project.memberships.filter(pk=member.pk).exists()
    key = selectors.api_key_for(first[1])
    assert key is not None
    assert str(key.owner_service_account) == "nightly"


def test_removing_a_member_revokes_their_keys(
    as_: Callable[[str], Client], project: Project, people: dict[str, User]
) -> None:
    key, secret = services.create_api_key(project=project, scopes=["train"], by=people["researcher"])
    member = project.memberships.get(user=people["researcher"])
    url = reverse("accounts:member-remove", args=["desk", member.pk])
    assert as_("owner").post(url, {"keys": "revoke"}).status_code == 302
    assert selectors.api_key_for(secret) is None
    key.refresh_from_db()
    assert key.revoked_at is not None
