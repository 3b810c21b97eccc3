"""Addresses that people give are called outside only, and whatever their machines answer is bounded."""

import ast
import logging
import socket
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from apps.core.errors import DomainError
from apps.core.http import outgoing
from apps.core.http.outgoing import CallLimits, NoReply, NotCallable, Reply
from tests.core import hostile_server
from tests.core.hostile_server import ANSWERS, SLOW, Answer, whole
from tests.core.servers import Handler, serving

ROOT = Path(__file__).parents[2]
LIMITS = CallLimits(seconds=10.0, body=100_000)
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


@pytest.fixture
def loopback(settings: Any) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]


@pytest.mark.parametrize("url", WITHIN)
def test_what_is_within_is_refused(url: str) -> None:
    with pytest.raises(
        NotCallable, match=r"is not called: there is no such host, or it is in a private network"
    ):
        outgoing.check_url(url)
    with pytest.raises(NotCallable, match=r"is not called"):
        outgoing.request("GET", url, limits=LIMITS)


@pytest.mark.parametrize("url", NO_ADDRESS)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(DomainError, match=r"no address to call|is no URL"):
        outgoing.check_url(url)


def test_passwords_in_an_address_are_refused() -> None:
    with pytest.raises(DomainError, match=r"in a header instead"):
        outgoing.check_url("https://me:secret@example.org/")


def _resolves(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Names resolve to each of the answers in turn, the last forever."""
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
    with pytest.raises(NotCallable):
        outgoing.check_url("https://example.org/")


def test_a_name_that_changes_after_the_check_is_refused_when_called(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolves(monkeypatch, ["93.184.215.14"], ["127.0.0.1"])
    outgoing.check_url("http://rebinding.example/")
    with pytest.raises(NotCallable, match=r"rebinding\.example is not called"):
        outgoing.request("GET", "http://rebinding.example/", limits=LIMITS)


@pytest.mark.parametrize("port", [22, 25, 53, 3306, 5432, 6379, 8001, 9200, 11434])
def test_ports_of_other_services_are_refused(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    _resolves(monkeypatch, ["93.184.215.14"])
    with pytest.raises(NotCallable, match=rf"Port {port} is not called.*80, 443.*TOUCHSTONE_OUTGOING_PORTS"):
        outgoing.check_url(f"http://example.org:{port}/")
    with pytest.raises(NotCallable):
        outgoing.request("GET", f"http://example.org:{port}/", limits=LIMITS)


def test_the_operator_names_the_ports(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    _resolves(monkeypatch, ["93.184.215.14"])
    settings.OUTGOING_PORTS = [4443]
    outgoing.check_url("https://example.org:4443/")
    with pytest.raises(NotCallable):
        outgoing.check_url("https://example.org/")


def test_what_is_within_is_told_as_what_is_unknown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the words no one learns which names there are inside, nor where they lead; the log says."""
    words = set()
    for answers in (["10.20.30.40"], ["fd00::7"], []):
        _resolves(monkeypatch, answers)
        with pytest.raises(NotCallable) as refused, caplog.at_level(logging.WARNING):
            outgoing.check_url("http://name.internal/")
        words.add(refused.value.message)
    assert len(words) == 1 and "10.20.30.40" not in words.pop()
    assert "10.20.30.40" in caplog.text


@pytest.mark.usefixtures("loopback")
def test_open_and_closed_ports_are_told_in_the_same_words() -> None:
    words = set()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    closed = f"http://127.0.0.1:{port}"
    for answer in (hostile_server.closes, ANSWERS["no HTTP"], hostile_server.silent, None):
        with (
            hostile_server.serving(answer or hostile_server.closes) as url,
            pytest.raises(NoReply) as refused,
        ):
            outgoing.request("GET", url if answer else closed, limits=CallLimits(seconds=1.0, body=1000))
        words.add(refused.value.message)
        assert refused.value.reached is (answer is not None)
    assert len(words) == 1


def test_a_lookup_that_hangs_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: [done.wait(30)][:0])
    began = time.monotonic()
    with pytest.raises(NotCallable):
        outgoing.request("GET", "http://slow.example/", limits=CallLimits(seconds=0.3, body=10))
    assert time.monotonic() - began < 10
    done.set()


@pytest.mark.usefixtures("loopback")
def test_a_key_that_no_header_can_carry_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(NoReply) as refused:
        outgoing.request(
            "GET",
            "http://127.0.0.1:9/",
            headers={"Authorization": "Bearer sk-secret\u2019"},
            limits=CallLimits(seconds=1.0, body=10),
        )
    assert refused.value.__cause__ is None
    assert "UnicodeEncodeError" in caplog.text and "sk-secret" not in caplog.text


