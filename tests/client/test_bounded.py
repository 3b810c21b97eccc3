"""What answers at the server's address may be someone else: its replies are bounded, in both colours."""

import asyncio
from typing import Any

import pytest
from touchstone_client import Retries, RewardServiceError, transport
from touchstone_client.errors import BadReply
from touchstone_client.transport import AsyncCaller, Caller

from tests.core import hostile_server
from tests.core.hostile_server import ANSWERS, DOCUMENTS, whole

ONCE = Retries(attempts=1)


def ask(url: str) -> Any:
    caller = Caller(url, "key", retries=ONCE, timeout=5.0)
    try:
        return caller.call("POST", "/score", json={})
    finally:
        caller.close()


async def ask_async(url: str) -> Any:
    caller = AsyncCaller(url, "key", retries=ONCE, timeout=5.0)
    try:
        return await caller.call("POST", "/score", json={})
    finally:
        await caller.close()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_BYTES", 100_000)


@pytest.mark.parametrize(
    "what", [each for each in ANSWERS if each not in ("chunks of a byte", "endless interim replies")]
)
def test_a_hostile_answer_is_an_error(what: str) -> None:
    with hostile_server.serving(ANSWERS[what]) as url:
        with pytest.raises(RewardServiceError):
            ask(url)
        with pytest.raises(RewardServiceError):
            asyncio.run(ask_async(url))


def test_a_compressed_reply_and_a_long_one_are_said() -> None:
    for what, said in (("gzip", r"compressed \(gzip\)"), ("an endless body", "more than 100,000 bytes")):
        with hostile_server.serving(ANSWERS[what]) as url, pytest.raises(BadReply, match=said):
            ask(url)


@pytest.mark.parametrize("what", ["arrays within arrays", "no text", "nothing"])
def test_a_hostile_document_is_an_error(what: str) -> None:
    with hostile_server.serving(whole(DOCUMENTS[what])) as url, pytest.raises(RewardServiceError):
        ask(url)


def test_a_good_reply_is_read() -> None:
    with hostile_server.serving(whole(b'{"rewards": [1]}')) as url:
        assert ask(url) == asyncio.run(ask_async(url)) == {"rewards": [1]}
