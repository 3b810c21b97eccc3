"""Every page and call of the installation with values that PostgreSQL cannot hold or look for: refused or not found,
and never an error of ours."""

import ast
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django import forms
from django.db import transaction
from django.test import Client, override_settings
from django.urls import get_resolver
from django.utils import timezone

from apps.accounts.models import Scope
from apps.accounts.services import create_api_key
from apps.core.errors import DomainError
from apps.core.http.api import decode_cursor, encode_cursor
from apps.core.http.query_parameters import query_parameters
from tests.config.routes import api_operations
from tests.config.tables import CALLS, PAGES, body_for
from tests.config.world import World, filled, make_world
from tests.worlds import home_settings, rows_of_a_module

pytestmark = pytest.mark.usefixtures("brief_error_pages")
ROOT = Path(__file__).parents[2]
HUGE = "99999999999999999999999"
VALUES = [
    *(
        "\x00",
        "a\x00b",
        HUGE,
        f"-{HUGE}",
        "9" * 5000,
        "9223372036854775808",
        "-1",
        "1'\"--",
        "%ED%A0%80",
        "\ufffd",
    ),
    *(
        "((((",
        "&|!<->:*",
        "2026-13-45",
        "0001-01-01",
        "9999-12-31T23:59:59Z",
        "[]",
        "%",
        "a" * 9000,
        "1e999",
        "NaN",
    ),
]
PARAMETERS = [
    *("q", "find", "start", "page", "cursor", "sort", "order", "task", "agent", "run"),
    *("campaign", "kind", "state", "filter", "from", "to", "a", "b", "days", "split"),
    *("annotator", "criterion", "all", "version", "limit", "tag", "by", "more", "id", "model"),
    *("endpoint", "policy", "since", "until", "search", "pattern", "success", "shown", "comment", "name"),
    *("format", "keep_good", "origin"),
]


@cache
def _asked_for() -> frozenset[str]:
    """Names of the parameters that the code asks for, wherever."""
    found = set()
    for path in (ROOT / "apps").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if ".GET" not in source and ".POST" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            asked: Any = None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                asked = node.args[0] if ast.unparse(node.func.value).endswith((".GET", ".POST")) else None
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith((".GET", ".POST")):
                asked = node.slice
            if isinstance(asked, ast.Constant) and isinstance(asked.value, str):
                found.add(asked.value)
    return frozenset(found)


def _fields(of: type = forms.BaseForm) -> Iterator[str]:
    for each in of.__subclasses__():
        yield from getattr(each, "base_fields", {}) if each.__module__.startswith("apps.") else ()
        yield from _fields(each)


def _names() -> list[str]:
    get_resolver().url_patterns  # noqa: B018  imports every view, and with it every form
    return sorted({*PARAMETERS, *_asked_for(), *_fields()})


@pytest.fixture(scope="module")
def world(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Once for this file: each request is undone."""
    home = override_settings(**home_settings(tmp_path_factory.mktemp("home")))
    with home, rows_of_a_module(django_db_blocker):
        yield make_world("desk")


def _mixed(names: list[str], turn: int) -> Iterator[dict[str, str]]:
    """Every name with NUL, every name with a huge number, then each name with a value of its own.

    turn: which values; with the place of the page in its table, so that over all pages each name has each value.
    """
    yield dict.fromkeys(names, "a\x00b")
    yield dict.fromkeys(names, HUGE)
    yield {name: VALUES[2:][(place + turn) % len(VALUES[2:])] for place, name in enumerate(names)}


def _status(client: Client, method: str, path: str, *arguments: Any, **named: Any) -> int:
    """Undone afterwards, so that each request finds what the one before it found."""
    with transaction.atomic():
        answer = client.generic(method, path, *arguments, **named)
        if getattr(answer, "streaming", False):
            b"".join(answer.streaming_content)  # type: ignore[attr-defined]
        transaction.set_rollback(True)
    return answer.status_code


def _owner(world: World) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(world.people["owner"])
    return client


def test_no_page_fails_on_a_strange_parameter(world: World, db: None) -> None:
    client, names, failed = _owner(world), _names(), []
    for turn, (path, (method, _)) in enumerate(PAGES.items()):
        if method != "GET" or path.startswith("oidc/"):
            continue
        for number, values in enumerate(_mixed(names, turn)):
            status = _status(client, "GET", filled(path, world.names, "desk"), query_params=values)
            if status >= 500 or (number == 0 and status not in (400, 404)):
                failed.append((path, number, status))
    assert not failed


def test_no_form_fails_on_a_strange_field(world: World, db: None) -> None:
    client, names, failed = _owner(world), _names(), []
    for turn, path in enumerate(PAGES):
        if path == "logout" or path.startswith("oidc/"):
            continue
        for number, values in enumerate(_mixed(names, turn)):
            form, kind = urlencode(values), "application/x-www-form-urlencoded"
            status = _status(client, "POST", filled(path, world.names, "desk"), form, content_type=kind)
            if status >= 500 or (number == 0 and status not in (400, 403, 404, 405)):
                failed.append((path, number, status))
    assert not failed


def test_no_path_and_no_cookie_fails(world: World, db: None) -> None:
    client, failed = _owner(world), []
    for path in PAGES:
        for value in ("%00", HUGE, "9" * 5000, "%ED%A0%80"):
            strange = dict.fromkeys(world.names, value)
            for where in {filled(path, strange, "desk"), filled(path, world.names, f"desk{value}")}:
                status = _status(client, PAGES[path][0], where)
                if status >= 500:
                    failed.append((where[:60], status))
    assert not failed
    client.cookies["sessionid"] = "\x00a"
    assert _status(client, "GET", "/") == 302


BODY_TEXTS = ['{"name": "\\ud800"}', '{"name": "\\u0000"}', "[" * 100_000, '{"a":' * 5000, "9" * 5000, "\xff"]


def test_no_call_fails_on_a_strange_value(world: World, db: None) -> None:
    key = create_api_key(project=world.project, scopes=[each.value for each in Scope], by=None)[1]
    client, failed = Client(raise_request_exception=False), []
    for turn, (method, path) in enumerate(CALLS):
        here, named = filled(path, world.names, "desk"), list(body_for(path))
        bodies = [json.dumps(values) for values in _mixed([*PARAMETERS, *named], turn)]
        asked = [(body, None) for body in (*bodies, *BODY_TEXTS)] if method != "GET" else []
        operation = api_operations().get((method, path))
        names = query_parameters(operation) if operation else []
        for body, query in [*asked, *(("", values) for values in _mixed(names, turn))]:
            headers = {"Authorization": f"Bearer {key}"}
            status = _status(
                client,
                method,
                here,
                body,
                content_type="application/json",
                headers=headers,
                query_params=query,
            )
            if status >= 500:
                failed.append((method, path, body[:20], status))
    assert not failed


@pytest.mark.parametrize(
    "cursor", ["\x00", "a", "W10", "WyIyMDI2LTAxLTAxIiwgSW5maW5pdHld", "W1tbW1s", "9" * 5000]
)
def test_a_cursor_that_is_none_is_told(cursor: str) -> None:
    with pytest.raises(DomainError, match="cursor"):
        decode_cursor(cursor)


def test_a_cursor_of_ours_is_read() -> None:
    now = timezone.now()
    assert decode_cursor(encode_cursor(now, 7)) == (now, 7)
