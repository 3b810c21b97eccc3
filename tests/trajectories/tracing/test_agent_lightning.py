"""Spans of Agent-Lightning: a file that agentlightning 0.3.0 wrote by docs/examples/agentlightning_rollouts.py.

Each of its three rollouts has a call of a model, a reward of two parts that the agent emitted before its end, and the
reward that it returned. A scripted model answered.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.trajectories.formats.tracing.agent_lightning import final_reward
from apps.trajectories.import_reader import ImportReader
from tests.peer_modules import peer_loader
from tests.trajectories.real_files import comes_back
from tests.trajectories.tracing.test_tracing_formats import records
from workers.schema import Trajectory

SPANS = [
    json.loads(line)
    for line in (Path(__file__).parent / "agentlightning_spans.jsonl").read_text().splitlines()
]
REQUESTS = {"Where is my order 1041?", "Order 1042 has not come.", "Was I charged for order 1043?"}


def read(spans: list[Any]) -> list[Trajectory]:
    reader = ImportReader(None)
    raw = "".join(f"{json.dumps(span)}\n" for span in spans).encode()
    found = [reader.read(record) for record in records(reader, raw) if record.document is not None]
    assert reader.format is not None and reader.format.name == "otel-spans"
    return found


def by_rollout() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for span in SPANS:
        found.setdefault(span["rollout_id"], []).append(span)
    return found


def test_each_attempt_is_a_trajectory_with_the_reward_that_was_returned() -> None:
    found = read(SPANS)
    assert {trajectory.id for trajectory in found} == {
        f"{span['rollout_id']}/{span['attempt_id']}" for span in SPANS
    }
    for trajectory in found:
        system, asked, answered = trajectory.steps
        assert (system.source, asked.source, answered.source) == ("system", "user", "agent")
        assert asked.text in REQUESTS and answered.text == f"We look into it: {asked.text}"
        assert trajectory.reward == len(answered.text) / 100
        assert trajectory.metadata["model"] == "small"
        assert comes_back(trajectory)


def test_the_order_of_the_spans_in_the_file_does_not_matter() -> None:
    mixed = random.Random(0).sample(SPANS, len(SPANS))
    assert {trajectory.id: trajectory.reward for trajectory in read(mixed)} == {
        trajectory.id: trajectory.reward for trajectory in read(SPANS)
    }


def test_a_rollout_that_returned_nothing_has_the_reward_emitted_last() -> None:
    spans = next(iter(by_rollout().values()))
    (found,) = read(spans[:-1])
    assert found.reward == 0.125
    assert found.metadata["rewards"] == {"draft": 0.125, "length": 3.0}


def test_times_are_in_seconds() -> None:
    spans = next(iter(by_rollout().values()))
    (found,) = read(spans)
    (call,) = [span for span in spans if span["name"] == "chat"]
    seconds = call["end_time"] - call["start_time"]
    assert found.steps[-1].metrics["seconds"] == pytest.approx(seconds, abs=1e-5)


def test_attempts_of_a_rollout_are_apart() -> None:
    first = next(iter(by_rollout().values()))
    again = [span | {"attempt_id": "at-again", "span_id": f"{i:016x}"} for i, span in enumerate(first)]
    assert len(read([*first, *again])) == 2


@pytest.mark.parametrize("value", [True, "1", None, []])
def test_a_reward_that_is_no_number_is_none(value: Any) -> None:
    call, _, returned = next(iter(by_rollout().values()))
    attributes = returned["attributes"] | {"agentlightning.reward.0.value": value}
    (found,) = read([call, returned | {"attributes": attributes}])
    assert found.reward is None


@pytest.fixture(scope="module")
def their_names() -> Iterator[Any]:
    with peer_loader() as load:
        yield load("agentlightning", "semconv.py")


def test_the_names_are_theirs(their_names: Any) -> None:
    rewards = their_names.LightningSpanAttributes.REWARD.value
    name = f"{rewards}.0.{their_names.RewardAttributes.REWARD_VALUE.value}"
    assert any(name in span["attributes"] for span in SPANS)
    assert {span["name"] for span in SPANS} == {"chat", their_names.AGL_ANNOTATION}


@pytest.mark.parametrize("number", ["1" + "0" * 400, "null", "-Infinity", "1e999"])
def test_an_attempt_whose_final_reward_is_no_finite_number_has_none(number) -> None:
    """Not the one that the agent emitted before."""
    lines = []
    for span in SPANS:
        attributes = span["attributes"]
        is_final = attributes.get("agentlightning.reward.0.name") == "primary"
        lines.append(
            json.dumps(
                span | {"attributes": attributes | {"agentlightning.reward.0.value": "NUMBER"}}
            ).replace('"NUMBER"', number)
            if is_final
            else json.dumps(span)
        )
    reader = ImportReader(None)
    raw = "".join(f"{line}\n" for line in lines).encode()
    found = [reader.read(record) for record in records(reader, raw) if record.document is not None]
    assert [trajectory.reward for trajectory in found] == [None] * 3


def test_of_rewards_without_an_order_the_last_one_is_final() -> None:
    spans = [{"final": {"reward": reward, "order": 0}} for reward in (1.0, 2.0)]
    assert final_reward(spans) == {"reward": 2.0}
