"""A real Chromium on a live server. A console error, a missing file or a policy violation fails the test."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, sync_playwright

PASSWORD = "correct horse battery"
SCREENSHOTS = Path(__file__).parents[2] / "screenshots"
WIDTHS = (1440, 1024, 480)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a file of tests, in words skipped where there is none.

    Not for the session: while Playwright's event loop is there, no other test of this process can run one.
    """
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"needs a browser: none of {', '.join(names)} is installed")
    # Playwright's sync API runs an event loop in this thread, which Django takes for an async caller of its ORM.
    # The tests' own database calls come from this thread too and are as synchronous as they look.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
            yield browser
            browser.close()
    finally:
        if before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
        else:
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


class Watched:
    """Collects what went wrong on a page. `expect(404)` forgives one answer of that status."""

    def __init__(self, page: Page) -> None:
        self.wrong: list[str] = []
        self.expected: list[int] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.wrong.append(f"exception: {error}"))
        page.on("requestfailed", lambda request: self._failed(request.url, request.failure))
        page.on("response", self._response)

    def expect(self, status: int) -> None:
        self.expected.append(status)

    def _console(self, message: ConsoleMessage) -> None:
        # The browser and htmx repeat a failed answer in the console; the answer itself is judged below.
        repeated = message.text.startswith(("Failed to load resource", "Response Status Error Code"))
        if message.type in ("error", "warning") and not repeated:
            self.wrong.append(f"console {message.type}: {message.text}")

    def _failed(self, url: str, failure: str | None) -> None:
        if failure != "net::ERR_ABORTED":  # navigation away from a page that was still loading
            self.wrong.append(f"{url}: {failure}")

    def _response(self, response: Response) -> None:
        if response.status in self.expected:
            self.expected.remove(response.status)
        elif response.status >= 400:
            self.wrong.append(f"{response.status} {response.request.method} {response.url}")


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """open_page(**options of a browser context) -> a page in a fresh context of its own, watched as `page.watched`."""
    opened: list[tuple[BrowserContext, Watched]] = []

    def make(**options: Any) -> Page:
        context = chromium.new_context(viewport={"width": 1440, "height": 900}, **options)
        context.set_default_timeout(8_000)
        page = context.new_page()
        page.watched = Watched(page)  # type: ignore[attr-defined]
        opened.append((context, page.watched))  # type: ignore[attr-defined]
        return page

    yield make
    wrong = [line for _, watched in opened for line in watched.wrong]
    for context, _ in opened:
        context.close()
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    return open_page()


def login(page: Page, live_server: Any, user: Any, password: str = PASSWORD) -> None:
    """By the form, as a person does."""
    page.goto(f"{live_server.url}/login")
    page.fill("#id_username", user.email)
    page.fill("#id_password", password)
    page.click("main button")
    page.wait_for_url(lambda url: "/login" not in url)


def shoot(page: Page, name: str) -> None:
    """With TOUCHSTONE_SCREENSHOTS=1: screenshots/NAME-WIDTH-THEME.png of the whole page."""
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


@pytest.fixture(scope="session")
def tools() -> Any:
    """`login` and `shoot` for tests: with importlib-mode imports a conftest cannot be imported by name."""

    class Tools:
        login = staticmethod(login)
        shoot = staticmethod(shoot)
        password = PASSWORD

    return Tools
