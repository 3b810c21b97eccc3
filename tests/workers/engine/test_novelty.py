"""Pay for what lies far from a model's training data."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.workers.engine.fakes import FakeModel
from workers.engine import Batcher, ServedModel, Version
from workers.errors import InvalidRecord, RewardError
from workers.schema import parse_item
from workers.schema.endpoints import parse_spec

NOVELTY = {"name": "new", "type": "novelty", "model": "p/m@1"}


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    batcher = Batcher()
    yield batcher
    batcher.close()


def scored(batcher: Batcher, model: FakeModel) -> float:
    spec = parse_spec({"components": [NOVELTY]})
    version = Version(1, spec, {"p/m@1": ServedModel("p/m@1", model)}, batcher, lambda _: None)
    (found,) = asyncio.run(version.score(version.render([parse_item({"text": "ab"})])))
    return found.reward


def test_it_grows_with_the_distance_and_stays_below_one(batcher: Batcher) -> None:
    found = [scored(batcher, FakeModel(ood_score=distance)) for distance in (0.0, 0.25, 1.0, 3.0, 1e12)]
    assert found[:4] == [0.0, 0.2, 0.5, 0.75] and found[3] < found[4] <= 1


def test_a_model_that_knows_no_distance_is_refused(batcher: Batcher) -> None:
    with pytest.raises(RewardError, match="does not know how far") as caught:
        scored(batcher, FakeModel())
    assert caught.value.pointer == "/0"


def test_a_server_computes_none() -> None:
    here = {"name": "main", "model": "p/m@1", "server": "vllm"}
    with pytest.raises(InvalidRecord, match="scores no novelty") as caught:
        parse_spec({"components": [here, NOVELTY]})
    assert caught.value.pointer == "/components/1/model"
