"""Verifiers are other people's services: whatever they answer is a reward or an error, and costs no other project."""

import asyncio
import time
from typing import Any

import msgspec
import pytest

from apps.rewards.serving import verifiers as module
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.thread_pools import MOST_IDLE, OwnerPools
from apps.rewards.serving.verifiers import Verifiers, ask
from tests.core import hostile_server
from tests.core.hostile_server import ANSWERS, DOCUMENTS, SLOW, whole
from workers.engine import Overloaded, VerifierScore
from workers.schema import parse_item
from workers.schema.components import Verifier

ITEMS = [parse_item({"text": "a"})]


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]


def verifier_at(url: str, seconds: float = 10.0) -> Verifier:
    return Verifier(name="right", url=url, timeout_seconds=seconds)


@pytest.mark.parametrize("what", ANSWERS)
def test_a_hostile_answer_is_an_error_of_the_request(what: str) -> None:
    with hostile_server.serving(ANSWERS[what]) as url, pytest.raises(Problem) as error:
        ask(verifier_at(url), ITEMS)
    assert error.value.status == 503 and error.value.headers["Retry-After"] == "5"


@pytest.mark.parametrize("what", DOCUMENTS)
def test_a_hostile_document_is_an_error_of_the_request(what: str) -> None:
    with hostile_server.serving(whole(DOCUMENTS[what])) as url, pytest.raises(Problem) as error:
        ask(verifier_at(url), ITEMS)
    assert error.value.status == 502


@pytest.mark.parametrize("what", SLOW)
def test_a_slow_answer_has_an_end(what: str) -> None:
    with hostile_server.serving(SLOW[what]) as url, pytest.raises(Problem) as error:
        ask(verifier_at(url, 0.5), ITEMS)
    assert error.value.status == 503


def test_verifiers_that_hang_hold_up_no_other_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen threads were everyone's before."""
    monkeypatch.setattr(module, "CONCURRENT_CALLS", 2)

    async def run(slow: str, quick: str) -> float:
        verifiers = Verifiers()
        hanging: list[asyncio.Task[Any]] = [
            asyncio.create_task(verifiers.verifier("beta")(verifier_at(slow, 5.0), ITEMS))  # type: ignore[arg-type]
            for _ in range(6)
        ]
        await asyncio.sleep(0.1)
        began = time.monotonic()
        assert await verifiers.verifier("alpha")(verifier_at(quick), ITEMS) == [VerifierScore(1.0)]
        seconds = time.monotonic() - began
        assert not any(task.done() for task in hanging)
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        verifiers.close()
        return seconds

    with (
        hostile_server.serving(hostile_server.silent) as slow,
        hostile_server.serving(whole(b'{"rewards": [1]}')) as quick,
    ):
        assert asyncio.run(run(slow, quick)) < 4


def test_too_many_that_wait_are_told_so() -> None:
    async def run() -> None:
        verifiers = Verifiers()
        verifiers._pools.get("beta").waiting = module.MOST_WAITING
        with pytest.raises(Overloaded, match=r"1000 requests of the project beta"):
            await verifiers.verifier("beta")(verifier_at("http://127.0.0.1:1"), ITEMS)
        verifiers.close()

    asyncio.run(run())


def test_pools_of_deleted_owners_leave_no_threads() -> None:
    pools = OwnerPools[int]("test", 1)
    busy = pools.get(-1)
    with busy.holding(1):
        for key in range(200):
            pools.get(key)
        assert pools.get(-1) is busy, "what is waited for stays"
    assert len(pools) <= MOST_IDLE + 2
    pools.close()


TURNS = parse_item(
    {"messages": [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]}
)


@pytest.mark.parametrize("steps", [None, [None], [[0.25, 0.75]]])
def test_a_verifier_may_answer_steps(steps: Any) -> None:
    reply = {"rewards": [1.0]} | ({} if steps is None else {"steps": steps})
    with hostile_server.serving(whole(msgspec.json.encode(reply))) as url:
        (verdict,) = ask(verifier_at(url), [TURNS])
    expected = (0.25, 0.75) if steps and steps[0] else (0.0, 1.0)
    assert verdict.score(2).raw == 1.0
    assert verdict.score(2).step_rewards == expected


@pytest.mark.parametrize("steps", [[], [[1.0]], [[0.5, 0.4]], [[0.5, "x"]]])
def test_steps_that_do_not_fit_are_an_error(steps: Any) -> None:
    reply = msgspec.json.encode({"rewards": [1.0], "steps": steps})
    with (
        hostile_server.serving(whole(reply)) as url,
        pytest.raises(Problem, match="sum to its reward") as error,
    ):
        ask(verifier_at(url), [TURNS])
    assert error.value.status == 502
