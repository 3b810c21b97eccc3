from dataclasses import replace

import msgspec
import pytest

from workers.models import build
from workers.objectives import collect
from workers.schema import Task
from workers.text.chunks import FRAME
from workers.train.batches import (
    BatchLimits,
    ExampleGroup,
    epoch_batches,
    example_indices,
    make_groups,
    micro_batches,
    share_out,
    split_groups,
)


@pytest.fixture
def made(tiny_recipe, preferences):
    """make(records, ...) -> examples, backbone, limits"""

    def make(records=preferences, **fields):
        recipe = replace(tiny_recipe, **fields)
        backbone = build(recipe).backbone
        return collect(records, backbone.renderer, recipe), backbone, BatchLimits.from_recipe(recipe)

    return make


@pytest.mark.parametrize("unfrozen", [False, True])
def test_every_example_once_within_the_budgets(made, unfrozen) -> None:
    examples, backbone, limits = made(unfrozen=unfrozen, batch_pairs=5, batch_tokens=64)
    batches = epoch_batches(make_groups(examples, backbone, limits), limits, seed=1, epoch=0)
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
    examples, backbone, limits = made()
    groups = make_groups(examples, backbone, limits)
    first = epoch_batches(groups, limits, seed=1, epoch=0)
    assert epoch_batches(groups, limits, seed=1, epoch=0) == first
    assert epoch_batches(groups, limits, seed=1, epoch=1) != first
    assert epoch_batches(groups, limits, seed=2, epoch=0) != first


def replace_task(record, name):
    sides = {side: msgspec.structs.replace(getattr(record, side), task=Task(id=name)) for side in ("a", "b")}
    return msgspec.structs.replace(record, **sides)


def test_where_the_encoder_is_trained_a_task_stays_together(made, make_preference) -> None:
    records = [replace_task(make_preference(number), f"task-{number % 3}") for number in range(1, 13)]
    examples, backbone, limits = made(records, unfrozen=True, batch_pairs=100, batch_tokens=100_000)
    (batch,) = epoch_batches(make_groups(examples, backbone, limits), limits, seed=0, epoch=0)
    tasks = [examples.items[place].task for place in example_indices(batch)]
    assert len([task for task, before in zip(tasks, ["", *tasks], strict=False) if task != before]) == 3


def test_a_task_too_large_for_a_batch_is_split(made, make_preference) -> None:
    records = [replace_task(make_preference(number), "one") for number in range(1, 13)]
    examples, backbone, limits = made(
        records, unfrozen=True, batch_pairs=5, batch_tokens=100_000, batch_tasks=1
    )
    groups = make_groups(examples, backbone, limits)
    assert [len(group.examples) for group in groups] == [5, 5, 2]
    tight = make_groups(examples, backbone, replace(limits, tokens=64))
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


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_batch_of_one_task_is_shared_out_evenly(made, make_preference, make_trajectory, ranks: int) -> None:
    """Before, ranks divided groups, and one of them computed all of it."""
    answers = ["sent order", "lost order", "refund sent", "no refund", "yes lost", "fine poor"]
    sides = [
        [make_trajectory(f"{verdict} {answer}", task="one") for verdict in ("good", "bad")]
        for answer in [*answers, *(f"the {answer}" for answer in answers)]
    ]
    records = [msgspec.structs.replace(make_preference(1), a=a, b=b) for a, b in sides]
    examples, backbone, limits = made(records, unfrozen=True, batch_pairs=12, batch_tasks=1)
    (batch,) = epoch_batches(make_groups(examples, backbone, limits), limits, seed=0, epoch=0)
    assert len(batch) == 1
    shares = share_out(batch, ranks, examples, backbone)
    assert sorted(index for share in shares for index in example_indices(share)) == list(range(12))
    work = [sum(group.cost for group in share) for share in shares]
    assert min(work) > 0.5 * max(work)
    assert max(work) < batch[0].cost


def test_groups_are_shared_out_by_work_and_divided_only_where_it_helps(made, make_preference) -> None:
    records = [replace_task(make_preference(number), str(number)) for number in range(8)]
    examples, backbone, limits = made(records, unfrozen=True)
    shares = share_out(make_groups(examples, backbone, limits), 2, examples, backbone)
    assert sorted(index for share in shares for index in example_indices(share)) == list(range(8))
    sides = [
        {side for index in example_indices(share) for side in examples.items[index].trajectory_indices}
        for share in shares
    ]
    work = [backbone.cost([examples.rendered[side] for side in rank]) for rank in sides]
    assert max(work) <= 0.65 * backbone.cost(examples.rendered)
    same = [
        make_preference(1)
    ] * 2  # two comparisons of the same trajectories: dividing them computes all twice
    examples, backbone, _ = made(same, unfrozen=True)
    one = [ExampleGroup((0, 1), 99)]
    assert sorted(map(len, share_out(one, 2, examples, backbone))) == [0, 1]
    assert share_out(one, 1, examples, backbone) == [one]


def test_many_groups_are_shared_out_in_linear_time(made, make_preference, monkeypatch) -> None:
    """Before, each group of a validation split was tried with whole shares: hours for 10,000 comparisons."""
    records = [replace_task(make_preference(number), str(number)) for number in range(400)]
    examples, backbone, limits = made(records, unfrozen=True)
    groups = make_groups(examples, backbone, limits)
    sizes: list[int] = []

    def work(batch):
        sizes.append(len(batch))
        return float(backbone.cost(batch))

    monkeypatch.setattr(backbone, "work", work)
    shares = share_out(groups, 3, examples, backbone)
    assert len(groups) == 400 and len(sizes) <= 400 and max(sizes) <= 2
    assert sorted(index for share in shares for index in example_indices(share)) == list(range(400))
    loads = [sum(group.cost for group in share) for share in shares]
    assert max(loads) <= 1.02 * min(loads)
    one = [ExampleGroup(tuple(range(400)), 99)]
    loads = [len(example_indices(share)) for share in share_out(one, 3, examples, backbone)]
    assert sum(loads) == 400 and max(loads) <= 200, "a group larger than a share is halved"


def test_a_batch_mixes_tasks(made, make_preference) -> None:
    records = [replace_task(make_preference(number), f"task-{number % 4}") for number in range(48)]
    examples, backbone, limits = made(records, unfrozen=True, batch_pairs=12, batch_tasks=4)
    groups = make_groups(examples, backbone, limits)
    assert {len(group.examples) for group in groups} == {3}
    for batch in epoch_batches(groups, limits, seed=0, epoch=0):
        assert len(example_indices(batch)) == 12 and len(batch) == 4


def test_limits_are_of_all_ranks_or_of_each(tiny_recipe) -> None:
    recipe = replace(tiny_recipe, batch_pairs=8, batch_tokens=512)
    assert BatchLimits.from_recipe(recipe, 4) == BatchLimits(8, 512, recipe.batch_tasks)
    each = BatchLimits.from_recipe(replace(recipe, batch_per_process=True), 4)
    assert (each.pairs, each.tokens) == (32, 2048)
    assert BatchLimits.from_checkpoint({"batches": each.to_dict()}, recipe) == each
    assert BatchLimits.from_checkpoint({}, recipe) == BatchLimits(8, 512, tasks=1)
