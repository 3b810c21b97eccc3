"""Uploads, bodies, queries and headers that mean no good, one at a time, drawn by a seed: see `KINDS`.

They grow from what an attack on the product once got through with: traversal by digest, packed bombs, regular
expressions, wide and deep JSON, headers without end, half-open connections, ways out of the proxy.
"""

import gzip
import io
import json
import random
import socket
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import zstandard

from tests.faults.prepare import ENDPOINT, PROJECT
from tests.rewards.hostile import bodies

MEGABYTE = 2**20
_SECONDS = 90.0  # a request may take, until it counts as hung
_SOCKET_SECONDS = 10.0
_BLOCK = 4 * MEGABYTE
COMPAT = (
    f"openrlhf/{ENDPOINT}/get_reward",
    "vllm/classify",
    "vllm/pooling",
    "vllm/score",
    "vllm/rerank",
    "sglang/classify",
    f"tei/{ENDPOINT}/predict",
    f"nemo-gym/{ENDPOINT}/verify",
    f"slime/{ENDPOINT}",
    f"llamafactory/{ENDPOINT}",
)


@dataclass(frozen=True)
class Target:
    """What is attacked, and as whom. key: of the attacker's project. browser, owner: signed in there as an annotator
    and as its owner."""

    url: str
    rewards_url: str
    key: str
    browser: httpx.Client
    owner: httpx.Client
    client: httpx.Client  # with the key

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


@dataclass(frozen=True)
class Outcome:
    """status: of the answer, or how it ended without one. text: the beginning of an answer that may be a fault."""

    status: str
    retry_after: str | None = None
    text: str = ""


Kind = Callable[[random.Random, Target], Outcome]


def _outcome(answer: httpx.Response) -> Outcome:
    text = answer.text[:400] if answer.status_code >= 500 else ""
    return Outcome(str(answer.status_code), answer.headers.get("Retry-After"), text)


def _upload(
    target: Target, body: bytes, *, format: str = "auto", headers: dict[str, str] | None = None
) -> Outcome:
    path = f"/api/v1/projects/{PROJECT}/trajectories?format={format}"
    return _outcome(target.client.post(target.url + path, content=body, headers=headers or {}))


def _trajectory(text: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]
    return {"task": {"id": "hostile", "instruction": "x"}, "messages": messages, **more}


# Uploads

_TEXTS = (
    "\n",
    "<think>",
    "```\n",
    "\nISSUE:\n",
    "(((",
    "\x1b[",
    "[![](",
    "<a ",
    "\n\nHuman:",
    "--- a\n",
    "_*",
    "&#",
    "\t",
)


