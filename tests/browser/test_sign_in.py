"""Signing in as people see it: a link to a password, sessions, a passkey of the browser, what a project asks."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from playwright.sync_api import Page, expect

from apps.accounts import services
from apps.accounts.account_links import Purpose, show_link
from apps.accounts.models import Project, User


@pytest.fixture
def owner(transactional_db: None, tools: Any) -> User:
    return services.create_user(email="olga@example.org", password=tools.password, name="Olga")[0]


@pytest.fixture
def project(owner: User) -> Project:
    return services.create_project(slug="desk", name="Support desk", owner=owner)


def local(live_server: Any) -> str:
    """Under the name that passkeys need where there is no https."""
    return str(live_server.url).replace("127.0.0.1", "localhost")


def confirm(page: Page, tools: Any) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text("Confirm that it is you")
    page.fill("#id_password", tools.password)
    page.get_by_role("button", name="Confirm").click()


def test_a_link_to_a_password(page: Page, live_server: Any, tools: Any, owner: User) -> None:
    owner.set_unusable_password()
    owner.save()
    _, token = show_link(user=owner, purpose=Purpose.PASSWORD, by=None)
    page.goto(f"{live_server.url}/link/{token}")
    tools.shoot(page, "link")
    page.fill("#id_password", "short")
    page.watched.expect(400)  # type: ignore[attr-defined]
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_role("alert")).to_contain_text("too short")
    tools.shoot(page, "link-error")
    page.fill("#id_password", tools.password)
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_role("status")).to_contain_text("Your password is set")
    page.goto(f"{live_server.url}/account/sessions")
    expect(page.get_by_role("row").nth(1)).to_contain_text("this one")
    tools.shoot(page, "sessions")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Sign out everywhere").click()
    page.wait_for_url("**/login*")
    tools.shoot(page, "login")
    page.get_by_role("link", name="Forgot password?").click()
    tools.shoot(page, "password-reset")


def test_an_app_and_what_a_project_asks(
    page: Page, open_page: Callable[..., Page], live_server: Any, tools: Any, owner: User, project: Project
) -> None:
    tools.login_by_form(page, live_server, owner)
    page.goto(f"{live_server.url}/account/two-factor/")
    tools.shoot(page, "two-factor")
    page.get_by_role("link", name="Set up app").click()
    tools.shoot(page, "confirm")
    confirm(page, tools)
    secret = page.locator("#secret").inner_text()
    page.fill("#id_code", "000000")
    page.get_by_role("button", name="Turn on").click()
    expect(page.get_by_role("alert")).to_contain_text("Incorrect code")
    tools.shoot(page, "app-error")
    page.fill("#id_code", format_hotp_value(hotp_value(secret, int(time.time()) // 30)))
    page.get_by_role("button", name="Turn on").click()
    expect(page.locator("#codes")).to_contain_text(re.compile(r"\d{8}"))
    tools.shoot(page, "recovery-codes")
    page.goto(f"{live_server.url}/p/desk/people")
    page.get_by_label("Every member needs a second factor").check()
    page.get_by_role("button", name="Save rules").click()
    expect(page.locator(".alert-success")).to_contain_text("The rules of signing in are changed")
    tools.shoot(page, "people-rules")
    anna, _ = services.create_user(email="anna@example.org", password=tools.password)
    services.set_member(project=project, user=anna, role=services.Role.ANNOTATOR, by=owner)
    other = open_page()
    other.watched.expect(403)  # type: ignore[attr-defined]
    tools.login_by_form(other, live_server, anna)
    expect(other.get_by_role("heading", level=1)).to_have_text("Support desk needs a second factor")
    tools.shoot(other, "rule")


def test_a_passkey_of_the_browser(
    page: Page, live_server: Any, tools: Any, owner: User, settings: Any
) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
    keys = page.context.new_cdp_session(page)
    keys.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    keys.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    page.goto(f"{local(live_server)}/login")
    page.fill("#id_username", owner.email)
    page.fill("#id_password", tools.password)
    page.click("main button")
    page.wait_for_url(lambda url: "/login" not in url)
    page.goto(f"{local(live_server)}/account/two-factor/webauthn/add/")
    confirm(page, tools)
    page.fill("#id_name", "This computer")
    page.get_by_label("Allow login with this passkey alone, without a password").check()
    tools.shoot(page, "passkey-add")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.locator("#codes")).to_be_visible()
    assert Authenticator.objects.filter(user=owner, type=Authenticator.Type.WEBAUTHN).count() == 1
    page.goto(f"{local(live_server)}/account/two-factor/webauthn/")
    expect(page.get_by_role("row").nth(1)).to_contain_text("This computer")
    tools.shoot(page, "passkeys")
    # After the password, and in place of it.
    page.context.clear_cookies()
    page.goto(f"{local(live_server)}/login")
    page.fill("#id_username", owner.email)
    page.fill("#id_password", tools.password)
    page.click("main button")
    expect(page.get_by_role("heading", level=1)).to_have_text("Second factor")
    tools.shoot(page, "second-factor")
    page.get_by_role("button", name="Use passkey").click()
    page.wait_for_url(lambda url: "/account/" not in url)
    page.context.clear_cookies()
    page.goto(f"{local(live_server)}/login")
    page.get_by_role("button", name="Log in with a passkey").click()
    page.wait_for_url(lambda url: "/login" not in url)
    expect(page.get_by_role("heading", level=1)).to_have_text("My projects")
