"""Whatever is sent, the answer is a reward or says what is wrong; and no one else notices."""

import json
import os
import random
import socket
import threading
from typing import Any

import httpx
import pytest

from apps.accounts.models import Scope
from apps.accounts.services import create_api_key, create_project
from apps.rewards.serving import change_listener, intake
from apps.rewards.serving.wire import WIRES
from tests.rewards.hostile import bodies

BODIES = int(os.environ.get("TOUCHSTONE_HOSTILE_BODIES", "400"))  # the full number is the benchmark's
PATHS = (
    *(
        "/api/v1/rewards/{endpoint}/score",
        "/api/v1/rewards/{endpoint}/compare",
        "/api/v1/rewards/{endpoint}/rank",
    ),
    "/api/v1/rewards/{endpoint}/advantages",
    *(wire.path for wire in WIRES),
)


def faults(client: httpx.Client, endpoint: str, seed: int, count: int) -> list[str]:
    """What was answered that should not have been."""
    dice, made, found = random.Random(seed), bodies(seed, endpoint), []
    for number in range(count):
        path, sent = dice.choice(PATHS).format(endpoint=endpoint), next(made)
        reply = client.post(path, content=sent, headers={"Content-Type": "application/json"})
        wrong = reply.status_code >= 500 or (reply.status_code >= 400 and not _is_problem(reply))
        if wrong or (reply.status_code == 200 and not _is_finite(reply)):
            found.append(f"{seed}/{number} {path} {reply.status_code} {reply.text[:200]} for {sent[:300]!r}")
    return found


def _is_problem(reply: httpx.Response) -> bool:
    return reply.headers["Content-Type"] == "application/problem+json" and bool(reply.json()["detail"])


def _is_finite(reply: httpx.Response) -> bool:
    """Whether it is JSON by the standard, which knows no NaN; an answer may repeat that word from a text."""
    constants: list[str] = []
    json.loads(reply.text, parse_constant=constants.append)
    return not constants


def test_hostile_bodies(http, endpoint) -> None:
    assert faults(http, endpoint, seed=1, count=BODIES) == []
    good = {"inputs": [{"text": "a"}]}
    assert http.post(f"/api/v1/rewards/{endpoint}/score", json=good).status_code == 200


def test_a_slow_sender_holds_nothing_up(service, http, endpoint, key, monkeypatch) -> None:
    monkeypatch.setattr(intake, "MOST_SECONDS", 1.0)
    host, port = service.url.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port)), timeout=20) for _ in range(20)]
    head = (
        f"POST /api/v1/rewards/{endpoint}/score HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    )
    for run in slow:
        run.sendall(head.encode())
    assert http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [{"text": "a"}]}).status_code == 200
    answers = [entry.recv(65536) for entry in slow]
    assert all(answer.startswith(b"HTTP/1.1 408") for answer in answers)
    for run in slow:
        run.close()


def test_one_keys_data_is_never_in_anothers_answer(service, endpoint, key, http, monkeypatch) -> None:
    """Two projects ask at once, each for texts with its own word: no answer has the other's."""
    monkeypatch.setattr(
        change_listener, "SPACING_SECONDS", 0.01
    )  # a key asks for an endpoint that it has not
    other = create_project(slug="elsewhere")
    theirs = create_api_key(project=other, scopes=[Scope.REWARD])[1]
    leaks: list[Any] = []

    def ask(secret: str, own: str, foreign: str) -> None:
        dice, made = random.Random(own), bodies(hash(own) % 1000, endpoint)
        with httpx.Client(
            base_url=service.url, headers={"Authorization": f"Bearer {secret}"}, trust_env=False, timeout=30
        ) as client:
            for number in range(60):
                path = dice.choice(PATHS).format(endpoint=endpoint)
                sent = next(made) if number % 3 else f'{{"inputs": [{{"text": "{own}", "x": 1}}]}}'.encode()
                reply = client.post(path, content=sent)
                if foreign in reply.text or (secret == theirs and reply.status_code == 200):
                    leaks.append((path, reply.text))

    threads = [
        threading.Thread(target=ask, args=(key, "ours-a1b2", "theirs-c3d4")),
        threading.Thread(target=ask, args=(theirs, "theirs-c3d4", "ours-a1b2")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert leaks == []


@pytest.mark.parametrize("length", ["-5", "many", "99999999999"])
def test_a_length_that_is_none(service, endpoint, key, length) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as one:
        one.sendall(
            f"POST /api/v1/rewards/{endpoint}/score HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Length: {length}\r\n\r\n{{}}".encode()
        )
        assert one.recv(65536).split(b" ")[1] in (b"400", b"413")


@pytest.mark.parametrize("path", PATHS)
def test_a_bomb_of_json_is_refused_before_it_is_built(http, endpoint, path) -> None:
    """60 MB of empty lists took 26 s and 2 GB; now their brackets are counted first."""
    for part, limit in ((b"[],", 250_000), (b"1,", 1_000_000), (b'{"a":1},', 250_000)):
        bomb = b'{"inputs":[' + part * 600_000 + (b"1," * 500_000) + b"1]}"
        reply = http.post(path.format(endpoint=endpoint), content=bomb)
        assert (reply.status_code, _is_problem(reply)) == (413, True)
        assert reply.json()["limit"] == limit
        assert f"over {limit:,}" in reply.json()["detail"]


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        (b'{"inputs":' + b"[" * 65 + b"]" * 65 + b"}", 413, "over 64 levels"),
        (b'{"inputs":[{"text":"a","logprob":' + b"1" * 1001 + b"}]}", 413, "1,001 digits"),
        (b'{"' + b"a" * 5000 + b'":1}', 413, "a key of 5,000 bytes"),
        (b'{"inputs":[{"text":"' + b"a" * (17 * 2**20) + b'"}]}', 413, "a string of"),
        (b'{"inputs":[],"inputs":[{"text":"a"}]}', 400, "the key 'inputs' twice"),
    ],
    ids=["depth", "digits", "key", "string", "twice"],
)
def test_other_shapes_of_json_are_refused(http, endpoint, sent, status, says) -> None:
    reply = http.post(f"/api/v1/rewards/{endpoint}/score", content=sent)
    assert (reply.status_code, _is_problem(reply)) == (status, True)
    assert says in reply.json()["detail"]
