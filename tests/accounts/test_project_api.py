"""Projects, members, invitations and keys over the JSON API."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.invitations import invitation_of
from apps.accounts.models import ApiKey, AuditEvent, IdempotentResponse, Invitation, Membership, Project, User
from apps.accounts.selectors import api_key_for
from apps.accounts.services import create_api_key
from tests.api_calls import ApiCaller
from tests.factories import make_member


@pytest.fixture
def call(project: Project) -> ApiCaller:
    return ApiCaller(project)


def test_a_project_is_read_and_changed(call: ApiCaller, project: Project) -> None:
    before = call("GET", "")
    assert before["slug"] == "desk" and before["annotators_see_models"] is False
    changed = call("PATCH", "", {"name": "  The   desk ", "annotators_see_models": True})
    assert changed == before | {"name": "The desk", "annotators_see_models": True}
    assert call("PATCH", "", {}) == changed
    refused = call("PATCH", "", {"require_two_factor": True})  # the page checks that you could still come in
    assert call.status == 422 and refused["pointer"] == "/require_two_factor"
    verbs = set(AuditEvent.objects.filter(project=project).values_list("verb", flat=True))
    assert {"project.renamed", "project.models_shown"} <= verbs


def test_the_list_of_projects_is_the_keys_own(project: Project, outsider: User) -> None:
    secret = create_api_key(project=project, scopes=["reward"], by=None)[1]
    answer = Client(headers={"Authorization": f"Bearer {secret}"}).get("/api/v1/projects").json()
    assert [row["slug"] for row in answer["items"]] == ["desk"] and answer["next"] is None


def test_a_key_learns_its_scopes(project: Project) -> None:
    key, secret = create_api_key(project=project, scopes=["reward", "ingest"], by=None)
    answer = Client(headers={"Authorization": f"Bearer {secret}"}).get("/api/v1/key").json()
    assert (answer["prefix"], answer["live"]) == (key.prefix, True)
    assert set(answer["scopes"]) == {"reward", "ingest"} and secret not in str(answer)


def test_a_new_person_becomes_a_member_by_a_link(call: ApiCaller, project: Project, owner: User) -> None:
    added = call("POST", "/members", {"email": " New@Example.org", "role": "reviewer"})
    assert call.status == 201
    assert (added["email"], added["member"], added["mailed"]) == ("new@example.org", True, False)
    assert Client().get(urlsplit(added["link"]).path).status_code == 200
    assert call("GET", "/members/NEW@example.org")["role"] == "reviewer"
    call("POST", "/members", {"email": "new@example.org"})
    assert call.status == 409
    refused = call("POST", "/members", {"email": "not an address"})
    assert call.status == 400 and refused["pointer"] == "/email"


def test_an_unverified_account_is_invited_and_a_verified_one_added(
    call: ApiCaller, project: Project, outsider: User
) -> None:
    invited = call("POST", "/members", {"email": outsider.email})
    assert invited["member"] is False and "/join/" in invited["link"]
    assert not project.memberships.filter(user=outsider).exists()
    outsider.email_verified_at = timezone.now()
    outsider.save()
    assert call("POST", "/members", {"email": outsider.email}) == {
        "email": outsider.email, "role": "annotator", "member": True, "mailed": False, "link": None,
    }  # fmt: skip


def test_roles_change_and_the_last_owner_stays(call: ApiCaller, project: Project, owner: User) -> None:
    other = make_member(project, "second@example.org", "owner")
    secret = create_api_key(project=project, scopes=["admin"], by=other, owner=other)[1]
    assert call("PATCH", f"/members/{other.email}", {"role": "annotator"})["role"] == "annotator"
    assert api_key_for(secret) is None  # an annotator's key opens nothing
    call("PATCH", f"/members/{owner.email}", {"role": "annotator"})
    assert call.status == 409
    call("DELETE", f"/members/{owner.email}")
    assert call.status == 409 and Membership.objects.get(user=owner).role == "owner"
    call("PATCH", f"/members/{other.email}", {"role": "king"})
    assert call.status == 422
    assert call("DELETE", f"/members/{other.email}") is None and call.status == 204
    assert [row["email"] for row in call.all_pages("/members", 1)] == [owner.email]
    removed = AuditEvent.objects.get(verb="member.removed")
    assert removed.actor.startswith("tsk_")


def test_an_invitation_is_made_listed_and_revoked(call: ApiCaller, project: Project, owner: User) -> None:
    made = call("POST", "/invitations", {"role": "annotator", "most_uses": 3, "days": 2})
    token = urlsplit(made["link"]).path.rpartition("/")[2]
    assert invitation_of(token).pk == made["id"]
    listed = call("GET", "/invitations")["items"]
    assert listed == [{key: value for key, value in made.items() if key != "link"}]
    call("DELETE", f"/invitations/{made['id']}")
    assert call.status == 204 and not Invitation.objects.get().is_live
    assert call("GET", "/invitations")["items"][0]["live"] is False
    call("POST", "/invitations", {"days": 91})
    assert call.status == 422


def test_an_invitation_by_a_members_key_ends_with_their_role(project: Project, owner: User) -> None:
    second = make_member(project, "second@example.org", "owner")
    call = ApiCaller(project)
    ApiKey.objects.update(owner_user=second, owner_service_account=None)
    call("POST", "/invitations", {})
    assert Invitation.objects.get().created_by == second
    ApiCaller(project)("PATCH", f"/members/{second.email}", {"role": "reviewer"})
    assert not Invitation.objects.get().is_live


def test_keys_are_listed_and_revoked(call: ApiCaller, project: Project, owner: User) -> None:
    key, secret = create_api_key(project=project, scopes=["reward"], name="trainer", by=owner)
    rows = call.all_pages("/keys", 1)
    assert [row["owner_kind"] for row in rows] == ["member", "service account"]
    assert rows[0]["owner"] == owner.email and rows[0]["live"] and secret not in str(rows)
    call("DELETE", f"/keys/{key.prefix}")
    assert call.status == 204 and api_key_for(secret) is None
    assert call("GET", "/keys")["items"][0]["live"] is False
    call("DELETE", "/keys/tsk_nothing")
    assert call.status == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("invitations", {"role": "annotator"}),
        ("members", {"email": "new@example.org"}),
        ("webhooks", {"url": "http://127.0.0.1/hook", "events": ["run.finished"]}),
    ],
)
def test_what_is_shown_once_is_kept_encrypted_for_a_repeated_request(
    project: Project, settings: Any, path: str, body: dict[str, Any]
) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    secret = create_api_key(project=project, scopes=["admin"], by=None)[1]
    client = Client(headers={"Authorization": f"Bearer {secret}", "Idempotency-Key": "once"})
    first, second = (
        client.post(f"/api/v1/projects/desk/{path}", body, content_type="application/json") for _ in range(2)
    )
    assert first.status_code == second.status_code == 201, first.json()
    assert first.json() == second.json() and second["Idempotent-Replay"] == "true"
    shown = first.json().get("link") or first.json()["secret"]
    kept = IdempotentResponse.objects.get().body
    assert kept.startswith("encrypted:") and shown not in kept and body.get("email", "?") not in kept
