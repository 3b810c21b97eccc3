"""A judge of passages: what it reads of a trajectory, and which step earns what it says."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from workers.engine import Batcher, ItemScore, Opinion, Version
from workers.engine.judged_passages import MAX_PASSAGES, each_passage
from workers.errors import InvalidRecord, RewardError
from workers.schema import Trajectory, parse_item
from workers.schema.components import JudgePart
from workers.schema.endpoints import parse_spec

SUPPORT = {"name": "support", "type": "judge", "judge": "reader", "passages": "retrieved"}


def searched(*found: Sequence[str], answer: str = "It is Paris [1].") -> dict[str, Any]:
    """A search for each list of passages, and an answer."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "The capital?"}]
    number = 0
    for passages in found:
        calls = []
        for _ in passages:
            number += 1
            call = {"name": "search", "arguments": "{}"}
            calls.append({"id": f"c{number}", "type": "function", "function": call})
        messages.append({"role": "assistant", "content": "Looking.", "tool_calls": calls})
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": passage}
            for call, passage in zip(calls, passages, strict=True)
        ]
    return {"messages": [*messages, {"role": "assistant", "content": answer}]}


class Reader:
    """Says that passages with "Paris" support the answer; of "?" it cannot tell. read: every trajectory."""

    def __init__(self) -> None:
        self.read: list[Trajectory] = []

    async def __call__(self, part: JudgePart, runs: Sequence[Trajectory]) -> list[Opinion]:
        self.read += runs
        return [self._opinion(run.steps[-2].observation[0].content[0].text or "") for run in runs]

    def _opinion(self, passage: str) -> Opinion:
        return Opinion(None if passage == "?" else float("Paris" in passage), f"It read {passage}.")


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    batcher = Batcher()
    yield batcher
    batcher.close()


def scores(batcher: Batcher, reader: Reader, part: dict[str, Any], *items: dict[str, Any]) -> list[ItemScore]:
    version = Version(1, parse_spec({"components": [part]}), {}, batcher, lambda _: None, ask=reader)
    return asyncio.run(version.score(version.render([parse_item(item) for item in items])))


def test_the_step_that_retrieved_a_passage_earns_it(batcher: Batcher) -> None:
    reader = Reader()
    first, none = scores(
        batcher,
        reader,
        SUPPORT,
        searched(["Paris is the capital.", "Lyon is a city."], ["Paris again."], ["Nice."]),
        searched(),
    )
    assert first.reward == pytest.approx(0.5) and first.steps == pytest.approx((0.25, 0.25, 0, 0))
    assert (none.reward, none.steps) == (0, (0,))
    assert (
        first.critiques["support"].splitlines()[0]
        == "Passage 1, agent step 0: It read Paris is the capital.."
    )
    assert none.critiques["support"] == "There is no passage."
    assert [[step.text for step in run.steps] for run in reader.read] == [
        ["The capital?", "", "It is Paris [1]."]
    ] * 4
    assert [len(run.steps[1].observation) for run in reader.read] == [1] * 4


def test_only_those_that_are_cited(batcher: Batcher) -> None:
    reader = Reader()
    (found,) = scores(
        batcher,
        reader,
        SUPPORT | {"passages": "cited"},
        searched(["Paris."], ["Rome."], answer="As [2], [9]."),
    )
    assert (found.reward, len(reader.read)) == (0, 1)


def test_a_passage_of_which_the_judge_cannot_tell(batcher: Batcher) -> None:
    item = searched(["Paris."], ["?"])
    with pytest.raises(RewardError, match="cannot tell how good this is"):
        scores(batcher, Reader(), SUPPORT, item)
    (found,) = scores(batcher, Reader(), SUPPORT | {"otherwise": 0.5}, item)
    assert found.reward == pytest.approx(0.75) and found.steps == pytest.approx((0.5, 0.25, 0))


def test_of_many_passages_some_are_read() -> None:
    trajectory = parse_item(searched([f"passage {number}" for number in range(100)])).content
    assert isinstance(trajectory, Trajectory)
    assert len(each_passage(trajectory, "retrieved")) == MAX_PASSAGES


def test_turns_and_passages_are_two_components() -> None:
    with pytest.raises(InvalidRecord, match="turns or passages"):
        parse_spec({"components": [SUPPORT | {"each_turn": True}]})