@pytest.mark.usefixtures("loopback")
def test_redirects_are_not_followed() -> None:
    class Moved(Handler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/")
            self.end_headers()

    with serving(Moved) as url:
        assert outgoing.request("GET", url, limits=LIMITS).status == 302
    with pytest.raises(DomainError):
        outgoing.check_url("http://10.0.0.1/")


def _asked(answer: Answer, limits: CallLimits = LIMITS) -> Reply:
    with hostile_server.serving(answer) as url:
        return outgoing.request("POST", url, body=b"{}", limits=limits)


@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize("what", ANSWERS)
def test_a_hostile_answer_is_refused_and_not_held_in_memory(what: str) -> None:
    """3 kB of gzip within gzip took 3.9 GB before."""
    tracemalloc.start()
    began = time.monotonic()
    try:
        with pytest.raises(NoReply) as refused:
            _asked(ANSWERS[what])
        assert refused.value.status == 502
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
        assert time.monotonic() - began < 30
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize("what", SLOW)
def test_a_call_has_an_end_however_slowly_its_answer_comes(what: str) -> None:
    began = time.monotonic()
    with pytest.raises(NoReply, match=r"took over 0\.6 s"):
        _asked(SLOW[what], CallLimits(seconds=0.6, body=100_000))
    assert 0.5 < time.monotonic() - began < 20


@pytest.mark.usefixtures("loopback")
def test_a_server_that_does_not_read_holds_nobody() -> None:
    def deaf(connection: socket.socket) -> None:
        threading.Event().wait(5)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(NoReply):
            outgoing.request("POST", url, body=b" " * 2**26, limits=CallLimits(seconds=0.6, body=1000))


@pytest.mark.usefixtures("loopback")
def test_a_compressed_answer_is_refused_in_words() -> None:
    with pytest.raises(NoReply, match=r"compressed \(Content-Encoding: gzip\).*answer uncompressed"):
        _asked(ANSWERS["gzip"])


@pytest.mark.usefixtures("loopback")
def test_a_long_answer_is_refused_with_the_limit() -> None:
    with pytest.raises(NoReply, match=r"more than 100,000 bytes"):
        _asked(whole(b" " * 100_001))
    assert len(_asked(whole(b" " * 100_000)).body) == 100_000


@pytest.mark.usefixtures("loopback")
def test_good_answers_in_every_framing_arrive() -> None:
    parts = b"".join(b"3e8\r\n" + b"y" * 1000 + b"\r\n" for _ in range(100)) + b"0\r\n\r\n"
    ok = b"HTTP/1.1 200 OK\r\nContent-Encoding: Identity\r\n"
    for framing in (b"Transfer-Encoding: chunked\r\n\r\n" + parts, b"\r\n" + b"y" * 100_000):
        reply = _asked(lambda connection, sent=ok + framing: connection.sendall(sent))  # type: ignore[misc]
        assert (reply.status, reply.body) == (200, b"y" * 100_000)


@pytest.mark.usefixtures("loopback")
def test_what_is_sent_asks_for_no_compression_and_carries_nothing_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    seen: dict[str, str] = {}

    class Listens(Handler):
        def do_POST(self) -> None:
            seen.update({name.lower(): value for name, value in self.headers.items()})
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Set-Cookie", "a=b")
            self.end_headers()

    with serving(Listens) as url:
        asked = {"Accept-Encoding": "gzip", "X-Ours": "1"}
        assert outgoing.request("POST", url, body=b"{}", headers=asked, limits=LIMITS).status == 200
    assert seen["accept-encoding"] == "identity" and seen["x-ours"] == "1"


@pytest.mark.usefixtures("loopback")
def test_kept_connections_give_each_call_its_own_limits() -> None:
    class Answers(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "90000")
            self.end_headers()
            self.wfile.write(b" " * 90_000)

    client = outgoing.Client(keep=True)
    with serving(Answers) as url:
        assert all(len(client.request("GET", url, limits=LIMITS).body) == 90_000 for _ in range(5))
        with pytest.raises(NoReply):
            client.request("GET", url, limits=CallLimits(seconds=5, body=1000))
        assert client.request("GET", url, limits=LIMITS).status == 200
        client.close()


def test_the_operators_own_addresses_are_called_where_they_are_and_bounded_too() -> None:
    with hostile_server.serving(whole(b"{}")) as url:
        assert outgoing.request("GET", url, limits=LIMITS, guarded=False).body == b"{}"
    with hostile_server.serving(ANSWERS["gzip within gzip"]) as url, pytest.raises(NoReply):
        outgoing.request("GET", url, limits=LIMITS, guarded=False)


# Who else may speak to the network, and to whom.
TRUSTED = {
    "apps/core/http/outgoing.py": "the client itself",
    "apps/core/http/bounded_session.py": "a session for allauth whose calls go by the client",
    "apps/core/http/upstream.py": "TOUCHSTONE_REWARDS_ADDRESS: streams raw bytes both ways, and holds none",
    "apps/core/processes/supervisor.py": "its own ports",
    "apps/core/database/embedded_postgres.py": "its own ports",
    "apps/core/processes/heartbeats.py": "this machine's name",
    "apps/core/http/server.py": "its own ports",
    "apps/core/management/commands/alive.py": "this machine's name",
    "apps/core/management/commands/worker.py": "this machine's name",
    "apps/connectors/sources/s3.py": "botocore signs requests and reads answers; the client sends them",
    "apps/trajectories/hub_datasets.py": "the hub, at the operator's HF_ENDPOINT",
    "apps/core/hub_push.py": "the hub, at the operator's HF_ENDPOINT and command: no page pushes",
    "apps/llm/relay.py": "connections of this machine to it, which it ends",
    "apps/accounts/account_links.py": "only the errors of sending mail are named here",
    "apps/inbox/mail.py": "only the errors of sending mail are named here",
    "apps/accounts/views/sign_on.py": "only the errors of allauth's calls are named here",
    "apps/monitoring/mail.py": "only the errors of sending mail are named here",
    "apps/rewards/serving/judge_errors.py": "only the errors of openai's client are named here",
    "workers/llm/http.py": "which of two libraries openai's client speaks by",
    "workers/llm/http_limits.py": "limits for openai's client",
    "workers/llm/remote.py": "openai's client, bounded: the relay, or a server that the operator names",
    "workers/train/distributed/launch.py": "a free port of this machine",
    "apps/core/storage/artifacts.py": "only the errors of boto3's calls are named here",
    "apps/core/storage/store_identity.py": "this machine's name",
    "apps/training/hub_models.py": "the hub, at the operator's HF_ENDPOINT",
    "workers/launch/host_run.py": "this machine's name",
    "workers/launch/kubernetes.py": "the API server, at the operator's address",
    "workers/launch/ray_driver.py": "a free port and the interfaces of this machine",
    "workers/launch/ray_jobs.py": "Ray's dashboard, at the operator's address",
    "workers/launch/machine_calls.py": "the installation that a machine joins, at the address that is given to `join`",
    "apps/machines/management/commands/join.py": "this machine's name",
    "workers/launch/run_files.py": "the installation that started the job, at TOUCHSTONE_CLUSTER_URL",
}
NETWORK = {
    "aiohttp", "boto3", "botocore", "ftplib", "http.client", "httpcore", "httpx", "httpx2", "huggingface_hub",
    "imaplib", "openai", "poplib", "pycurl", "requests", "smtplib", "socket", "telnetlib", "urllib.request", "urllib3",
    "websockets", "workers.llm.http", "xmlrpc",
}  # fmt: skip
CALLS = {"create_connection", "open_connection", "open_unix_connection", "urlopen", "urlretrieve"}


def _uses_network(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    if not any(each.rpartition(".")[2] in text for each in NETWORK | CALLS):
        return False
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        if any(name == each or name.startswith(f"{each}.") for name in names for each in NETWORK):
            return True
        if isinstance(node, ast.Attribute) and node.attr in CALLS:
            return True
    return False


def test_nothing_else_opens_connections() -> None:
    files = [path for folder in ("apps", "workers") for path in (ROOT / folder).rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in files if _uses_network(path)}
    assert found == set(TRUSTED)


def test_none_but_launchers_use_httpx_past_the_guard() -> None:
    """Whatever else is allowed, only what speaks to addresses of the operator makes a client of httpx."""
    using = {name for name in TRUSTED if "import httpx\n" in (ROOT / name).read_text()}
    launchers = {
        f"workers/launch/{name}.py" for name in ("kubernetes", "machine_calls", "ray_jobs", "run_files")
    }
    assert using == {"apps/core/http/outgoing.py", "apps/core/http/upstream.py"} | launchers
