"""The client against a server that misbehaves on cue."""

import asyncio
import inspect
from contextlib import suppress

import httpx
import pytest
from touchstone_client import (
    AsyncRewardClient,
    BadReply,
    Refused,
    Retries,
    RewardClient,
    Unavailable,
    Unreachable,
    ingest,
)

from tests.client.conftest import Reply

HASTY = Retries(attempts=3, first_seconds=0.0)
ITEMS = [{"text": "a"}, {"text": "bbb"}, {"text": "cc"}]


def test_score(server) -> None:
    with RewardClient(server.url, "sample", "KEY", run="r1", policy_version="p1") as client:
        scores = client.score(ITEMS, version=3)
        assert scores.rewards == [1.0, 3.0, 2.0]
        assert (scores.endpoint, scores.version, scores.usage["tokens"]) == ("sample", 3, 6)
        assert scores.results[1].steps == (3.0,)
        assert scores.results[1].quantiles == {0.05: -1.0, 0.5: 3.0}
        assert scores.results[1].component_steps == {"main": (3.0,)}
        assert scores.results[1].speakers == {"Ann": {"main": 3.0}}
        client.score(ITEMS, component_steps=True)
        assert server.calls[-1]["body"]["component_steps"] is True
    call = server.calls[0]
    assert call["path"] == "/api/v1/rewards/sample/score"
    assert call["headers"]["Authorization"] == "Bearer KEY"
    assert call["body"]["inputs"] == ITEMS
    options = {key: value for key, value in call["body"].items() if key != "inputs"}
    assert options == {"steps": True, "uncertainty": True, "version": 3, "run": "r1", "policy_version": "p1"}
    assert len(server.connections) == 1


def test_many_items_go_in_pages(server) -> None:
    with RewardClient(server.url, "sample", "KEY", batch=2) as client:
        scores = client.score(ITEMS)
        assert client.score([]).rewards == []
    assert scores.rewards == [1.0, 3.0, 2.0]
    assert scores.usage == {"inputs": 3, "tokens": 6}
    assert [len(call["body"]["inputs"]) for call in server.calls] == [2, 1, 0]


def test_every_call_takes_a_version_and_a_policy_version(server) -> None:
    """The calls of both clients, found by their signatures, so that a new one cannot forget them."""
    calls = {
        "score": (ITEMS,),
        "critique": (ITEMS,),
        "rank": (ITEMS,),
        "compare": ITEMS[:2],
        "advantages": ([],),
        "guard": ([{"role": "user", "content": "Cancel it."}], {"name": "cancel", "arguments": {}}),
    }
    for kind in (RewardClient, AsyncRewardClient):
        asks = {
            name
            for name, method in vars(kind).items()
            if inspect.isfunction(method) and not name.startswith("_") and name not in ("close", "describe")
        }
        assert asks == set(calls)
    with RewardClient(server.url, "sample", "KEY", batch=2, version=1, policy_version="p") as client:
        for name, given in calls.items():
            with suppress(BadReply):  # the server's reply has the shape of scores
                getattr(client, name)(*given, version=3, policy_version="q")

    async def ask() -> None:
        async with AsyncRewardClient(server.url, "sample", "KEY", batch=2, version=1) as client:
            for name, given in calls.items():
                with suppress(BadReply):
                    await getattr(client, name)(*given, version=3, policy_version="q")

    asyncio.run(ask())
    assert {call["path"].rpartition("/")[2] for call in server.calls} == set(calls)
    assert len(server.calls) == 16  # two pages of `score` and of `critique`
    assert all((call["body"]["version"], call["body"]["policy_version"]) == (3, "q") for call in server.calls)


def test_describe(server) -> None:
    with RewardClient(server.url, "sample", "KEY") as client:
        assert client.describe() == {"version": 3}


@pytest.mark.parametrize("status", [429, 502, 503])
def test_what_passes_is_tried_again(server, status) -> None:
    server.replies = [Reply(status, {"detail": "busy"}, {"Retry-After": "0"}), Reply(hang_up=True)]
    with RewardClient(server.url, "sample", "KEY", retries=HASTY) as client:
        assert client.score(ITEMS).rewards == [1.0, 3.0, 2.0]
    assert len(server.calls) == 3


