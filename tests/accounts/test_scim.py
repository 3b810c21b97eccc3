"""A directory makes, changes and closes accounts: asked by the peers' own client and checker."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.accounts import services
from apps.accounts.models import ApiKey, AuditEvent, Project, User
from apps.accounts.pseudonyms import person_pseudonym

TOKEN = "t" * 32


@pytest.fixture(autouse=True)
def token(settings: Any) -> None:
    settings.SCIM_TOKEN = TOKEN


def ask(method: str, path: str, body: Any = None, token: str = TOKEN) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    data = json.dumps(body) if body is not None else ""
    return Client().generic(
        method, f"/scim/v2/{path}", data, content_type="application/scim+json", headers=headers
    )


def make(**more: Any) -> Any:
    body = {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "kim@example.org", **more}
    return ask("POST", "Users", body)


@pytest.mark.django_db(transaction=True)
def test_the_peers_checker_finds_no_fault(live_server: Any, settings: Any) -> None:
    settings.PUBLIC_URL = live_server.url
    command = [sys.executable, str(Path(__file__).with_name("scim_checker.py"))]
    done = subprocess.run(
        [*command, f"{live_server.url}/scim/v2", TOKEN], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    bad = [f"{title}: {reason}" for status, title, reason in results if status in ("ERROR", "CRITICAL")]
    assert bad == [], "\n".join(bad)
    assert sum(status == "SUCCESS" for status, _, _ in results) > 15


def test_a_life_of_an_account(db: None, project: Project, people: dict[str, User]) -> None:
    made = make(displayName="Kim", externalId="00u1")
    assert made.status_code == 201 and made.headers["Content-Type"] == "application/scim+json"
    document = made.json()
    user = User.objects.get(email="kim@example.org")
    assert (document["id"], document["active"], user.name) == (str(user.pk), True, "Kim")
    assert not user.has_usable_password()
    assert made.headers["Location"] == document["meta"]["location"]
    found = ask("GET", "Users?filter=userName%20eq%20%22KIM@example.org%22").json()
    assert (found["totalResults"], found["Resources"][0]["externalId"]) == (1, "00u1")
    assert ask("GET", "Users?filter=userName%20eq%20%22nobody%22").json()["Resources"] == []
    assert make().status_code == 409 and make().json()["scimType"] == "uniqueness"
    services.set_member(project=project, user=user, role=services.Role.OWNER, by=None)
    services.create_api_key(project=project, scopes=["ingest"], by=user)
    browser = Client()
    browser.force_login(user)
    off = {"Operations": [{"op": "Replace", "path": "active", "value": "False"}]}
    assert ask("PATCH", f"Users/{user.pk}", off).json()["active"] is False
    assert browser.get("/account/sessions").status_code == 302
    assert not ApiKey.objects.filter(owner_user=user, revoked_at=None).exists()
    event = AuditEvent.objects.get(verb="user.closed")
    assert (event.actor, event.target) == ("SCIM", person_pseudonym("kim@example.org"))
    on = {"Operations": [{"op": "replace", "value": {"active": True, "displayName": "Kim K"}}]}
    assert ask("PATCH", f"Users/{user.pk}", on).json()["displayName"] == "Kim K"
    assert ask("DELETE", f"Users/{user.pk}").status_code == 204
    assert ask("GET", f"Users/{user.pk}").status_code == 404
    user.refresh_from_db()
    assert not user.is_active  # closed, not deleted: what was judged stays theirs
    again = make(displayName="Kim")
    assert (again.status_code, again.json()["id"], again.json()["active"]) == (201, str(user.pk), True)


def test_people_who_came_by_other_ways_are_seen_and_closed(people: dict[str, User]) -> None:
    found = ask("GET", "Users?filter=userName%20eq%20%22annotator@example.org%22").json()["Resources"][0]
    assert found["id"] == str(people["annotator"].pk)
    assert ask("GET", "Users?count=2&startIndex=2").json()["itemsPerPage"] == 2
    ask("PUT", f"Users/{found['id']}", {"userName": "annotator@example.org", "active": False})
    people["annotator"].refresh_from_db()
    assert not people["annotator"].is_active


def test_another_address_signs_out_and_stays_the_same_person(people: dict[str, User]) -> None:
    user, browser = people["annotator"], Client()
    browser.force_login(user)
    before = person_pseudonym(user.email)
    ask("PUT", f"Users/{user.pk}", {"userName": "new@example.org"})
    user.refresh_from_db()
    assert (user.email, user.email_verified_at) == ("new@example.org", None)
    assert browser.get("/account/sessions").status_code == 302
    assert person_pseudonym("new@example.org") == before
    taken = ask("PUT", f"Users/{user.pk}", {"userName": "x", "emails": [{"value": "owner@example.org"}]})
    assert taken.status_code == 409


@pytest.mark.parametrize("sent", ["", "wrong", "T" * 32, "t" * 31, "\u00e9" * 32])
def test_a_stranger_learns_nothing(db: None, sent: str) -> None:
    for path in ("Users", "Users/1", "Schemas", "ServiceProviderConfig", "Groups"):
        answer = ask("GET", path, token=sent.encode("ascii", "ignore").decode())
        assert answer.status_code == 401 and "WWW-Authenticate" in answer.headers
        assert answer.json()["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]


def test_a_projects_key_opens_nothing(project: Project, people: dict[str, User]) -> None:
    _, secret = services.create_api_key(project=project, scopes=["admin"], by=people["owner"])
    assert ask("GET", "Users", token=secret).status_code == 401


def test_without_a_token_there_is_no_service(db: None, settings: Any) -> None:
    settings.SCIM_TOKEN = ""
    assert ask("GET", "Users").status_code == 404
    assert ask("GET", "Users", token="").status_code == 404


WRONG: list[tuple[str, str, Any, int]] = [
    ("POST", "Users", {}, 400),
    ("POST", "Users", [], 400),
    ("POST", "Users", {"userName": 1}, 400),
    ("POST", "Users", {"userName": "no address"}, 400),
    ("POST", "Users", {"userName": "a\0@example.org"}, 400),
    ("POST", "Users", {"userName": "x" * 300}, 400),
    ("POST", "Users", {"userName": "a@example.org", "active": "maybe"}, 400),
    ("POST", "Users", {"userName": "a@example.org", "emails": "a"}, 400),
    ("POST", "Users", {"userName": "a@example.org", "displayName": "n" * 300}, 400),
    ("GET", "Users?filter=userName%20co%20%22a%22", None, 400),
    ("GET", "Users?filter=password%20eq%20%22a%22", None, 400),
    ("GET", "Users?filter=%22", None, 400),
    ("GET", "Users?count=many", None, 400),
    ("GET", "Users/99999999999999999999", None, 404),
    ("GET", "Users/%00", None, 404),
    ("GET", "Users/..", None, 404),
    ("PATCH", "Users/ID", {"Operations": []}, 400),
    ("PATCH", "Users/ID", {"Operations": [{"op": "move", "path": "active"}]}, 400),
    ("PATCH", "Users/ID", {"Operations": [{"op": "remove"}]}, 400),
    ("PATCH", "Users/ID", {"Operations": [{"op": "replace", "path": "id", "value": "7"}]}, 400),
    ("PATCH", "Users/ID", {"Operations": ["x"]}, 400),
    ("DELETE", "Users", None, 405),
    ("GET", "Groups", None, 404),
    ("GET", "Me", None, 404),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), WRONG)
def test_what_is_wrong_is_said_as_the_standard_has_it(
    owner: User, method: str, path: str, body: Any, status: int
) -> None:
    answer = ask(method, path.replace("ID", str(owner.pk)), body)
    assert answer.status_code == status, answer.content
    told = answer.json()
    assert told["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"] and told["status"] == str(
        status
    )
    owner.refresh_from_db()
    assert owner.is_active


def test_a_body_that_is_no_json_is_refused(db: None) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    bodies = (
        ("{", "application/json", 400),
        ("{}", "text/plain", 415),
        ("[" * 9999, "application/json", 400),
    )
    for text, kind, status in bodies:
        answer = Client().post("/scim/v2/Users", text, content_type=kind, headers=headers)
        assert answer.status_code == status


def test_a_short_token_is_refused_at_the_start() -> None:
    code = "import apps.config.settings"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
        env=os.environ | {"TOUCHSTONE_SCIM_TOKEN": "short"},
    )  # fmt: skip
    assert "must have at least 32 characters" in done.stderr and "short" not in done.stderr