def patterns(dice: random.Random, target: Target) -> Outcome:
    """A long run of what a regular expression may try in every way; then its page is looked at."""
    text = "a" + dice.choice(_TEXTS) * (dice.choice((10_000, 60_000)) // 2) + "b"
    done = _upload(target, json.dumps(_trajectory(text, id=f"p{dice.random()}")).encode(), format="openai")
    if done.status != "200":
        return done
    newest = target.client.get(f"{target.url}/api/v1/projects/{PROJECT}/trajectories?limit=1").json()[
        "items"
    ][0]["id"]
    page = dice.choice(("", "steps/", "steps/0/", "find/?find=a"))
    return _outcome(target.owner.get(f"{target.url}/p/{PROJECT}/trajectories/{newest}/{page}"))


# Made once: what it costs to make them is the attacker's own time, on a machine that is not the one attacked.


@cache
def _block(text: bytes) -> bytes:
    return (text * _BLOCK)[:_BLOCK]


@cache
def _zstd(text: bytes, blocks: int) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(_block(text)) * blocks


@cache
def _gzip(text: bytes, blocks: int) -> bytes:
    return gzip.compress(_block(text), 6) * blocks


@cache
def _deflate(text: bytes) -> bytes:
    return zlib.compress(_block(text), 6)


def packed_bombs(dice: random.Random, target: Target) -> Outcome:
    """Kilobytes that unpack to as much as three gigabytes."""
    text = dice.choice((b"\n", b"\0", b"[],", b'{"a":1}\n'))
    blocks = dice.choice((1, 16, 64, 768))
    how = dice.choice(("zstd", "gzip", "zip-zstd", "deflate"))
    if how == "zstd":
        return _upload(target, _zstd(text, blocks))
    if how == "gzip":
        return _upload(target, _gzip(text, min(blocks, 64)))
    if how == "deflate":
        headers = {"Content-Encoding": "deflate", "Content-Type": "application/json"}
        return _outcome(
            target.client.post(f"{target.url}/v1/traces", content=_deflate(text), headers=headers)
        )
    return _upload(target, b"PK\x03\x04" + _zstd(text, min(blocks, 64)), format="inspect")


_OUTSIDE = ("../../secret_key", "/etc/passwd", "samples/../../x", "samples/a%00b", "header.json")


@cache
def _archive(which: str, size: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        if which == "many":
            for number in range(size):
                archive.writestr(f"samples/{number}.json", b"{}")
        elif which == "outside":
            for name in _OUTSIDE:
                archive.writestr(name, b"{}")
        else:
            archive.writestr("header.json", b" " * (size * MEGABYTE) + b"{}")
    return out.getvalue()


def archives(dice: random.Random, target: Target) -> Outcome:
    """Archives of many entries, of entries outside, of entries that are bombs."""
    kinds = (("many", 100), ("many", 20_000), ("outside", 0), ("large", 1), ("large", 64))
    return _upload(target, _archive(*dice.choice(kinds)), format=dice.choice(("auto", "inspect")))


def digests(dice: random.Random, target: Target) -> Outcome:
    """Images that name files of others as if they were attachments; then the trajectory is read."""
    path = dice.choice(
        (
            "../" * dice.randrange(1, 5)
            + dice.choice(("postgres.json", "secret_key", "artifacts/snapshots")),
            "a" * 64,
            "A" * 64,
            "/etc/passwd",
            "..%2f..",
            "",
            "0" * 63 + "/",
            "\x00" * 64,
        )
    )
    part = {"type": "image_url", "image_url": {"url": f"sha256:{path}"}}
    document = _trajectory("look", id=f"d{dice.random()}")
    document["messages"][0]["content"] = [{"type": "text", "text": f"{dice.random()}"}, part]
    done = _upload(target, json.dumps(document).encode(), format="openai")
    if done.status != "200":
        return done
    found = target.client.get(f"{target.url}/api/v1/projects/{PROJECT}/trajectories?limit=1")
    if found.status_code != 200 or not found.json()["items"]:
        return _outcome(found)
    newest = found.json()["items"][0]["id"]
    return _outcome(target.client.get(f"{target.url}/api/v1/trajectories/{newest}"))


# Bodies


_BOMBS: dict[str, Callable[[int], bytes]] = {
    "wide": lambda size: b'{"inputs":[' + b"[]," * size + b"[]]}",
    "deep": lambda size: b'{"inputs":' + b"[" * size,
    "deep objects": lambda size: b'{"inputs":' + b'{"a":' * size,
    "digits": lambda size: b'{"inputs":[' + b"9" * size + b"]}",
    "escapes": lambda size: b'{"inputs":["' + b"\\u0000" * size + b'"]}',
    "keys": lambda size: b"{" + b",".join(b'"%d":0' % n for n in range(size // 8)) + b"}",
    "text": lambda size: b'{"inputs":[{"text":"' + b"a" * size + b'"}]}',
    "numbers": lambda size: b'{"inputs":[{"input_ids":[' + b"1," * size + b"1]}]}",
}


@cache
def _bomb(kind: str, size: int) -> bytes:
    return _BOMBS[kind](size)


def _json_bomb(dice: random.Random) -> bytes:
    return _bomb(dice.choice(list(_BOMBS)), dice.choice((10_000, 300_000, 3_000_000)))


def reward_bodies(dice: random.Random, target: Target) -> Outcome:
    """Wide, deep and long JSON, and broken requests, to every protocol; by the proxy and past it."""
    base = dice.choice((target.url, target.rewards_url))
    paths = [f"/api/v1/rewards/{ENDPOINT}/{verb}" for verb in ("score", "compare", "rank", "advantages")]
    path = dice.choice([*paths, *(f"/compat/{each}" for each in COMPAT)])
    small = next(bodies(dice.randrange(2**31), ENDPOINT))
    body = _json_bomb(dice) if dice.random() < 0.3 else small
    return _outcome(target.client.post(base + path, content=body))


def api_bodies(dice: random.Random, target: Target) -> Outcome:
    """The same to the JSON API of the web process."""
    path = dice.choice(("trajectories", "items", "feedback", "datasets", "runs", "webhooks", "endpoints/x"))
    method = "PUT" if path.startswith("endpoints") else "POST"
    body = _json_bomb(dice) if dice.random() < 0.3 else next(bodies(dice.randrange(2**31), ENDPOINT))
    url = f"{target.url}/api/v1/projects/{PROJECT}/{path}"
    headers = {"Content-Type": "application/json"}
    return _outcome(target.client.request(method, url, content=body, headers=headers))


def hostile_replies(dice: random.Random, target: Target) -> Outcome:
    """A score that waits for a server of someone who means no good: see `hostile_server`."""
    body = {"inputs": [{"text": f"{dice.random()}"}]}
    return _outcome(target.client.post(f"{target.rewards_url}/api/v1/rewards/evil/score", json=body))


# Queries and headers

_VALUES = (
    "\x00",
    "9" * 23,
    "-1",
    "1'\"--",
    "((((",
    "&|!<->:*",
    "2026-13-45",
    "[]",
    "%",
    "a" * 9000,
    "%ff%fe",
    "\ud800",
)
_PAGES = (
    "",
    "campaigns/",
    "campaigns/1/work/",
    "campaigns/1/history/",
    "campaigns/my-work/",
    "trajectories/1/steps/",
)
_NAMES = (
    "q",
    "find",
    "start",
    "page",
    "cursor",
    "sort",
    "task",
    "agent",
    "campaign",
    "since",
    "until",
    "limit",
    "format",
)


def queries(dice: random.Random, target: Target) -> Outcome:
    """Parameters that no database takes."""
    value = quote(dice.choice(_VALUES).encode("utf-8", "surrogatepass"))
    query = "&".join(f"{dice.choice(_NAMES)}={value}" for _ in range(dice.choice((1, 3, 200))))
    if dice.random() < 0.5:
        return _outcome(target.browser.get(f"{target.url}/p/{PROJECT}/{dice.choice(_PAGES)}?{query}"))
    path = dice.choice(("trajectories", "feedback", "models", "endpoints"))
    return _outcome(target.client.get(f"{target.url}/api/v1/projects/{PROJECT}/{path}?{query}"))


def proxy_escapes(dice: random.Random, target: Target) -> Outcome:
    """Ways out of what the proxy passes on."""
    dots = dice.choice(("..", "%2e%2e", "%2E.", "..%2f..", "%252e%252e", "..;", "\\..", ".%00."))
    prefix = dice.choice(("/api/v1/rewards", "/compat", f"/api/v1/rewards/{ENDPOINT}"))
    path = (
        prefix
        + f"/{dots}" * dice.randrange(1, 5)
        + dice.choice(("/metrics", "/internal/dry-run", "/readyz", "//metrics"))
    )
    return _raw(dice, target, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())


_POST = b"POST /login HTTP/1.1\r\nHost: localhost\r\n"


def headers(dice: random.Random, target: Target) -> Outcome:
    """Too many, too long, twice, or no headers at all."""
    line = b"X: " + b"a" * dice.choice((100, 10_000, MEGABYTE)) + b"\r\n"
    request = dice.choice(
        (
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + line * dice.choice((10, 100)) + b"\r\n",
            b"GET /" + b"a" * dice.choice((10_000, MEGABYTE)) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            _POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            _POST + b"Content-Length: -1\r\n\r\n",
            _POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            bytes(dice.randrange(256) for _ in range(500)),
        )
    )
    return _raw(dice, target, request)


def half_open(dice: random.Random, target: Target) -> Outcome:
    """A connection whose request never ends. It is left to the server; see `Held`."""
    held = socket.create_connection(_address(dice, target), timeout=_SOCKET_SECONDS)
    held.sendall(b"POST /login HTTP/1.1\r\nHost: localhost\r\n" + b"X-a: b\r\n" * dice.randrange(3))
    HELD.append(held)
    if len(HELD) > _MOST_HELD:
        HELD.pop(0).close()
    return Outcome("held")


HELD: list[socket.socket] = []
_MOST_HELD = 500


def _address(dice: random.Random, target: Target) -> tuple[str, int]:
    parts = urlsplit(dice.choice((target.url, target.rewards_url)))
    return str(parts.hostname), int(parts.port or 80)


def _raw(dice: random.Random, target: Target, request: bytes) -> Outcome:
    with socket.create_connection(_address(dice, target), timeout=_SOCKET_SECONDS) as connection:
        try:
            connection.sendall(request)
            answer = connection.recv(4096)
        except TimeoutError:
            return Outcome("no answer")
        except OSError:
            return Outcome("closed")
    first, _, rest = answer.partition(b"\r\n")
    words = first.split()
    status = words[1].decode("latin-1") if len(words) > 1 and words[0].startswith(b"HTTP/") else "closed"
    retry = next(
        (line[12:].strip() for line in rest.lower().split(b"\r\n") if line.startswith(b"retry-after:")), None
    )
    return Outcome(
        status, retry and retry.decode("latin-1"), answer[:400].decode("latin-1") if status[0] == "5" else ""
    )


# How often each is drawn.
KINDS: dict[Kind, int] = {
    patterns: 3,
    packed_bombs: 3,
    archives: 2,
    digests: 4,
    reward_bodies: 8,
    api_bodies: 4,
    hostile_replies: 2,
    queries: 6,
    proxy_escapes: 4,
    headers: 4,
    half_open: 4,
}


def attacks(seed: int) -> Iterator[tuple[Kind, random.Random]]:
    """Without end: a kind of attack, and the dice it is drawn with."""
    dice = random.Random(seed)
    while True:
        (kind,) = dice.choices(list(KINDS), list(KINDS.values()))
        yield kind, random.Random(dice.random())


def sent(kind: Kind, dice: random.Random, target: Target) -> Outcome:
    """How one attack ended. A connection that the server ends is a right answer to most of them."""
    try:
        return kind(dice, target)
    except httpx.TimeoutException:
        return Outcome("hung")
    except (httpx.TransportError, OSError):
        return Outcome("closed")
    except httpx.InvalidURL:
        return Outcome("not sent")
