"""A second factor: set up, asked for, good once, counted; asked for by a project; switched off by few."""

import re
import time
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from django.core import mail
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from apps.accounts.account_links import send_due_links
from apps.accounts.keys import create_api_key
from apps.accounts.models import AuditEvent, GuessCounter, Membership, Project, Role, User
from apps.accounts.pseudonyms import person_pseudonym
from apps.accounts.services import change_sign_in_rules, create_project, create_user, set_member
from tests.accounts.conftest import PASSWORD
from tests.accounts.passkey import Passkey
from tests.accounts.test_sign_on import who

APP = "/account/two-factor/totp/activate/"


def code(secret: str, steps: int = 0) -> str:
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + steps))


def log_in(user: User, client: Client | None = None) -> tuple[Client, Any]:
    client = client or Client()
    return client, client.post(
        "/login", {"username": user.email, "password": PASSWORD, "next": "/account/sessions"}
    )


def confirmed(user: User) -> Client:
    """A browser that may change second factors."""
    client, _ = log_in(user)
    answer = client.post("/account/confirm", {"password": PASSWORD, "next": "/account/two-factor/"})
    assert answer["Location"] == "/account/two-factor/"
    return client


@pytest.fixture
def secret(owner: User) -> str:
    made = generate_totp_secret()
    TOTP.activate(owner, made)
    return made


def test_setting_up_an_app(owner: User, django_capture_on_commit_callbacks: Any) -> None:
    other, _ = log_in(owner)
    client, _ = log_in(owner)
    assert client.get(APP)["Location"].startswith("/account/confirm")  # a borrowed session sets up nothing
    wrong = client.post("/account/confirm", {"password": "wrong"})
    assert "The password is wrong" in wrong.content.decode()
    assert client.post("/account/confirm", {"password": PASSWORD, "next": APP})["Location"] == APP
    page = client.get(APP)
    secret = page.context["form"].secret
    assert secret in page.content.decode() and "data:image/svg+xml;base64," in page.content.decode()
    assert "Incorrect code" in client.post(APP, {"code": "000000"}).content.decode()
    with django_capture_on_commit_callbacks(execute=True):  # allauth's signals
        assert client.post(APP, {"code": code(secret)}).status_code == 302
    done = client.get("/account/two-factor/recovery-codes/")
    codes = re.findall(r"\b\d{8}\b", done.content.decode())
    assert len(codes) == 10
    # Shown once.
    assert client.get("/account/two-factor/recovery-codes/").content.decode().count(codes[0]) == 0
    kept = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in kept and not any(each in kept for each in codes)  # encrypted
    assert other.get("/account/sessions").status_code == 302  # sessions without it end
    assert client.get("/account/sessions").status_code == 200
    assert AuditEvent.objects.filter(
        verb="user.second-factor-added", actor=person_pseudonym(owner.email)
    ).exists()
    # The next login, by a recovery code: each is good once.
    for expected in (302, 200):
        guest, answer = log_in(owner)
        assert answer["Location"] == "/account/two-factor/authenticate/"
        assert guest.post(answer["Location"], {"code": codes[3]}).status_code == expected


def test_the_password_alone_opens_nothing(owner: User, secret: str) -> None:
    client, answer = log_in(owner)
    assert (who(client), answer["Location"]) == (None, "/account/two-factor/authenticate/")
    for path in ("/", "/account/sessions", "/account/two-factor/", APP):
        assert client.get(path).status_code == 302
    page = client.get(answer["Location"]).content.decode()
    assert "Second factor" in page and "Use passkey" in page
    assert client.post(answer["Location"], {"code": code(secret)})["Location"] == "/account/sessions"
    assert who(client) == owner.email


def test_a_code_is_good_once(owner: User, secret: str) -> None:
    used = code(secret)
    for expected in (302, 200):
        client, answer = log_in(owner)
        page = client.post(answer["Location"], {"code": used})
        assert page.status_code == expected
    assert "used already" in page.content.decode() or "Incorrect" in page.content.decode()
    from django.core.cache import cache

    cache.clear()  # another process has not seen it
    page = client.post(answer["Location"], {"code": used})
    assert (page.status_code, "used already" in page.content.decode()) == (200, True)
    assert who(client) is None


def test_codes_are_not_guessed(owner: User, secret: str) -> None:
    client, answer = log_in(owner)
    statuses = [client.post(answer["Location"], {"code": f"{n:06}"}).status_code for n in range(7)]
    assert statuses == [200] * 6 + [429]
    again, answer = log_in(owner)  # another session does not begin at zero
    assert again.post(answer["Location"], {"code": code(secret)}).status_code == 429
    GuessCounter.objects.all().delete()
    assert again.post(answer["Location"], {"code": code(secret)}).status_code == 302


def test_a_passkey_as_second_factor_and_alone(owner: User) -> None:
    client, key = confirmed(owner), Passkey()
    add = "/account/two-factor/webauthn/add/"
    options = client.get(add, secure=True).context["js_data"]["creation_options"]
    data = {"name": "Telephone", "passwordless": "on", "credential": key.create(_json(options), alone=True)}
    assert client.post(add, data, secure=True).status_code == 302
    assert client.get("/account/two-factor/webauthn/").content.decode().count("Telephone") == 1
    # After the password:
    guest, answer = log_in(owner)
    step = answer["Location"]
    options = _json(guest.get(step, secure=True).context["js_data"]["request_options"])
    phished = Passkey("https://testserver.evil.example")
    phished.key, phished.user_handle = key.key, key.user_handle
    assert guest.post(step, {"credential": phished.get(options)}, secure=True).status_code == 200
    options = _json(guest.get(step, secure=True).context["js_data"]["request_options"])
    assert guest.post(step, {"credential": key.get(options)}, secure=True).status_code == 302
    assert who(guest) == owner.email
    # In place of both:
    alone, login = Client(), "/account/two-factor/webauthn/login/"
    options = alone.get(login, secure=True, headers={"Accept": "application/json"}).json()["request_options"]
    assert alone.post(login, {"credential": key.get(options)}, secure=True).status_code == 302
    assert who(alone) == owner.email
    assert alone.post(login, {"credential": "{}"}, secure=True).status_code == 302


