"""The owner's page of what is wrong and how to fix it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.core import health
from tests.core.test_presence import service


def _checks(monkeypatch: pytest.MonkeyPatch, *checks: Any) -> None:
    monkeypatch.setattr(health, "CHECKS", list(checks))


def test_all_is_well(as_: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch) -> None:
    _checks(monkeypatch, ("disk", lambda: "9 GiB free", "Free some."))
    page = as_("owner").get("/p/desk/health", headers={"HX-Request": "true"}).content.decode()
    assert "<h1>" not in page
    page = as_("owner").get("/p/desk/health?checks").content.decode()
    assert "All checks passed." in page
    assert "9 GiB free" in page and "Free some." not in page
    assert "No heartbeats yet" in page


def test_what_is_wrong_says_how_to_mend_it(
    as_: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> str:
        raise OSError("no space")

    def slow() -> str:
        raise AssertionError("the page does not wait for this one")

    _checks(monkeypatch, ("disk", full, "Free some space."), ("gpu", slow, ""))
    service("web", pid=12)
    service("gpu", pid=13, silent=99)
    page = as_("owner").get("/p/desk/health?checks").content.decode()
    assert "1 check needs attention." in page
    assert "OSError: no space" in page and "Free some space." in page
    assert "needs attention" in page and "silent" in page and "99 s ago" in page


def test_the_page_does_not_wait_for_the_checks(
    as_: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def free() -> str:
        ran.append("disk")
        return "9 GiB free"

    _checks(monkeypatch, ("disk", free, ""))
    page = as_("owner").get("/p/desk/health").content.decode()
    assert not ran and "Checking…" in page and 'hx-trigger="load"' in page and "?checks" in page
    part = as_("owner").get("/p/desk/health", headers={"HX-Request": "true"}).content.decode()
    assert ran and "9 GiB free" in part


def test_it_is_for_owners(as_: Callable[[str], Client]) -> None:
    assert as_("researcher").get("/p/desk/health").status_code == 403
    assert as_("owner").post("/p/desk/health").status_code == 405
