"""The house in a browser: signing in, both themes, keys, people, and what an error looks like."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.accounts import services
from apps.accounts.models import Project, Role, User
from apps.core import health
from apps.core.errors import DomainError
from apps.webhooks.services import deliver_due
from tests.core.test_presence import service

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def owner(transactional_db: None, tools: Any) -> User:
    return services.create_user(email="olga@example.org", password=tools.password, name="Olga")[0]


@pytest.fixture
def project(owner: User) -> Project:
    return services.create_project(slug="desk", name="Support desk", owner=owner)


def test_sign_in_and_out(page: Page, live_server: Any, tools: Any, owner: User, project: Project) -> None:
    page.goto(live_server.url)
    tools.shoot(page, "login")
    page.fill("#id_username", owner.email)
    page.fill("#id_password", "wrong")
    page.press("#id_password", "Enter")
    wrong = page.get_by_role("alert").filter(has_text="e-mail address or the password is wrong")
    expect(wrong).to_be_visible()
    tools.shoot(page, "login-wrong")
    tools.login_by_form(page, live_server, owner)
    expect(page.get_by_role("heading", level=1)).to_have_text("Support desk")
    expect(page.get_by_text("Counting…")).to_have_count(0)
    tools.shoot(page, "project-home")
    page.get_by_role("button", name=": account").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in to Touchstone")


def test_the_theme_is_kept_and_follows_the_system(
    page: Page, live_server: Any, tools: Any, owner: User, project: Project
) -> None:
    tools.login_by_form(page, live_server, owner)
    theme = "document.documentElement.dataset.bsTheme"
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(theme) == "light"
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    assert page.evaluate(ground) != light
    page.get_by_role("button", name="Light or dark").click()
    page.reload()
    assert page.evaluate(theme) == "light"


def test_keys_are_listed_and_work(
    page: Page, live_server: Any, tools: Any, owner: User, project: Project
) -> None:
    tools.login_by_form(page, live_server, owner)
    page.keyboard.press("?")
    help_ = page.get_by_role("dialog", name="Keys on this page")
    expect(help_).to_contain_text("This list")
    page.keyboard.press("Escape")
    expect(help_).to_be_hidden()
    page.goto(f"{live_server.url}/p/desk/people")
    page.focus("#id_email")
    page.keyboard.type("a?b")  # typing is not a key
    expect(help_).to_be_hidden()
    assert page.input_value("#id_email") == "a?b"


def test_an_owner_runs_the_house(
    page: Page, live_server: Any, tools: Any, owner: User, project: Project
) -> None:
    tools.login_by_form(page, live_server, owner)
    page.goto(f"{live_server.url}/p/desk/people")
    page.fill("#id_email", "anna@example.org")
    page.get_by_role("button", name="Add member").click()
    expect(page.locator("#link")).to_contain_text("/link/tsl_")
    tools.shoot(page, "people")
    page.select_option("select[aria-label='Role of anna@example.org']", "researcher")
    expect(page.locator(".alert-success")).to_contain_text("is now researcher")
    page.goto(f"{live_server.url}/p/desk/keys")
    tools.shoot(page, "keys-empty")
    page.get_by_label("request rewards from endpoints").check()
    page.get_by_role("button", name="Create API key").click()
    expect(page.locator("#secret")).to_contain_text("tsk_")
    tools.shoot(page, "keys")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Revoke").click()
    expect(page.locator("td .state")).to_contain_text("revoked")
    page.goto(f"{live_server.url}/p/desk/audit")
    expect(page.get_by_text("key.revoked")).to_be_visible()
    tools.shoot(page, "audit")


def test_a_question_can_be_declined(
    page: Page, live_server: Any, tools: Any, owner: User, project: Project
) -> None:
    anna, _ = services.create_user(email="anna@example.org")
    services.set_member(project=project, user=anna, role=Role.ANNOTATOR, by=owner)
    tools.login_by_form(page, live_server, owner)
    page.goto(f"{live_server.url}/p/desk/people")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Remove anna@example.org").click()
    assert project.memberships.filter(user=anna).exists()


def test_pages_that_are_not_there(
    page: Page, live_server: Any, tools: Any, owner: User, project: Project
) -> None:
    tools.login_by_form(page, live_server, owner)
    page.watched.expect(404)  # type: ignore[attr-defined]
    page.goto(f"{live_server.url}/p/nothing/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    tools.shoot(page, "not-found")


def test_a_failed_fragment_says_why(
    page: Page, live_server: Any, tools: Any, owner: User, project: Project
) -> None:
    tools.login_by_form(page, live_server, owner)
    page.watched.expect(404)  # type: ignore[attr-defined]
    page.evaluate("htmx.ajax('GET', '/p/nothing/', {target: '#main', swap: 'none'})")
    expect(page.locator("#toasts")).to_contain_text("There is nothing here, or it is not yours to see.")


def test_the_api_page(page: Page, live_server: Any, tools: Any, project: Project) -> None:
    page.goto(f"{live_server.url}/api/v1/docs")
    expect(page.get_by_role("heading", level=1)).to_have_text("The JSON API")
    names = page.locator("[id]").evaluate_all("found => found.map((each) => each.id)")
    assert len(names) == len(set(names)) > 100
    # One template writes them all: axe looks at the first thirty, and took 20 s for three hundred.
    for many in (".operation", ".api-contents a"):
        page.locator(many).evaluate_all("found => found.slice(30).forEach((each) => each.remove())")
    tools.shoot(page, "api")


def test_without_a_script_the_forms_still_work(
    open_page: Callable[..., Page], live_server: Any, tools: Any, owner: User, project: Project
) -> None:
    anna, _ = services.create_user(email="anna@example.org")
    services.set_member(project=project, user=anna, role=Role.ANNOTATOR, by=owner)
    plain = open_page(java_script_enabled=False)
    tools.login_by_form(plain, live_server, owner)
    plain.goto(f"{live_server.url}/p/desk/people")
    row = plain.get_by_role("row").filter(has_text="anna@example.org")
    row.get_by_role("combobox").select_option("reviewer")
    row.get_by_role("button", name="Change").click()
    expect(plain.locator(".alert-success")).to_contain_text("is now reviewer")


def test_the_health_page(
    page: Page, live_server: Any, tools: Any, owner: User, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> str:
        raise DomainError("0.3 GiB free in /srv/touchstone; models and checkpoints need at least 2.")

    checks = [("home", lambda: "/srv/touchstone can be written", ""), ("disk", full, "Free some space.")]
    monkeypatch.setattr(health, "CHECKS", checks)
    tools.login_by_form(page, live_server, owner)
    page.goto(f"{live_server.url}/p/desk/health")
    expect(page.get_by_text("1 check needs attention.")).to_be_visible()
    expect(page.get_by_text("No heartbeats yet")).to_be_visible()
    tools.shoot(page, "health-empty")
    for pid, (name, silent) in enumerate([("web", 0), ("rewards", 0), ("gpu", 75)], start=1):
        service(name, pid=pid, silent=silent)
    page.reload()
    expect(page.get_by_text("silent", exact=True)).to_be_visible()
    expect(page.get_by_text("To fix it: Free some space.")).to_be_visible()
    tools.shoot(page, "health")


def test_somebody_is_invited_by_a_link_and_joins(
    page: Page, open_page: Callable[..., Page], live_server: Any, tools: Any, owner: User, project: Project
) -> None:
    tools.login_by_form(page, live_server, owner)
    page.goto(f"{live_server.url}/p/desk/people")
    page.get_by_role("button", name="Create link").click()
    link = page.locator("#link").inner_text()
    tools.shoot(page, "people-invitation")
    page.get_by_role("link", name="Delete data").click()
    tools.shoot(page, "delete-data")
    guest = open_page()
    guest.goto(link)
    tools.shoot(guest, "join")
    guest.fill("#id_email", "nora@example.org")
    guest.fill("#id_password", tools.password)
    guest.get_by_role("button", name="Create account and join").click()
    expect(guest.get_by_text("Welcome to Support desk.")).to_be_visible()


def test_webhooks_are_added_tried_and_seen(
    page: Page, live_server: Any, tools: Any, owner: User, project: Project, settings: Any
) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    tools.login_by_form(page, live_server, owner)
    page.goto(f"{live_server.url}/p/desk/webhooks/")
    tools.shoot(page, "webhooks-empty")
    page.fill("#id_url", f"{live_server.url}/login")  # whatever answers; it takes no such message
    page.get_by_role("button", name="Add webhook").click()
    expect(page.locator("#secret")).to_contain_text("whsec_")
    tools.shoot(page, "webhooks-new")
    page.get_by_role("button", name="Send a test to").click()
    expect(page.get_by_text("A test message was sent")).to_be_visible()
    deliver_due()
    page.reload()
    expect(page.get_by_text("403 Forbidden")).to_be_visible()
    tools.shoot(page, "webhooks")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No webhooks yet")).to_be_visible()


def test_a_project_as_its_annotators_see_it(
    page: Page, live_server: Any, tools: Any, owner: User, project: Project
) -> None:
    tools.login_by_form(page, live_server, owner)
    page.goto(f"{live_server.url}/p/desk/")
    page.get_by_role("button", name=": account").click()
    page.get_by_role("button", name="See as annotator").click()
    expect(page.get_by_text("You see this project as an annotator does")).to_be_visible()
    expect(page.get_by_role("link", name="Datasets")).to_have_count(0)
    tools.shoot(page, "as-annotator")
    page.get_by_role("button", name="Back to my role").click()
    expect(page.get_by_role("link", name="Datasets", exact=True).first).to_be_visible()


def test_the_door_names_single_sign_on_where_there_is_one(
    page: Page, live_server: Any, tools: Any, settings: Any
) -> None:
    settings.OIDC_URL, settings.OIDC_NAME = "https://id.example.org", "Example ID"
    page.goto(f"{live_server.url}/login")
    expect(page.get_by_role("link", name="Log in with Example ID")).to_be_visible()
    tools.shoot(page, "login-sign-on")


def test_the_navigation_shows_where_one_is_on_a_telephone(
    page: Page, live_server: Any, tools: Any, owner: User, project: Project
) -> None:
    services.create_project(slug="second", name="Second desk", owner=owner)
    tools.login(page, live_server, owner)
    page.set_viewport_size({"width": 480, "height": 800})
    for path in ("endpoints/", "audit", "training/models/"):
        page.goto(f"{live_server.url}/p/desk/{path}")
        for link in page.locator(".bar-nav [aria-current], .subnav [aria-current]").all():
            box = link.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 480
    page.set_viewport_size({"width": 2560, "height": 900})
    left = "element => element.getBoundingClientRect().x + parseFloat(getComputedStyle(element).paddingLeft)"
    edges = [page.locator(name).first.evaluate(left) for name in (".brand", ".subnav a", "h1")]
    assert edges == [edges[0]] * 3
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_role("button", name="Switch project").click()
    page.get_by_role("link", name="Second desk").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Second desk")
