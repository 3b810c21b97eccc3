"""Token sequences with common prefixes as one prefix tree: every shared token is computed once.

A tree is laid out depth-first, so token j is an ancestor of token i (or i itself) exactly where `j <= i < end[j]`.
That one number a token gives every mask: additive and dense for SDPA, or by blocks for FlexAttention.
A token's position is its depth, so that the result equals that of separate forward passes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """ids, depth, end: [tokens]. paths: of every sequence, where its tokens stand in the layout."""

    ids: Places
    depth: Places
    end: Places
    paths: dict[int, Places]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Rows:
    """Trees in rows, padded on the right. ids, depth, end: [rows, longest] long.

    place: of every sequence, its row and where its tokens stand in it. Padding attends only to itself.
    """

    ids: Tensor
    depth: Tensor
    end: Tensor
    place: dict[int, tuple[int, Places]]

    def to(self, device: torch.device | str) -> "Rows":
        return Rows(self.ids.to(device), self.depth.to(device), self.end.to(device), self.place)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a forward pass costs: `token` for each token, `pair` for each entry of the dense attention mask.

    pair 0: masked blocks are skipped (FlexAttention), so that sharing always pays.
    """

    token: float = 1.0
    pair: float = 0.0


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Sequences in the order of their ids, and how many tokens each shares with the one before it."""

    order: list[int]
    ids: list[Places]
    shared: list[int]


def build_forest(sequences: Sequence[Sequence[int]], cost: Cost) -> list[PrefixTree]:
    """The sequences in trees, sharing wherever that is cheaper than computing the shared tokens again.

    Equal sequences stand once. Raises ValueError for an empty one.
    """
    found = _sorted(sequences)
    cuts, tokens = [0], 0
    for place, ids in enumerate(found.ids):
        shared, length = found.shared[place], len(ids)
        longer = tokens + length - shared
        extra = cost.pair * (longer**2 - tokens**2 - length**2)
        if place and (shared == 0 or extra >= cost.token * shared):
            cuts.append(place)
            longer = length
        tokens = longer
    return [_tree(found, start, end) for start, end in zip(cuts, [*cuts[1:], len(found.ids)], strict=True)]


def in_batches(trees: Sequence[PrefixTree], budget: int, *, overhead: int = 64) -> list[list[PrefixTree]]:
    """Trees sorted by length, in batches of at most `budget` tokens once padded, or of one that has more.

    Cut where the least is computed: padding counts as tokens do, and every batch costs `overhead` tokens more.
    """
    ordered = sorted(trees, key=len, reverse=True)
    # Of the first n trees: what they cost, and where their last batch begins.
    best: list[tuple[int, int]] = [(0, 0)]
    for end in range(1, len(ordered) + 1):
        options = []
        for start in range(end - 1, -1, -1):
            size = (end - start) * len(ordered[start])
            if size > budget and start < end - 1:
                break
            options.append((best[start][0] + size + overhead, start))
        best.append(min(options))
    cuts = [len(ordered)]
    while cuts[-1]:
        cuts.append(best[cuts[-1]][1])
    return [ordered[start:end] for end, start in pairwise(cuts)][::-1]


def stack(trees: Sequence[PrefixTree]) -> Rows:
    """Trees as rows. Padding has id 0 and depth 0."""
    longest = max(map(len, trees))
    ids, depth = (torch.zeros(len(trees), longest, dtype=torch.long) for _ in range(2))
    end = torch.arange(1, longest + 1).repeat(len(trees), 1)
    place: dict[int, tuple[int, Places]] = {}
    for row, tree in enumerate(trees):
        ids[row, : len(tree)] = torch.from_numpy(tree.ids)
        depth[row, : len(tree)] = torch.from_numpy(tree.depth)
        end[row, : len(tree)] = torch.from_numpy(tree.end)
        place |= {name: (row, path) for name, path in tree.paths.items()}
    return Rows(ids, depth, end, place)


def visible(rows: Rows, window: int | None = None) -> Tensor:
    """[rows, queries, keys] bool: the query's ancestors and itself; with a window, only those less deep by < window."""
    index = torch.arange(rows.ids.shape[1], device=rows.ids.device)
    query, key = index.unsqueeze(1), index.unsqueeze(0)
    seen = (key <= query) & (query < rows.end.unsqueeze(1))
    if window is not None:
        seen = seen & (rows.depth.unsqueeze(2) - rows.depth.unsqueeze(1) < window)
    return seen


def additive_mask(rows: Rows, dtype: torch.dtype, window: int | None = None) -> Tensor:
    """[rows, 1, queries, keys]: 0 where `visible`, else the least number of `dtype`."""
    seen = visible(rows, window).unsqueeze(1)
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(
        ~seen, torch.finfo(dtype).min
    )


def mask_function(
    rows: Rows, window: int | None = None
) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """The same for `torch.nn.attention.flex_attention.create_block_mask`."""
    end, depth = rows.end, rows.depth

    def sees(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        seen = (key <= query) & (query < end[row, key])
        return seen if window is None else seen & (depth[row, query] - depth[row, key] < window)

    return sees


def _sorted(sequences: Sequence[Sequence[int]]) -> _Sorted:
    arrays = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
    if any(len(ids) == 0 for ids in arrays):
        raise ValueError("an empty sequence has no place in a tree")
    # Big-endian, non-negative numbers compare as bytes as they do as numbers.
    order = sorted(range(len(arrays)), key=lambda place: arrays[place].astype(">u4").tobytes())
    ids = [arrays[place] for place in order]
    shared = [0, *(_shared(first, second) for first, second in pairwise(ids))]
    return _Sorted(order, ids, shared)


def _shared(first: Places, second: Places) -> int:
    length = min(len(first), len(second))
    different = np.flatnonzero(first[:length] != second[:length])
    return int(different[0]) if len(different) else length


def _tree(found: _Sorted, start: int, stop: int) -> PrefixTree:
    """Neighbours in sorted order share the most, so appending what each has beyond the last is depth-first."""
    size = 0
    path = np.empty(0, dtype=np.int64)
    ids: list[Places] = []
    depth: list[Places] = []
    closed: list[tuple[Places, int]] = []
    paths = {}
    for place in range(start, stop):
        shared = found.shared[place] if place > start else 0
        new = found.ids[place][shared:]
        closed.append((path[shared:], size))
        path = np.concatenate([path[:shared], np.arange(size, size + len(new))])
        ids.append(new)
        depth.append(np.arange(shared, shared + len(new)))
        paths[found.order[place]] = path
        size += len(new)
    end = np.full(size, size, dtype=np.int64)
    for branch, at in closed:
        end[branch] = at
    return PrefixTree(np.concatenate(ids), np.concatenate(depth), end, paths)
