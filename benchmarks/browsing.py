"""A whole installation on a home of its own, and someone signed in to it with headless Chromium."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.browser.chromium import FLAGS, find_chromium
from tests.core.homes import open_home
from tests.faults.stack import ROOT, Stack

PASSWORD = "correct horse battery"  # of an installation that lives for a minute


@contextmanager
def signed_in(email: str, benchmark: str, *arguments: str) -> Iterator[tuple[Page, str, Any]]:
    """The page, the installation's address, and what `benchmark --prepare ARGUMENTS` printed: it runs first, in a
    process whose settings are those of the installation, and makes the user `email` with PASSWORD."""
    with open_home() as home:
        stack = Stack(home)
        try:
            stack.start()
            command = [sys.executable, "-m", benchmark, "--prepare", *arguments]
            environment = stack.environment | {"DJANGO_SETTINGS_MODULE": "apps.config.settings"}
            told = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
            )
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
                page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
                page.goto(f"{stack.url}/login")
                page.fill("#id_username", email)
                page.fill("#id_password", PASSWORD)
                page.click("main button")
                page.wait_for_url(lambda url: "/login" not in url)
                yield page, stack.url, json.loads(told.stdout)
                browser.close()
        finally:
            stack.destroy()
