from dataclasses import replace

import msgspec
import pytest

from workers.models import build
from workers.objectives import collect
from workers.schema import Task
from workers.text.chunks import FRAME
from workers.train.batches import Group, epoch_batches, examples_of, in_parts, make_groups, split


@pytest.fixture
def made(tiny_recipe, preferences):
    """make(records, ...) -> examples, backbone, recipe"""

    def make(records=preferences, **fields):
        recipe = replace(tiny_recipe, **fields)
        backbone = build(recipe).backbone
        return collect(records, backbone.renderer, recipe), backbone, recipe

    return make


@pytest.mark.parametrize("unfrozen", [False, True])
def test_every_example_once_within_the_budgets(made, unfrozen) -> None:
    examples, backbone, recipe = made(unfrozen=unfrozen, batch_pairs=5, batch_tokens=64)
    batches = epoch_batches(make_groups(examples, backbone, recipe), recipe, seed=1, epoch=0)
    assert sorted(place for batch in batches for place in examples_of(batch)) == list(range(len(examples)))
    assert max(len(examples_of(batch)) for batch in batches) <= 5
    for batch in batches:
        sides = {side for place in examples_of(batch) for side in examples.items[place].places}
        chunks = [chunk for side in sides for chunk in examples.rendered[side].chunks]
        cost = sum(len(ids) + FRAME for ids in {chunk.ids for chunk in chunks}) if unfrozen else len(chunks)
        assert cost <= 64 or len(batch) == 1


def test_the_same_seed_and_epoch_give_the_same_order(made) -> None:
    examples, backbone, recipe = made()
    groups = make_groups(examples, backbone, recipe)
    first = epoch_batches(groups, recipe, seed=1, epoch=0)
    assert epoch_batches(groups, recipe, seed=1, epoch=0) == first
    assert epoch_batches(groups, recipe, seed=1, epoch=1) != first
    assert epoch_batches(groups, recipe, seed=2, epoch=0) != first


def replace_task(record, name):
    sides = {side: msgspec.structs.replace(getattr(record, side), task=Task(id=name)) for side in ("a", "b")}
    return msgspec.structs.replace(record, **sides)


def test_where_the_encoder_is_trained_a_task_stays_together(made, make_preference) -> None:
    records = [replace_task(make_preference(number), f"task-{number % 3}") for number in range(1, 13)]
    examples, backbone, recipe = made(records, unfrozen=True, batch_pairs=100, batch_tokens=100_000)
    (batch,) = epoch_batches(make_groups(examples, backbone, recipe), recipe, seed=0, epoch=0)
    tasks = [examples.items[place].task for place in examples_of(batch)]
    assert len([task for task, before in zip(tasks, ["", *tasks], strict=False) if task != before]) == 3


def test_a_task_too_large_for_a_batch_is_split(made, make_preference) -> None:
    records = [replace_task(make_preference(number), "one") for number in range(1, 13)]
    examples, backbone, recipe = made(records, unfrozen=True, batch_pairs=5, batch_tokens=100_000)
    groups = make_groups(examples, backbone, recipe)
    assert [len(group.examples) for group in groups] == [5, 5, 2]
    tight = make_groups(examples, backbone, replace(recipe, batch_tokens=64))
    assert max(group.cost for group in tight) <= 64


def test_parts_are_filled_to_their_budget() -> None:
    batch = [Group((0,), 30), Group((1, 2), 50), Group((3,), 200), Group((4,), 20)]
    assert [examples_of(part) for part in in_parts(batch, 100)] == [[4, 0, 1, 2], [3]]
    assert [examples_of(part) for part in in_parts(batch, 1000)] == [[4, 0, 1, 2, 3]]
    assert in_parts([], 10) == []


def test_split_no_group_costs_more_than_the_budget(made, make_preference) -> None:
    records = [replace_task(make_preference(number), "one") for number in range(1, 5)]
    examples, backbone, _ = made(records, unfrozen=True)
    batch = [Group((0, 1, 2), 99), Group((3,), 9)]
    assert [group.examples for group in split(batch, examples, backbone, 1)] == [(0,), (1,), (2,), (3,)]
    assert split(batch, examples, backbone, 99) == batch
