"""A real Chromium on a live server. A console error, a missing file or a policy violation fails the test."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.db import connection
from django.test import Client
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Response,
    expect,
    sync_playwright,
)

from apps.accounts import services as accounts
from apps.accounts.models import Project, Role, User
from apps.annotation import services
from apps.annotation.models import Campaign
from tests.browser.chromium import FLAGS, NAMES, find_chromium
from tests.browser.desk import add_pair

PASSWORD = "correct horse battery"
SCREENSHOTS = Path(__file__).parents[2] / "screenshots"
WIDTHS = (1440, 1024, 480)
REPEATED = (
    "Failed to load resource",
    "Response Status Error Code",
    "htmx:afterRequest",
    "htmx:sendAbort",
)
AXE = Axe()
AXE_COLOURS = {
    "type": "rule",
    "values": ["color-contrast", "link-in-text-block"],
}  # all that is on by default
AXE_OPTIONS: dict[str, Any] = {"resultTypes": ["violations"], "elementRef": False}
expect.set_options(timeout=10_000)


class SharedChromium:
    """One browser for all tests that follow each other in this process, closed before the first of another kind.

    Not for the session: while Playwright's event loop is there, no other test of this process can run one.
    """

    def __init__(self) -> None:
        self._opened: tuple[Any, Browser, str | None] | None = None

    def get(self) -> Browser:
        """Skips the test where no browser is installed."""
        if self._opened is not None and not self._opened[1].is_connected():  # it crashed
            self.close()
        if self._opened is None:
            path = find_chromium()
            if path is None:
                pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is installed")
            # Playwright's sync API runs an event loop in this thread, which Django takes for an async caller of its
            # ORM. The tests' own database calls come from this thread too and are as synchronous as they look.
            before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
            playwright = sync_playwright().start()
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
            self._opened = playwright, browser, before
        return self._opened[1]

    def close(self) -> None:
        if self._opened is None:
            return
        playwright, browser, before = self._opened
        self._opened = None
        browser.close()
        playwright.stop()
        if before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
        else:
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


_shared = SharedChromium()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.get_closest_marker("browser") is None:
            _shared.close()


@pytest.fixture
def chromium() -> Browser:
    return _shared.get()


class Watched:
    """Collects what went wrong on a page. `expect(404)` forgives one answer of that status."""

    def __init__(self, page: Page) -> None:
        self.wrong: list[str] = []
        self.expected: list[int] = []
        self.wrong_is_expected = False  # where the test itself takes the network away
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.wrong.append(f"exception: {error}"))
        page.on("requestfailed", lambda request: self._failed(request.url, request.failure))
        page.on("response", self._response)

    def expect(self, status: int) -> None:
        self.expected.append(status)

    def _console(self, message: ConsoleMessage) -> None:
        # The browser and htmx repeat a failed answer in the console; the answer itself is judged below. Of a request
        # that a navigation ended htmx says `afterRequest` and `sendAbort`; of one that failed, `sendError` too.
        repeated = message.text.startswith(REPEATED)
        if message.type in ("error", "warning") and not repeated:
            self.wrong.append(f"console {message.type}: {message.text} {message.location}")

    def _failed(self, url: str, failure: str | None) -> None:
        if failure != "net::ERR_ABORTED":  # navigation away from a page that was still loading
            self.wrong.append(f"{url}: {failure}")

    def _response(self, response: Response) -> None:
        if response.status in self.expected:
            self.expected.remove(response.status)
        elif response.status >= 400:
            self.wrong.append(f"{response.status} {response.request.method} {response.url}")


def _keyboard_of_loaded(page: Page) -> Any:
    """What a page shows is there a moment before the scripts that hear its keys."""
    page.wait_for_load_state("load")
    return _keyboard_of(page)


_keyboard_of = Page.keyboard.fget  # type: ignore[attr-defined]
Page.keyboard = property(_keyboard_of_loaded)  # type: ignore[assignment,method-assign]


def requests_end(seconds: float = 10.0) -> None:
    """Waits until no connection but the test's own is at work: emptying the tables next to a request deadlocks.

    Between two statements of a request its connection is idle too, so it has to be for a moment.
    """
    busy = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND backend_type = 'client backend' "
        "AND (state <> 'idle' OR state_change > clock_timestamp() - interval '0.2 seconds')"
    )
    until = time.monotonic() + seconds
    with connection.cursor() as cursor:
        while True:
            cursor.execute(busy)
            [count] = cursor.fetchone()
            if not count or time.monotonic() > until:
                return
            time.sleep(0.02)


@pytest.fixture
def open_page(chromium: Browser, live_server: Any, transactional_db: None) -> Iterator[Callable[..., Page]]:
    """open_page(**options of a browser context) -> a page in a fresh context of its own, watched as `page.watched`.

    Asks for the tables, so that its pages are closed and what they had asked for is done before the tables are emptied.
    """
    opened: list[tuple[BrowserContext, Watched]] = []

    def make(**options: Any) -> Page:
        context = chromium.new_context(viewport={"width": 1440, "height": 900}, **options)
        context.set_default_timeout(20_000)  # a busy machine is no failure
        page = context.new_page()
        page.watched = Watched(page)  # type: ignore[attr-defined]
        page.runs_scripts = options.get("java_script_enabled", True)  # type: ignore[attr-defined]
        opened.append((context, page.watched))  # type: ignore[attr-defined]
        return page

    yield make
    wrong = [line for _, watched in opened if not watched.wrong_is_expected for line in watched.wrong]
    for context, _ in opened:
        context.close()
    requests_end()
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    return open_page()


def login(page: Page, live_server: Any, user: Any) -> None:
    """On the first page, signed in: a session of the server's, as the form would have begun one."""
    client = Client()
    client.force_login(user)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}]
    )
    page.goto(f"{live_server.url}/")


