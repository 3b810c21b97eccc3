from dataclasses import replace

import msgspec
import pytest

from workers.models import build
from workers.objectives import collect
from workers.schema import Task
from workers.text.chunks import FRAME
from workers.train.trainer import (
    ExampleGroup,
    epoch_batches,
    example_indices,
    make_groups,
    micro_batches,
    split_groups,
)


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
    assert sorted(place for batch in batches for place in example_indices(batch)) == list(
        range(len(examples))
    )
    assert max(len(example_indices(batch)) for batch in batches) <= 5
    for batch in batches:
        sides = {
            side for place in example_indices(batch) for side in examples.items[place].trajectory_indices
        }
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
    tasks = [examples.items[place].task for place in example_indices(batch)]
    assert len([task for task, before in zip(tasks, ["", *tasks], strict=False) if task != before]) == 3


def test_a_task_too_large_for_a_batch_is_split(made, make_preference) -> None:
    records = [replace_task(make_preference(number), "one") for number in range(1, 13)]
    examples, backbone, recipe = made(records, unfrozen=True, batch_pairs=5, batch_tokens=100_000)
    groups = make_groups(examples, backbone, recipe)
    assert [len(group.examples) for group in groups] == [5, 5, 2]
    tight = make_groups(examples, backbone, replace(recipe, batch_tokens=64))
    assert max(group.cost for group in tight) <= 64


def test_parts_are_filled_to_their_budget() -> None:
    batch = [
        ExampleGroup((0,), 30),
        ExampleGroup((1, 2), 50),
        ExampleGroup((3,), 200),
        ExampleGroup((4,), 20),
    ]
    assert [example_indices(part) for part in micro_batches(batch, 100)] == [[4, 0, 1, 2], [3]]
    assert [example_indices(part) for part in micro_batches(batch, 1000)] == [[4, 0, 1, 2, 3]]
    assert micro_batches([], 10) == []


def test_split_no_group_costs_more_than_the_budget(made, make_preference) -> None:
    records = [replace_task(make_preference(number), "one") for number in range(1, 5)]
    examples, backbone, _ = made(records, unfrozen=True)
    batch = [ExampleGroup((0, 1, 2), 99), ExampleGroup((3,), 9)]
    assert [group.examples for group in split_groups(batch, examples, backbone, 1)] == [
        (0,),
        (1,),
        (2,),
        (3,),
    ]
    assert split_groups(batch, examples, backbone, 99) == batch
