"""Trees of token sequences: worked out by hand, and over random ones."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.packing import (
    Cost,
    PrefixTree,
    additive_mask,
    build_forest,
    in_batches,
    mask_function,
    stack,
    visible,
)

# Few letters, so that beginnings are shared often.
SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=8)


def chain(token: int, length: int) -> PrefixTree:
    """A tree without branches."""
    (tree,) = build_forest([[token] * length], Cost())
    return tree


def test_a_tree_by_hand() -> None:
    """5 6 7, 5 6 8 9, 5: one trunk, two branches, and a leaf on the trunk."""
    (tree,) = build_forest([[5, 6, 7], [5, 6, 8, 9], [5]], Cost())
    assert tree.ids.tolist() == [5, 6, 7, 8, 9]
    assert tree.depth.tolist() == [0, 1, 2, 2, 3]
    assert tree.end.tolist() == [5, 5, 3, 5, 5]
    assert {place: path.tolist() for place, path in tree.paths.items()} == {
        0: [0, 1, 2],
        1: [0, 1, 3, 4],
        2: [0],
    }
    expected = [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 0, 1, 1],
    ]
    assert visible(stack([tree]))[0].int().tolist() == expected


def test_an_empty_sequence_has_no_place() -> None:
    with pytest.raises(ValueError, match="empty"):
        build_forest([[1], []], Cost())


@given(SEQUENCES)
def test_every_sequence_is_a_path_and_sees_itself_and_nothing_else(sequences) -> None:
    forest = build_forest(sequences, Cost())
    distinct = {tuple(sequence[:end]) for sequence in sequences for end in range(1, len(sequence) + 1)}
    assert sum(map(len, forest)) == len(distinct)  # every shared token once
    for tree in forest:
        seen = visible(stack([tree]))[0]
        for place, path in tree.paths.items():
            assert tree.ids[path].tolist() == sequences[place]
            assert tree.depth[path].tolist() == list(range(len(sequences[place])))
            for depth, at in enumerate(path):
                assert seen[at].nonzero().squeeze(1).tolist() == sorted(path[: depth + 1].tolist())


@given(SEQUENCES, st.integers(1, 4))
def test_a_window_is_counted_along_the_branch(sequences, window) -> None:
    for tree in build_forest(sequences, Cost()):
        seen = visible(stack([tree]), window)[0]
        for path in tree.paths.values():
            for depth, at in enumerate(path):
                expected = path[max(0, depth + 1 - window) : depth + 1]
                assert seen[at].nonzero().squeeze(1).tolist() == sorted(expected.tolist())


@given(SEQUENCES, st.integers(0, 40))
def test_a_forest_holds_every_sequence_once(sequences, dear) -> None:
    forest = build_forest(sequences, Cost(token=1.0, pair=dear / 20))
    places = sorted(itertools.chain(*(tree.paths for tree in forest)))
    assert places == list(range(len(sequences)))
    for tree in forest:
        for place, path in tree.paths.items():
            assert tree.ids[path].tolist() == sequences[place]


def test_sharing_has_to_pay() -> None:
    """Two branches of 10 on a trunk of 4: joined 24 tokens and 24^2 pairs, apart 28 and 2 * 14^2."""
    sequences = [[9] * 4 + [1] * 10, [9] * 4 + [2] * 10]
    assert len(build_forest(sequences, Cost(token=1.0, pair=0.0))) == 1
    gain, loss = 28 - 24, 24**2 - 2 * 14**2
    assert len(build_forest(sequences, Cost(token=1.0, pair=0.99 * gain / loss))) == 1
    assert len(build_forest(sequences, Cost(token=1.0, pair=1.01 * gain / loss))) == 2
    assert len(build_forest([[1], [2]], Cost())) == 2  # nothing is shared


def test_batches_are_filled_to_their_padded_size() -> None:
    trees = [chain(place, length) for place, length in enumerate((3, 9, 4, 20, 8))]
    assert [[len(tree) for tree in batch] for batch in in_batches(trees, 18)] == [[20], [9, 8], [4, 3]]
    assert in_batches([], 18) == []


def test_batches_are_cut_where_the_padding_costs_more_than_another_pass() -> None:
    """100, 98, 20, 19: together 400; in two passes 240 and one pass more."""
    trees = [chain(place, length) for place, length in enumerate((98, 20, 100, 19))]
    lengths = [[len(tree) for tree in batch] for batch in in_batches(trees, 10_000, overhead=64)]
    assert lengths == [[100, 98], [20, 19]]
    assert len(in_batches(trees, 10_000, overhead=200)) == 1
    assert len(in_batches(trees, 10_000, overhead=0)) == 4


def test_padding_sees_itself_and_nobody_sees_it() -> None:
    rows = stack(build_forest([[1, 2, 3], [7]], Cost()))
    seen = visible(rows)[1].int().tolist()
    assert seen == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    mask = additive_mask(rows, torch.float32)
    assert mask.shape == (2, 1, 3, 3)
    assert bool(mask[1].masked_select(visible(rows)[1]).eq(0).all())
    assert float(mask[1, 0, 0, 1]) == torch.finfo(torch.float32).min


@given(SEQUENCES, st.sampled_from([None, 1, 3]))
def test_the_mask_by_blocks_is_the_dense_one(sequences, window) -> None:
    rows = stack(build_forest(sequences, Cost()))
    count, longest = rows.ids.shape
    sees = mask_function(rows, window)
    row, query, key = torch.meshgrid(
        *(torch.arange(size) for size in (count, longest, longest)), indexing="ij"
    )
    assert torch.equal(sees(row, row * 0, query, key), visible(rows, window))


def test_long_sequences_are_compared_as_numbers_not_as_text() -> None:
    first, second = np.arange(300), np.arange(300)
    second[299] = 7
    (tree,) = build_forest([first.tolist(), second.tolist()], Cost())
    assert len(tree) == 301
