from dataclasses import replace

import msgspec
import pytest

from workers.models import build
from workers.schema import Task
from workers.text.chunks import FRAME
from workers.text.pairs import collect_pairs
from workers.train.batches import epoch_batches


@pytest.fixture
def pairs(tiny_recipe, preferences):
    return collect_pairs(preferences, build(tiny_recipe)[1])


@pytest.mark.parametrize("unfrozen", [False, True])
def test_every_pair_once_within_the_budgets(pairs, tiny_recipe, unfrozen) -> None:
    recipe = replace(tiny_recipe, unfrozen=unfrozen, batch_pairs=5, batch_tokens=64)
    batches = epoch_batches(pairs, recipe, seed=1, epoch=0)
    assert sorted(place for batch in batches for place in batch) == list(range(len(pairs)))
    assert max(map(len, batches)) <= 5
    for batch in batches:
        sides = {side for place in batch for side in (pairs.pairs[place].a, pairs.pairs[place].b)}
        chunks = [chunk for side in sides for chunk in pairs.rendered[side].chunks]
        cost = sum(len(ids) + FRAME for ids in {chunk.ids for chunk in chunks}) if unfrozen else len(chunks)
        assert cost <= 64 or len(batch) == 1


def test_the_same_seed_and_epoch_give_the_same_order(pairs, tiny_recipe) -> None:
    first = epoch_batches(pairs, tiny_recipe, seed=1, epoch=0)
    assert epoch_batches(pairs, tiny_recipe, seed=1, epoch=0) == first
    assert epoch_batches(pairs, tiny_recipe, seed=1, epoch=1) != first
    assert epoch_batches(pairs, tiny_recipe, seed=2, epoch=0) != first


def replace_task(record, name):
    sides = {side: msgspec.structs.replace(getattr(record, side), task=Task(id=name)) for side in ("a", "b")}
    return msgspec.structs.replace(record, **sides)


def test_where_the_encoder_is_trained_a_task_stays_together(tiny_recipe, make_preference) -> None:
    records = [replace_task(make_preference(number), f"task-{number % 3}") for number in range(1, 13)]
    pairs = collect_pairs(records, build(tiny_recipe)[1])
    recipe = replace(tiny_recipe, unfrozen=True, batch_pairs=100, batch_tokens=100_000)
    (batch,) = epoch_batches(pairs, recipe, seed=0, epoch=0)
    tasks = [pairs.pairs[place].record.a.task.id for place in batch]
    assert len([task for task, before in zip(tasks, ["", *tasks], strict=False) if task != before]) == 3
