"""The sessions of benchmarks/keyboard.py: each kind by keys alone, to the end, every judgement kept."""

from typing import Any

import pytest
from playwright.sync_api import Page

from apps.accounts.models import User
from apps.annotation.models import Annotation
from benchmarks.keyboard import EMAIL, SESSIONS, judge, prepare

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_every_kind_by_keys_alone(page: Page, live_server: Any, tools: Any) -> None:
    campaigns = prepare(2)
    tools.login(page, live_server, User.objects.get(email=EMAIL))
    for session in SESSIONS:
        url = f"{live_server.url}/p/desk/campaigns/{campaigns[session.name]}/work/"
        found = judge(page, url, session, 2)
        assert found["judgements"] == 2 and 0 < found["wait_median_ms"] < 60_000
    assert Annotation.objects.count() == 2 * len(SESSIONS)
