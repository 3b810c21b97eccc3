"""Versions: the reward scale, several components, flags, and closing when drained."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.workers.engine.fakes import FakeModel
from workers.engine import Batcher, Score, ServedModel, Version
from workers.errors import RewardError
from workers.schema import Text
from workers.schema.endpoints import Component, EndpointSpec, parse_spec


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    batcher = Batcher()
    yield batcher
    batcher.close()


def make_version(
    batcher: Batcher, *models: FakeModel, weights=(1.0, 1.0), transforms=(), closed=None
) -> Version:
    names = [f"p/m@{number}" for number, _ in enumerate(models, start=1)]
    components = [
        {"name": f"c{number}", "model": name, "weight": weights[number]} for number, name in enumerate(names)
    ]
    spec = parse_spec({"components": components, "transforms": list(transforms)})
    served = {name: ServedModel(name, model) for name, model in zip(names, models, strict=True)}
    return Version(
        1, spec, served, batcher, on_close=lambda version: closed is not None and closed.append(version)
    )


def score(version: Version, *texts: str) -> list[Score]:
    return asyncio.run(version.score(version.render([Text(text) for text in texts])))


def test_one_component_is_on_the_reward_scale(batcher) -> None:
    (one,) = score(make_version(batcher, FakeModel()), "a")
    assert one.raw == pytest.approx(0.347)
    assert one.reward == pytest.approx((0.347 - 0.5) / 2)
    assert one.components == {"c0": pytest.approx(one.reward)}
    assert sum(one.steps) == pytest.approx(one.raw - one.baseline)
    assert one.std == pytest.approx(0.05)
    assert one.flags == ()


def test_several_components_add_up(batcher) -> None:
    version = make_version(
        batcher, FakeModel(), FakeModel(factor=3.0, median=1.0, std=0.5), weights=(1.0, -2.0)
    )
    (one,) = score(version, "a")
    first, second = (0.347 - 0.5) / 2, -2 * ((0.25 + 0.291) - 1) / 0.5
    assert one.components == {"c0": pytest.approx(first), "c1": pytest.approx(second)}
    assert one.reward == one.raw == pytest.approx(first + second)
    assert sum(one.steps) == pytest.approx(one.raw - one.baseline)
    assert one.std == pytest.approx((0.05**2 + 0.4**2) ** 0.5)


def test_transforms_change_the_reward_and_nothing_else(batcher) -> None:
    plain = score(make_version(batcher, FakeModel()), "aaaa")[0]
    clipped = score(make_version(batcher, FakeModel(), transforms=[{"type": "clip", "eta": 1}]), "aaaa")[0]
    assert clipped.reward == pytest.approx(min(plain.reward - 1, 0))
    assert (clipped.raw, clipped.steps, clipped.components) == (plain.raw, plain.steps, plain.components)


def test_flags(batcher) -> None:
    assert score(make_version(batcher, FakeModel(spread=1.01)), "a")[0].flags == ("uncertain",)
    assert score(make_version(batcher, FakeModel(spread=0.99)), "a")[0].flags == ()
    assert score(make_version(batcher, FakeModel(spread=None)), "a")[0].std is None
    assert score(make_version(batcher, FakeModel(limit=2)), "abc")[0].flags == ("truncated",)


def test_aggregations_are_not_mixed(batcher) -> None:
    with pytest.raises(RewardError, match=r"mean, value"):
        make_version(batcher, FakeModel(), FakeModel(aggregation="mean"))


def test_rendering_says_which_item(batcher) -> None:
    version = make_version(batcher, FakeModel())
    with pytest.raises(RewardError) as caught:
        version.render([Text("a"), Text("refused")], "/inputs")
    assert caught.value.pointer == "/inputs/1"


def test_it_closes_when_the_last_request_is_answered(batcher) -> None:
    closed: list[Version] = []
    version = make_version(batcher, FakeModel(), closed=closed)
    with version.lease():
        with version.lease():
            version.retire()
        assert closed == []
    assert closed == [version]


def test_warming_up_fails_where_scoring_would(batcher) -> None:
    make_version(batcher, FakeModel()).warm_up(Text("hello"))
    with pytest.raises(RewardError):
        make_version(batcher, FakeModel()).warm_up(Text("nan"))


def test_a_spec_is_frozen() -> None:
    spec = EndpointSpec((Component("main", "p/m@1"),))
    with pytest.raises(AttributeError):
        spec.components = ()  # type: ignore[misc]
