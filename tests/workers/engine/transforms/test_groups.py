"""Transforms that look at a group: numbers by hand, bounds, and what a version refuses or flags."""

import asyncio
import math
from statistics import mean, pvariance
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers.engine.fakes import FakeModel
from workers.engine import Batcher, ItemScore, ServedModel, Version
from workers.engine.transforms import TransformChain
from workers.errors import InvalidRecord, RewardError
from workers.schema import ScoreInput, Text
from workers.schema.endpoints import parse_spec
from workers.schema.transforms import Normalise, Risk, RunningNormalise, ValueAtRisk

groups = st.lists(st.floats(-10, 10), min_size=1, max_size=30)


def items(rewards: list[float]) -> list[ItemScore]:
    return [ItemScore(reward, reward, 0.0, None, (reward / 2, reward / 2)) for reward in rewards]


def rewards_of(transform: Any, rewards: list[float]) -> list[float]:
    found = TransformChain((Normalise(), transform)).apply(items(rewards), [range(len(rewards))])
    for score in found:  # steps add up to the change of the transformed reward
        assert math.isfinite(math.fsum(score.gains))
    return [score.reward for score in found]


@given(groups, st.floats(0.01, 5))
def test_risk_is_the_mean_less_k_variances(rewards: list[float], k: float) -> None:
    found = rewards_of(Risk(k=k), rewards)
    assert mean(found) == pytest.approx(mean(rewards) - k * pvariance(rewards), abs=1e-6)
    assert max(found) <= mean(rewards) + 1 / (4 * k) + 1e-6


@given(groups, st.floats(0.05, 1))
def test_cvar_is_the_mean_of_the_worst(rewards: list[float], alpha: float) -> None:
    found = rewards_of(ValueAtRisk(alpha=alpha), rewards)
    tail = alpha * len(rewards)
    worst, weights = sorted(rewards), [min(1.0, max(0.0, tail - place)) for place in range(len(rewards))]
    expected = math.fsum(value * weight for value, weight in zip(worst, weights, strict=True)) / tail
    assert mean(found) == pytest.approx(expected, abs=1e-6)
    assert max(found) - min(found) <= (max(rewards) - min(rewards)) / alpha + 1e-6


def test_by_hand() -> None:
    assert rewards_of(Risk(k=0.5), [0.0, 2.0]) == [-0.5, 1.5]
    assert rewards_of(Risk(k=0.5), [3.0]) == [3.0]
    assert rewards_of(ValueAtRisk(alpha=0.5), [4.0, 1.0, 3.0, 2.0]) == [2.0, 0.0, 2.0, 2.0]
    assert rewards_of(ValueAtRisk(alpha=0.1), [7.0]) == [7.0]
    assert rewards_of(RunningNormalise(), [1.0, 3.0]) == [-1.0, 1.0]
    assert rewards_of(RunningNormalise(clip=0.5), [1.0, 3.0]) == [-0.5, 0.5]
    assert rewards_of(RunningNormalise(), [2.0, 2.0]) == [0.0, 0.0]


@given(st.lists(groups, min_size=1, max_size=5), st.floats(0.1, 10))
def test_running_statistics_are_those_of_all_so_far(requests: list[list[float]], clip: float) -> None:
    chain = TransformChain((Normalise(), RunningNormalise(over="running", clip=clip)))
    seen: list[float] = []
    for rewards in requests:
        found = [score.reward for score in chain.apply(items(rewards))]
        seen += rewards
        assert max(map(abs, found)) <= clip
        std = pvariance(seen) ** 0.5
        if std > 1e-3:
            expected = [max(-clip, min((reward - mean(seen)) / std, clip)) for reward in rewards]
            assert found == pytest.approx(expected, abs=1e-6)


def score(spec: dict[str, Any], *inputs: tuple[str, str | None]) -> list[ItemScore]:
    batcher = Batcher()
    try:
        version = make_version(batcher, spec)
        return scored(version, *inputs)
    finally:
        batcher.close()