def test_attempts_are_bounded(server) -> None:
    server.replies = [Reply(429, {"status": 429, "detail": "too many tokens wait"})] * 5
    with (
        RewardClient(server.url, "sample", "KEY", retries=HASTY) as client,
        pytest.raises(Unavailable, match="too many tokens wait") as caught,
    ):
        client.score(ITEMS)
    assert len(server.calls) == 3
    assert caught.value.status == 429


def test_what_is_wrong_is_not_tried_again(server) -> None:
    problem = {"status": 422, "detail": "unknown role", "pointer": "/inputs/0/messages/0/role"}
    server.replies = [Reply(422, problem)]
    with RewardClient(server.url, "sample", "KEY") as client, pytest.raises(Refused) as caught:
        client.score(ITEMS)
    assert (caught.value.problem, caught.value.pointer) == (problem, "/inputs/0/messages/0/role")
    assert "unknown role" in str(caught.value)
    assert len(server.calls) == 1


def test_a_switched_off_endpoint_is_not_tried_again(server) -> None:
    server.replies = [Reply(503, {"detail": "switched off: hacked", "switched_off": True})]
    with RewardClient(server.url, "sample", "KEY") as client, pytest.raises(Unavailable, match="hacked"):
        client.score(ITEMS)
    assert len(server.calls) == 1


@pytest.mark.parametrize("body", [b"<html>", {"results": []}, {"endpoint": 1, "results": [{}], "version": 1}])
def test_a_reply_of_something_else_is_an_error(server, body) -> None:
    server.replies = [Reply(200, body)]
    with RewardClient(server.url, "sample", "KEY") as client, pytest.raises(BadReply):
        client.score(ITEMS)


def test_a_proxys_page_is_an_error_with_its_text(server) -> None:
    server.replies = [Reply(502, b"<h1>Bad gateway</h1>")] * 3
    with (
        RewardClient(server.url, "sample", "KEY", retries=HASTY) as client,
        pytest.raises(Unavailable) as caught,
    ):
        client.score(ITEMS)
    assert (caught.value.problem, "Bad gateway" in str(caught.value)) == ({}, True)


def test_nobody_there() -> None:
    with (
        RewardClient("http://127.0.0.1:9", "sample", "KEY", retries=HASTY) as client,
        pytest.raises(Unreachable, match="3 attempts"),
    ):
        client.score(ITEMS)


def test_a_key_may_be_made_for_each_call(server) -> None:
    keys = iter(["one", "two"])
    server.replies = [Reply(503, None, {"Retry-After": "0"})]
    with RewardClient(server.url, "sample", lambda: next(keys), retries=HASTY) as client:
        client.score(ITEMS)
    assert [call["headers"]["Authorization"] for call in server.calls] == ["Bearer one", "Bearer two"]


def test_the_asynchronous_client_does_the_same(server) -> None:
    server.replies = [Reply(503, {}, {"Retry-After": "0"}), Reply(hang_up=True)]

    async def ask() -> None:
        async with AsyncRewardClient(server.url, "sample", "KEY", retries=HASTY, batch=2) as client:
            assert (await client.score(ITEMS)).rewards == [1.0, 3.0, 2.0]
            assert await client.describe() == {"version": 3}
            server.replies = [Reply(404, {"detail": "no such endpoint"})]
            with pytest.raises(Refused, match="no such endpoint"):
                await client.score(ITEMS)

    asyncio.run(ask())


def test_ingest(server) -> None:
    server.replies = [Reply(200, {"created": 1, "duplicates": 0, "rejected": []})]
    done = ingest(server.url, "desk", "KEY", [{"messages": []}], format="openai", keep_good=True)
    assert (done.created, done.duplicates, done.rejected) == (1, 0, ())
    assert server.calls[0]["path"] == "/api/v1/projects/desk/trajectories?format=openai&keep_good=1"
    assert server.calls[0]["body"] == [{"messages": []}]


def test_waits_double_and_keep_to_their_bound() -> None:
    retries = Retries(attempts=10, first_seconds=1.0, longest_seconds=8.0)
    for attempt, longest in [(1, 1), (2, 2), (3, 4), (4, 8), (9, 8)]:
        assert longest / 2 <= retries.wait(attempt) <= longest
    assert retries.wait(10) is None
    asked = httpx.Response(429, headers={"Retry-After": "5"})
    assert retries.wait(1, asked) == 5
    assert retries.wait(1, httpx.Response(429, headers={"Retry-After": "500"})) == 8