def _json(options: Any) -> Any:
    import json

    from django.core.serializers.json import DjangoJSONEncoder

    return json.loads(json.dumps(options, cls=DjangoJSONEncoder))


@pytest.mark.django_db(transaction=True)  # allauth tells after the commit that a factor was added
def test_a_project_asks_for_it(owner: User, people: dict[str, User], project: Project) -> None:
    _, secret = create_api_key(project=project, scopes=["train"], by=owner)
    client, _ = log_in(owner)
    rules = {"two_factor": "on"}
    refused = client.post("/p/desk/people/sign-in-rules", rules)
    assert (refused.status_code, "yourself first" in refused.content.decode()) == (409, True)
    client = confirmed(owner)
    app = client.get(APP).context["form"].secret
    client.post(APP, {"code": code(app)})
    assert client.post("/p/desk/people/sign-in-rules", rules).status_code == 302
    assert client.get("/p/desk/people").status_code == 200  # set up in this session counts
    assert "two-factor" in client.get("/p/desk/people").content.decode()
    hers, _ = log_in(people["annotator"])
    page = hers.get("/p/desk/campaigns/")
    assert (page.status_code, "Set up two-factor" in page.content.decode()) == (403, True)
    part = hers.get("/p/desk/campaigns/", headers={"HX-Request": "true"})
    assert part["HX-Redirect"] == "/p/desk/"
    assert hers.get("/account/two-factor/").status_code == 200
    key = {"Authorization": f"Bearer {secret}"}
    assert Client().get("/api/v1/projects/desk/models", headers=key).status_code == 200
    # Someone who has one, in a session from before:
    TOTP.activate(people["reviewer"], app)
    old = Client()
    old.force_login(people["reviewer"])
    page = old.get("/p/desk/campaigns/")
    assert (page.status_code, "Use a code" in page.content.decode()) == (403, True)
    step = "/account/two-factor/reauthenticate/?next=/p/desk/campaigns/"
    assert old.post(step, {"code": code(app)})["Location"] == "/p/desk/campaigns/"
    assert old.get("/p/desk/campaigns/").status_code == 200
    Authenticator.objects.filter(user=people["reviewer"]).delete()
    assert old.get("/p/desk/campaigns/").status_code == 403  # what is gone does not count
    call_command("change_sign_in_rules", "desk", "--no-two-factor")
    assert old.get("/p/desk/campaigns/").status_code == 200


def test_every_page_of_a_project_asks(owner: User, project: Project) -> None:
    change_sign_in_rules(project=project, require_two_factor=True, require_single_sign_on=False, by=None)
    client, _ = log_in(owner)
    from tests.config.tables import PAGES

    for path, (method, _) in PAGES.items():
        if path.startswith("p/<slug:slug>/") and path.count("<") == 1:
            answer = client.generic(method, "/" + path.replace("<slug:slug>", "desk"))
            assert (answer.status_code, b"needs a second factor" in answer.content) == (403, True), path


def test_who_may_switch_it_off(owner: User, people: dict[str, User], project: Project) -> None:
    annotator = people["annotator"]
    TOTP.activate(annotator, generate_totp_secret())
    member = Membership.objects.get(user=annotator)
    client, _ = log_in(owner)
    set_member(project=create_project(slug="alpha"), user=annotator, role=Role.OWNER, by=None)
    reset = f"/p/desk/people/{member.pk}/reset-two-factor"
    assert client.post(reset).status_code == 403
    Membership.objects.filter(project__slug="alpha").delete()
    hers = Client()
    hers.force_login(annotator)
    assert client.post(reset).status_code == 302
    assert not Authenticator.objects.filter(user=annotator).exists()
    assert hers.get("/account/sessions").status_code == 302
    TOTP.activate(annotator, generate_totp_secret())
    call_command("reset_two_factor", annotator.email)
    assert not Authenticator.objects.exists()
    assert (
        AuditEvent.objects.filter(
            verb="second-factor.reset", target=person_pseudonym(annotator.email)
        ).count()
        == 2
    )


def test_a_reset_of_a_verified_account_keeps_its_keys_and_second_factor(db: None, settings: Any) -> None:
    settings.MAIL = {"EMAIL_HOST": "localhost"}
    user, _ = create_user(email="anna@example.org", password=PASSWORD, is_verified=True)
    key, _ = create_api_key(project=create_project(slug="beta", owner=user), scopes=["ingest"], by=user)
    TOTP.activate(user, generate_totp_secret())
    Client().post(reverse("accounts:password-reset"), {"email": user.email})
    assert send_due_links() == 1
    path = re.search(r"/link/tsl_[\w-]+", mail.outbox[-1].body)
    assert path is not None
    client = Client()
    answer = client.post(path[0], {"password": "another long secret"})
    assert who(client) is None and "two-factor" in answer["Location"]
    key.refresh_from_db()
    assert key.revoked_at is None
