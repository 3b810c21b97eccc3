"""Addresses that people give are called outside only."""

import ast
import socket
from pathlib import Path
from typing import Any

import pytest

from apps.core import outgoing
from apps.core.errors import DomainError
from tests.core.servers import Handler, serving

ROOT = Path(__file__).parents[2]
WITHIN = [
    "http://127.0.0.1/", "http://localhost:8000/", "http://[::1]/", "http://0.0.0.0/", "http://10.1.2.3/",
    "http://192.168.0.1/", "http://172.16.5.5/", "http://169.254.169.254/latest/meta-data/", "http://100.64.0.1/",
    "http://[::ffff:127.0.0.1]/", "http://[::ffff:a9fe:a9fe]/", "http://[fd00::1]/", "http://[fe80::1]/",
    "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://2130706433/", "http://0x7f.1/", "http://127.1/",
    "http://224.0.0.1/", "http://255.255.255.255/",
]  # fmt: skip
NO_ADDRESS = [
    "ftp://example.org/",
    "file:///etc/passwd",
    "gopher://x/",
    "//example.org",
    "example.org",
    "http://",
    "",
]


@pytest.mark.parametrize("url", WITHIN)
def test_what_is_within_is_refused(url: str) -> None:
    with pytest.raises(DomainError, match=r"is within this network|There is no host"):
        outgoing.check_url(url)
    with outgoing.client() as client, pytest.raises(DomainError):
        client.get(url)


@pytest.mark.parametrize("url", NO_ADDRESS)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(DomainError, match=r"no address to call|is no URL"):
        outgoing.check_url(url)


def test_passwords_in_an_address_are_refused() -> None:
    with pytest.raises(DomainError, match=r"in a header instead"):
        outgoing.check_url("https://me:secret@example.org/")


def _resolves(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Names resolve to each of the answers in turn, the last for ever."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, *args: Any, **kwargs: Any) -> list[Any]:
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def test_an_address_outside_may_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolves(monkeypatch, ["93.184.215.14"])
    assert outgoing.check_url("https://example.org/hook") == "https://example.org/hook"


def test_one_address_within_among_several_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolves(monkeypatch, ["93.184.215.14", "10.0.0.1"])
    with pytest.raises(DomainError, match=r"is at 10\.0\.0\.1"):
        outgoing.check_url("https://example.org/")


def test_a_name_that_changes_after_the_check_is_refused_when_called(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolves(monkeypatch, ["93.184.215.14"], ["127.0.0.1"])
    outgoing.check_url("http://rebinding.example/")
    with outgoing.client() as client, pytest.raises(DomainError, match=r"is at 127\.0\.0\.1"):
        client.get("http://rebinding.example/")


def test_the_operator_may_allow_a_network_and_redirects_are_not_followed(settings: Any) -> None:
    class Moved(Handler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/")
            self.end_headers()

    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    with serving(Moved) as url, outgoing.client() as client:
        assert client.get(url).status_code == 302
    with pytest.raises(DomainError):
        outgoing.check_url("http://10.0.0.1/")


# Who may speak to the network otherwise, and to whom: always an address of the operator.
TRUSTED = {
    "apps/core/outgoing.py": "the guard itself",
    "apps/core/proxy.py": "TOUCHSTONE_REWARDS_ADDRESS",
    "apps/core/health.py": "TOUCHSTONE_REWARDS_ADDRESS",
    "apps/core/supervisor.py": "its own ports",
    "apps/core/embedded.py": "its own ports",
    "apps/core/presence.py": "this machine's name",
    "apps/core/serving.py": "its own ports",
    "apps/core/management/commands/worker.py": "this machine's name",
    "apps/judges/calls.py": "by the guard; only the errors of its client are named here",
    "apps/judges/relay.py": "connections of this machine to it, which it ends",
    "apps/rewards/serving/verifiers.py": "by the guard; only the errors of its client are named here",
    "apps/rewards/serving/vllm_server.py": "TOUCHSTONE_VLLM_SERVERS",
    "apps/accounts/views/sign_on.py": "TOUCHSTONE_OIDC_URL, by allauth; only its errors are named here",
}
NETWORK = {"httpx", "httpcore", "requests", "urllib.request", "urllib3", "socket", "aiohttp", "http.client"}


def test_nothing_else_of_the_apps_opens_connections() -> None:
    found = set()
    for path in (ROOT / "apps").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if NETWORK & set(names):
                found.add(str(path.relative_to(ROOT)))
    assert found == set(TRUSTED)
