"""Single sign-on that an installation or a project enforces, and the operator's way around it."""

import os
import re
import subprocess
import sys
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from apps.accounts.account_links import Purpose, show_link
from apps.accounts.invitations import invite
from apps.accounts.models import AuditEvent, Membership, Project, Role, User
from apps.accounts.pseudonyms import person_pseudonym
from apps.accounts.services import create_project, create_user, set_member
from tests.accounts.conftest import PASSWORD
from tests.accounts.test_sign_on import Provider, provider, sign_on, who

__all__ = ["provider"]


@pytest.fixture
def nora(db: None) -> User:
    """Known to the provider, and owner of a project."""
    user, _ = create_user(email="nora@example.org", password=PASSWORD)
    user.email_verified_at = timezone.now()
    user.save()
    return user


@pytest.fixture
def desk(nora: User) -> Project:
    return create_project(slug="desk", owner=nora)


@pytest.fixture
def otto(desk: Project) -> User:
    user, _ = create_user(email="otto@example.org", password=PASSWORD)
    set_member(project=desk, user=user, role=Role.OWNER, by=None)
    return user


def by_password(user: User) -> tuple[Client, Any]:
    client = Client()
    return client, client.post("/login", {"username": user.email, "password": PASSWORD})


def operators_link(user: User, capsys: pytest.CaptureFixture[str]) -> str:
    call_command("create_login_link", user.email)
    path = re.search(r"/link/tsl_[\w-]+", capsys.readouterr().out)
    assert path is not None
    return path[0]


def test_a_project_asks_for_it(desk: Project, otto: User, provider: Provider) -> None:
    client, _ = by_password(otto)
    rules = {"single_sign_on": "on"}
    refused = client.post("/p/desk/people/sign-in-rules", rules)
    assert (refused.status_code, "by single sign-on yourself first" in refused.content.decode()) == (
        409,
        True,
    )
    hers = Client()
    sign_on(hers, provider)
    assert hers.post("/p/desk/people/sign-in-rules", rules).status_code == 302
    page = client.get("/p/desk/people")
    assert (page.status_code, "Log in with Example ID" in page.content.decode()) == (403, True)
    assert client.post("/p/desk/people/sign-in-rules", {}).status_code == 403
    assert hers.get("/p/desk/people").status_code == 200
    assert client.get("/?all=1").status_code == 200  # other projects stay open


def test_an_installation_enforces_it(
    desk: Project,
    nora: User,
    otto: User,
    provider: Provider,
    settings: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before, _ = by_password(otto)
    _, token = invite(project=desk, role=Role.ANNOTATOR, by=nora)
    link = show_link(user=otto, purpose=Purpose.PASSWORD, by=None)[1]
    settings.OIDC_ONLY = True
    page = Client().get("/login").content.decode()
    assert 'name="password"' not in page and "passkey" not in page and "Log in with Example ID" in page
    refused, answer = by_password(otto)
    assert (answer.status_code, who(refused)) == (403, None)
    assert before.get("/p/desk/")["Location"].startswith("/login")  # a session from before
    assert (
        Client().post(f"/join/{token}", {"email": "x@example.org", "password": PASSWORD}).status_code == 403
    )
    assert Client().post(f"/link/{link}", {"password": "another long secret"}).status_code == 403
    assert Client().get("/password/reset").status_code == 403
    hers = Client()
    sign_on(hers, provider)
    assert hers.get("/p/desk/").status_code == 200
    # The provider is away: the operator's way in, good once, for this person.
    path = operators_link(otto, capsys)
    opened = Client()
    assert opened.get(path).status_code == 200 and who(opened) is None
    assert opened.post(path).status_code == 302
    assert who(opened) == otto.email and opened.get("/p/desk/").status_code == 200
    assert Client().post(path).status_code == 404
    verbs = set(AuditEvent.objects.filter(target=person_pseudonym(otto.email)).values_list("verb", flat=True))
    assert {"login-link.created", "login-link.used"} <= verbs


def test_the_operators_way_opens_a_project_that_asks(
    desk: Project, otto: User, capsys: pytest.CaptureFixture[str]
) -> None:
    Project.objects.update(require_single_sign_on=True)
    client, _ = by_password(otto)
    page = client.get("/p/desk/")
    assert (page.status_code, "Single sign-on is not set up" in page.content.decode()) == (403, True)
    path = operators_link(otto, capsys)
    client.post(path)
    assert client.get("/p/desk/").status_code == 200
    call_command("change_sign_in_rules", "desk", "--no-single-sign-on")
    assert by_password(otto)[0].get("/p/desk/").status_code == 200
    assert Membership.objects.filter(user=otto).exists()


def test_enforcing_it_without_a_provider_stops_the_start() -> None:
    env = {**os.environ, "TOUCHSTONE_OIDC_ONLY": "1"}
    code = "from apps.config import settings"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "TOUCHSTONE_OIDC_ONLY is 1" in done.stderr
