"""Every answer has the headers that browsers protect by, whoever gives it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from apps.config.asgi import application as web
from apps.core.http.security_headers import SecurityHeaders
from apps.rewards.serving.app import application as rewards

EXPECTED = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

TEMPLATES = Path(__file__).parents[2] / "templates"


@pytest.fixture
def browser(transactional_db: None, settings: Any) -> Iterator[TestClient]:
    settings.REWARDS_ADDRESSES, settings.REWARDS_URL = ["http://127.0.0.1:9"], ""
    with TestClient(web, base_url="http://localhost", follow_redirects=False) as client:
        yield client


WEB = [
    ("GET", "/login", 200),
    ("GET", "/", 302),
    ("GET", "/nothing", 404),
    ("POST", "/login", 403),  # without its token
    ("GET", "/api/v1/docs", 200),
    ("GET", "/api/v1/openapi.json", 200),
    ("GET", "/api/v1/nothing", 404),
    ("GET", "/api/v1/projects/desk/trajectories", 401),
    ("DELETE", "/api/v1/runs/1", 405),
    ("POST", "/v1/traces", 401),
    ("GET", "/static/css/touchstone.css", 200),
    ("GET", "/static/css/nothing.css", 404),
    ("POST", "/static/css/touchstone.css", 405),
    ("GET", "/healthz", 200),
    ("GET", "/readyz", 200),
    ("POST", "/api/v1/rewards/desk/score", 503),  # passed on, to no one
    ("POST", "/compat/vllm/classify", 503),
]


def test_of_web(browser: TestClient, settings: Any) -> None:
    """One test for all of them: emptying the database after each would take minutes."""
    for method, path, status in WEB:
        answer = browser.request(method, path)
        assert (path, answer.status_code) == (path, status)
        _is_protected(answer, is_static=path.startswith("/static/") and status == 200)
    too_large = {"Content-Length": str(settings.MAX_UPLOAD_BYTES + 1)}
    answer = browser.post("/p/x/trajectories/upload/", headers=too_large)
    assert answer.status_code == 413
    _is_protected(answer)
    answer = browser.get("/login", headers={"Host": "elsewhere.example.org"})
    assert answer.status_code == 400
    _is_protected(answer)


@pytest.mark.parametrize("path", ["/healthz", "/nothing", "/api/v1/rewards/openapi.json"])
def test_of_rewards(path: str) -> None:
    _is_protected(TestClient(rewards).get(path))


def test_what_an_application_says_itself_stays() -> None:
    async def picture(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"Content-Security-Policy", b"sandbox"), (b"cache-control", b"private")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    answer = TestClient(SecurityHeaders(picture)).get("/")
    assert answer.headers.get_list("content-security-policy") == ["sandbox"]
    assert answer.headers.get_list("cache-control") == ["private"]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("url", "seconds", "subdomains", "expected"),
    [
        ("http://localhost:8000", 1000, True, None),
        ("https://a.example.org", 1000, False, "max-age=1000"),
        ("https://a.example.org", 1000, True, "max-age=1000; includeSubDomains"),
        ("https://a.example.org", 0, True, "max-age=0"),
    ],
)
def test_https_is_kept_to_where_it_is_spoken(
    settings: Any, url: str, seconds: int, subdomains: bool, expected: str | None
) -> None:
    settings.PUBLIC_URL, settings.HSTS_SECONDS, settings.HSTS_SUBDOMAINS = url, seconds, subdomains
    for path in ("/healthz", "/static/css/touchstone.css", "/static/nothing"):
        answer = TestClient(web, base_url="http://localhost").get(path)
        assert answer.headers.get("strict-transport-security") == expected


def _is_protected(answer: Any, *, is_static: bool = False) -> None:
    headers = answer.headers
    for name, value in EXPECTED.items():
        assert headers.get_list(name) == [value], name
    assert "camera=()" in headers["permissions-policy"] and "geolocation=()" in headers["permissions-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert ("no-cache" if is_static else "no-store") in headers["cache-control"]


def test_no_template_has_an_inline_style_or_handler_which_the_policy_blocks() -> None:
    """Browsers drop them without a word to whoever looks at the page; styles are classes, handlers are modules."""
    blocked = re.compile(r"""<[a-z][^>]*\s(?:style|on[a-z]+)=["']""")
    found = [
        f"{path.relative_to(TEMPLATES)}: {match[0][-40:]}"
        for path in sorted(TEMPLATES.rglob("*.html"))
        for match in blocked.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []
    assert blocked.search('<p class="mb-0" style="color: red">')
    assert blocked.search("<button onclick='go()'>")
