"""Single sign-on against a provider of our own: discovery, code, PKCE, tokens; and who comes in by it."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.test import Client

from apps.accounts.invitations import invite
from apps.accounts.models import AuditEvent, Membership, Project, Role, User
from apps.core.sign_on import sign_on_providers
from tests.core.servers import Handler, serving
from tests.factories import make_member

CLIENT, SECRET = "touchstone", "a-secret-of-the-client-0123456789abcdef"


@dataclass
class Provider:
    """Someone else's login. claims: what it says of whoever logs in there. audience: for whom it says so."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    audience: str = CLIENT
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)

    def agree(self, where: str) -> dict[str, str]:
        """What a person's browser carries back after she logged in at `where`."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(where).query).items()}
        assert where.startswith(f"{self.url}/authorize?")
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return {"code": code, "state": query["state"]}

    def token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.asked.append(form)
        query = self.codes.pop(form.get("code", ""), None)
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if (
            query is None
            or form.get("client_secret") != SECRET
            or query["code_challenge"] != base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        ):
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        said = {"iss": self.url, "aud": self.audience, "iat": now, "exp": now + 60, **self.claims}
        return 200, {
            "access_token": "for-the-userinfo",
            "token_type": "Bearer",
            "id_token": jwt.encode(said, "k" * 32),
        }


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    result = Provider(
        claims={"sub": "77", "email": "Nora@Example.org", "email_verified": True, "name": "Nora"}
    )

    class Answering(Handler):
        def do_GET(self) -> None:
            if self.path == "/.well-known/openid-configuration":
                parts = ("authorization", "token", "userinfo")
                paths = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
                document = {f"{part}_endpoint": f"{result.url}/{paths[part]}" for part in parts}
                self._say(200, document | {"issuer": result.url, "jwks_uri": f"{result.url}/keys"})
            elif self.headers.get("Authorization") == "Bearer for-the-userinfo":
                self._say(200, result.claims)
            else:
                self._say(401, {})

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._say(*result.token({name: values[0] for name, values in form.items()}))

        def _say(self, status: int, document: dict[str, Any]) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

    with serving(Answering) as result.url:
        settings.OIDC_URL, settings.OIDC_NAME = result.url, "Example ID"
        settings.SOCIALACCOUNT_PROVIDERS = sign_on_providers(
            url=result.url, client_id=CLIENT, secret=SECRET, name="Example ID"
        )
        yield result


CALLBACK = "/oidc/sso/login/callback/"


def sign_on(client: Client, provider: Provider, next: str = "") -> Any:
    """All the way: our page, theirs, and back."""
    there = client.get("/oidc/sso/login/", {"next": next} if next else {})
    assert there.status_code == 302
    return client.get(CALLBACK, provider.agree(there["Location"]))


def who(client: Client) -> str | None:
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key).email if key else None


def test_without_a_provider_there_is_none(client: Client, db: None) -> None:
    assert "oidc" not in client.get("/login").content.decode()
    assert client.get("/oidc/sso/login/").status_code == 404
    assert client.get(CALLBACK, {"code": "x", "state": "y"}).status_code == 404


def test_somebody_new_comes_in_as_a_member_of_nothing(client: Client, provider: Provider, db: None) -> None:
    page = client.get("/login").content.decode()
    assert "Log in with Example ID" in page
    answer = sign_on(client, provider)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert who(client) == "nora@example.org"
    nora = User.objects.get()
    assert (nora.name, nora.has_usable_password()) == ("Nora", False)
    assert not Membership.objects.exists()
    assert AuditEvent.objects.get(verb="user.created").data == {"by": "Example ID"}
    assert not SocialToken.objects.exists()  # nothing of theirs is kept
    assert "Change password" not in client.get("/").content.decode()


def test_the_second_time_she_is_the_same(client: Client, provider: Provider, db: None) -> None:
    sign_on(client, provider)
    provider.claims["email"] = "nora@elsewhere.example"  # married, moved: `sub` is who she is
    other = Client()
    sign_on(other, provider)
    assert who(other) == "nora@example.org"
    assert User.objects.count() == SocialAccount.objects.count() == 1


def test_a_verified_address_leads_to_whoever_has_it(
    client: Client, provider: Provider, project: Project
) -> None:
    nora = make_member(project, "nora@example.org", "researcher")
    sign_on(client, provider)
    assert who(client) == nora.email
    assert client.get("/p/desk/campaigns/").status_code == 200
    assert User.objects.filter(email__iexact=nora.email).count() == 1
    # Whoever set the password before never showed that the address is hers.
    nora.refresh_from_db()
    assert not nora.has_usable_password()


@pytest.mark.parametrize(
    "claims",
    [{"email_verified": False}, {"email_verified": None}, {"email_verified": "false"}, {"email": None}],
)
def test_an_address_nobody_verified_leads_nowhere(
    client: Client, provider: Provider, project: Project, claims: dict[str, Any]
) -> None:
    make_member(project, "nora@example.org", "owner")
    provider.claims |= claims
    answer = sign_on(client, provider)
    assert answer.status_code == 403
    assert "did not confirm that your e-mail address is verified" in answer.content.decode()
    assert who(client) is None
    assert not SocialAccount.objects.exists()


def test_verified_in_words_is_verified(client: Client, provider: Provider, db: None) -> None:
    provider.claims["email_verified"] = "true"
    sign_on(client, provider)
    assert who(client) == "nora@example.org"


def test_a_closed_account_stays_closed(client: Client, provider: Provider, project: Project) -> None:
    User.objects.filter(pk=make_member(project, "nora@example.org", "owner").pk).update(is_active=False)
    answer = sign_on(client, provider)
    assert (answer.status_code, who(client)) == (403, None)
    assert "This account is closed" in answer.content.decode()


def test_an_invitation_can_be_followed_by_it(client: Client, provider: Provider, project: Project) -> None:
    owner = make_member(project, "olga@example.org", "owner")
    _, token = invite(project=project, role=Role.REVIEWER, by=owner, email="nora@example.org")
    page = client.get(f"/join/{token}").content.decode()
    assert f"/oidc/sso/login/?next=/join/{token}" in page
    answer = sign_on(client, provider, next=f"/join/{token}")
    assert answer["Location"] == f"/join/{token}"
    assert "Join as nora@example.org" in client.get(f"/join/{token}").content.decode()
    client.post(f"/join/{token}")
    assert Membership.objects.get(user__email="nora@example.org").role == Role.REVIEWER


@pytest.mark.parametrize("next", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_nobody_is_sent_elsewhere_afterwards(client: Client, provider: Provider, db: None, next: str) -> None:
    answer = sign_on(client, provider, next=next)
    assert answer["Location"] == "/"


def test_somebody_elses_answer_is_refused(client: Client, provider: Provider, db: None) -> None:
    there = client.get("/oidc/sso/login/")
    carried = provider.agree(there["Location"])
    victim = Client()
    victim.get("/login")
    answer = victim.get(CALLBACK, carried)  # a state her own browser never had
    assert (answer.status_code, who(victim)) == (502, None)
    wrong = client.get(CALLBACK, carried | {"code": "made-up"})
    assert (wrong.status_code, who(client)) == (502, None)
    assert "Example ID gave an unexpected answer" in wrong.content.decode()


def test_a_token_for_somebody_else_is_refused(client: Client, provider: Provider, db: None) -> None:
    provider.audience = "another-client"
    answer = sign_on(client, provider)
    assert (answer.status_code, who(client)) == (502, None)


def test_going_away_at_the_provider_is_said_so(client: Client, provider: Provider, db: None) -> None:
    there = client.get("/oidc/sso/login/")
    state = provider.agree(there["Location"])["state"]
    answer = client.get(CALLBACK, {"error": "access_denied", "state": state})
    assert answer.status_code == 403
    assert "You left Example ID without logging in" in answer.content.decode()


def test_a_provider_that_is_away_is_said_so(
    client: Client, provider: Provider, settings: Any, db: None
) -> None:
    settings.SOCIALACCOUNT_PROVIDERS = sign_on_providers(
        url="http://127.0.0.1:9", client_id=CLIENT, secret=SECRET, name="Example ID"
    )
    answer = client.get("/oidc/sso/login/")
    assert answer.status_code == 502
    assert "Example ID did not answer. Try again" in answer.content.decode()


def test_the_secret_goes_to_the_provider_and_into_no_log(
    client: Client, provider: Provider, db: None, caplog: pytest.LogCaptureFixture
) -> None:
    sign_on(client, provider)
    assert provider.asked[0]["client_secret"] == SECRET
    assert SECRET not in caplog.text
    assert "code-0" not in caplog.text


def test_half_a_provider_is_an_error_that_says_so() -> None:
    code = "from apps.config import settings"
    env = {**os.environ, "TOUCHSTONE_OIDC_URL": "https://id.example.org"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "needs TOUCHSTONE_OIDC_CLIENT_ID and TOUCHSTONE_OIDC_SECRET" in done.stderr