def make_version(batcher: Batcher, spec: dict[str, Any]) -> Version:
    parsed = parse_spec({"components": [{"name": "main", "model": "p/m@1"}]} | spec)
    model = FakeModel(median=0.0, std=1.0)
    return Version(1, parsed, {"p/m@1": ServedModel("p/m@1", model)}, batcher, lambda version: None)


def scored(version: Version, *inputs: tuple[str, str | None]) -> list[ItemScore]:
    items = [ScoreInput(content=Text(text), group=group) for text, group in inputs]
    version.require_whole_groups(items)
    prepared = version.render(items)
    return asyncio.run(version.score(prepared))


RISK: dict[str, Any] = {"transforms": [{"type": "risk", "k": 1.0}]}


def test_a_version_compares_the_items_of_a_group_and_no_others() -> None:
    """The letters a and z score 0.347 and 0.372; their mean is 0.3595, so each loses 0.0125 ** 2."""
    a, z, alone, unnamed = score(RISK, ("a", "g"), ("z", "g"), ("z", "h"), ("a", None))
    assert a.reward == pytest.approx(0.347 - 0.0125**2)
    assert z.reward == pytest.approx(0.372 - 0.0125**2)
    assert (alone.reward, unnamed.reward) == (pytest.approx(0.372), pytest.approx(0.347))
    assert ("group_of_one" in a.flags, alone.flags, unnamed.flags) == (
        False,
        ("group_of_one",),
        ("group_of_one",),
    )


def test_a_split_group_is_refused_where_the_size_is_known() -> None:
    spec = RISK | {"group_size": 2}
    assert len(score(spec, ("a", "g"), ("z", "g"))) == 2
    with pytest.raises(
        RewardError, match="has 1 inputs in this request, and this endpoint compares 2"
    ) as split:
        score(spec, ("a", "g"), ("z", "g"), ("z", "h"))
    assert split.value.pointer == "/2/group"
    with pytest.raises(RewardError, match="no `group`") as unnamed:
        score(spec, ("a", "g"), ("z", None))
    assert unnamed.value.pointer == "/1/group"
    with pytest.raises(InvalidRecord, match="nothing of this endpoint compares") as useless:
        parse_spec({"components": [{"name": "main", "model": "p/m@1"}], "group_size": 4})
    assert useless.value.pointer == "/group_size"
    assert (
        parse_spec(
            parse_spec({"components": [{"name": "m", "model": "p/m@1"}]} | spec).to_builtins()
        ).group_size
        == 2
    )


def test_the_same_request_has_the_same_rewards_unless_a_running_mean_was_asked_for() -> None:
    batcher = Batcher()
    try:
        for over, is_same in (("request", True), ("group", True), ("running", False)):
            version = make_version(batcher, {"transforms": [{"type": "running_normalise", "over": over}]})
            inputs = (("a", "g"), ("z", "g"))
            first = [found.reward for found in scored(version, *inputs)]
            scored(version, ("aaaa", "h"), ("zzzz", "h"))
            again = scored(version, *inputs)
            assert ([found.reward for found in again] == pytest.approx(first)) == is_same
            assert ("running_statistics" in again[0].flags) == (not is_same)
    finally:
        batcher.close()


def test_transforms_of_steps_are_refused_where_steps_do_not_add_up() -> None:
    batcher = Batcher()
    spec = parse_spec(
        {"components": [{"name": "main", "model": "p/m@1"}], "transforms": [{"type": "step_clip"}]}
    )
    models = {"p/m@1": ServedModel("p/m@1", FakeModel(aggregation="mean"))}
    try:
        with pytest.raises(RewardError, match="put `delta` after normalise, or remove step_clip"):
            Version(1, spec, models, batcher, lambda version: None)
        with_delta = parse_spec(
            {
                "components": [{"name": "main", "model": "p/m@1"}],
                "transforms": [{"type": "delta"}, {"type": "step_clip"}],
            }
        )
        version = Version(1, with_delta, models, batcher, lambda version: None)
        (found,) = scored(version, ("a", None))
        assert found.reward <= 0
    finally:
        batcher.close()