def login_by_form(page: Page, live_server: Any, user: Any, password: str = PASSWORD) -> None:
    """As a person does."""
    page.goto(f"{live_server.url}/login")
    page.fill("#id_username", user.email)
    page.fill("#id_password", password)
    page.click("main button")
    page.wait_for_url(lambda url: "/login" not in url)


def look_at(page: Page, name: str) -> None:
    """Serious violations that axe-core finds, in either theme, fail the test; and a page wider than a telephone."""
    wrong = []
    page.set_viewport_size({"width": WIDTHS[-1], "height": 900})
    for _ in range(50):  # drawings follow their boxes a moment later
        # Not page.evaluate: a link that was followed a moment ago may be half way between two documents.
        wide = page.locator("html").evaluate("html => html.scrollWidth")
        if wide <= WIDTHS[-1]:
            break
        page.wait_for_timeout(100)
    else:
        widest = page.evaluate(
            "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth)"
            ".map(e => e.outerHTML.slice(0, 90)).slice(0, 4).join(' | ')"
        )
        wrong.append(f"{name}: {wide} pixels wide at {WIDTHS[-1]}: {widest}")
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.evaluate(AXE.axe_script)
    # A theme changes colours and nothing else, so of the second only these are looked at.
    for theme, rules in (("light", {}), ("dark", {"runOnly": AXE_COLOURS})):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # colours do not fade
        for found in page.evaluate("options => axe.run(options)", AXE_OPTIONS | rules)["violations"]:
            if found["impact"] in ("serious", "critical"):
                where = "; ".join(node["html"][:160] for node in found["nodes"][:3])
                wrong.append(f"{name}, {theme}: {found['id']}: {found['help']}: {where}")
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    assert not wrong, "\n".join(wrong)


def shoot(page: Page, name: str) -> None:
    """By axe-core; and, with TOUCHSTONE_SCREENSHOTS=1, screenshots/NAME-WIDTH-THEME.png of the whole page."""
    if page.runs_scripts:  # type: ignore[attr-defined]
        look_at(page, name)
    if os.environ.get("TOUCHSTONE_SCREENSHOTS") != "1":
        return
    SCREENSHOTS.mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_load_state("networkidle")
            page.screenshot(
                path=SCREENSHOTS / f"{name}-{width}-{theme}.png", full_page=True, animations="disabled"
            )
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1440, "height": 900})
    # Screenshots leave empty style attributes behind, which htmx would copy and our policy refuse.
    if page.runs_scripts:  # type: ignore[attr-defined]
        page.evaluate(
            "document.querySelectorAll('[style=\"\"]').forEach((one) => one.removeAttribute('style'))"
        )


@pytest.fixture(scope="session")
def tools() -> Any:
    """Functions of this file: with importlib-mode imports a conftest cannot be imported by name."""

    class Tools:
        login = staticmethod(login)
        login_by_form = staticmethod(login_by_form)
        shoot = staticmethod(shoot)
        password = PASSWORD

    return Tools


@pytest.fixture
def annotator(transactional_db: None, tools: Any) -> User:
    return accounts.create_user(email="ann@example.org", password=tools.password)[0]


@pytest.fixture
def project(annotator: User, tools: Any) -> Project:
    researcher = accounts.create_user(email="rose@example.org", password=tools.password)[0]
    made = accounts.create_project(slug="desk", name="Support desk", owner=researcher)
    accounts.set_member(project=made, user=annotator, role=Role.ANNOTATOR, by=researcher)
    return made


@pytest.fixture
def campaign(project: Project) -> Campaign:
    made = services.create_campaign(
        project=project,
        name="Which run is better",
        feedback_types=["pairwise", "comment"],
        guidelines="Prefer the run that does what was asked.\nPoliteness breaks ties.",
    )
    for number in range(6):
        add_pair(made, f"refund-{number}", "Here is your refund.", f"Order {number} cannot be refunded.")
    return made


@pytest.fixture(autouse=True)
def quick_children(forked_children: None) -> None:
    """As all of these are."""
