"""The `linear` backbone: a reward that is a sum over the agent's steps, linear in n-grams and structure.

The features of a step are log(1 + count) of its hashed words and word pairs, of pieces of words, and of the words that
its calls gave back, each of these channels scaled to one length, and its structure (`workers.text.structure`). Each has
one weight for every number that is read off the model; the heads pick these numbers out. There is nothing else to
learn, so that the losses of a linear model are convex in the weights, and a step's reward is the sum of what its words
and events are worth.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from workers.models.backbones.base import Backbone
from workers.models.heads import Heads, NamedCriteria
from workers.models.states import States
from workers.text import STRUCTURE, StepTextRenderer, StepTexts
from workers.text.ngrams import COLUMNS, pieces, words

Floats = NDArray[np.float64]
# The length of a channel's part of a step: the larger, the less the ridge penalty holds its weights back. Structure is
# multiplied by SHAPE as it is: how much of it there is, is what it tells.
SAID, PIECES, SEEN, SHAPE = 0.5, 0.5, 0.25, 0.7
FIRST_STRUCTURE = 3 * COLUMNS
FIRST_EMBEDDING = FIRST_STRUCTURE + len(STRUCTURE)
_STRUCTURE_COLUMNS = np.arange(FIRST_STRUCTURE, FIRST_EMBEDDING, dtype=np.int32)
UNSEEN = 4096  # columns for features that training never had
_CHUNK = 2_000  # items encoded between two checks for a stop
_BATCHES = 4  # kept as matrices of their own


@dataclass(frozen=True, slots=True)
class Readout:
    """What is read off a linear model, by head: the reward, a logit for each label, a score by each criterion."""

    heads: int
    labels: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()

    @property
    def outputs(self) -> int:
        return 1 + len(self.labels) + len(self.criteria)

    @property
    def width(self) -> int:
        return self.heads * self.outputs


class LinearBackbone(Backbone):
    """cumulative: a state tells the sum over all steps so far, as the aggregation `value` needs it; else of its step.

    Labels are of a step and criteria of the steps so far either way. A state is [heads * outputs] readouts, then the
    structure so far or of the step. weight: [known features, outputs], what the heads have in common. deviations:
    [known features, heads, outputs], 0 until they are drawn; their mean over the heads is 0. A feature that training
    never had is worth nothing in the mean, and in a head what its prior, with standard deviation `prior`, draws.
    """

    kind = "linear"
    penalty = 0.0  # of the weights' squares, chosen in training
    # What embeddings are multiplied by, chosen in training too; only a hybrid model has any.
    embedding_weight = 0.0
    embedding_weights: ClassVar[tuple[float, ...]] = (0.0,)

    def __init__(
        self, renderer: StepTextRenderer, readout: Readout, *, cumulative: bool, columns: Tensor | None = None
    ) -> None:
        super().__init__()
        self.renderer: StepTextRenderer = renderer
        self.readout, self.cumulative = readout, cumulative
        self.width = readout.width + len(STRUCTURE)
        self.columns: Tensor
        self.deviations: Tensor
        self.prior: Tensor
        self.register_buffer("prior", torch.zeros((), dtype=torch.double))
        self._set_columns(torch.empty(0, dtype=torch.long) if columns is None else columns)
        self.intercept = nn.Parameter(torch.zeros(readout.outputs, dtype=torch.double))

    def _set_columns(self, columns: Tensor) -> None:
        count, readout = len(columns), self.readout
        self.register_buffer("columns", columns)
        self.weight = nn.Parameter(torch.zeros(count, readout.outputs, dtype=torch.double))
        self.register_buffer(
            "deviations", torch.zeros(count, readout.heads, readout.outputs, dtype=torch.double)
        )
        self.known = columns.numpy()

    def set_heads(self, heads: Heads) -> None:
        """Each picks out its own numbers of a state."""
        width, count = self.readout.width, self.readout.heads
        chosen = torch.eye(width, self.width, dtype=torch.double).view(count, -1, self.width)
        labels = 1 + len(self.readout.labels)
        with torch.no_grad():
            heads.scalar.weight.copy_(chosen[:, :1])
            if heads.label is not None:
                heads.label.weight.copy_(chosen[:, 1:labels])
            if isinstance(heads.criterion, NamedCriteria):
                heads.criterion.weight.copy_(chosen[:, labels:])
        heads.requires_grad_(False).double()

    def prepare(self, rendered: Sequence[Any]) -> None:
        self.prepare_with(rendered, self.new_cache(0))

    def prepare_with(self, rendered: Sequence[StepTexts], cache: "DesignMatrix") -> None:
        """Weights, 0 at first, for the features that these have."""
        if not len(self.columns):
            self._set_columns(torch.from_numpy(cache.columns(rendered)))

    def inherit(self, parent: Backbone) -> None:
        assert isinstance(parent, LinearBackbone)
        self._set_columns(parent.columns)
        self.load_state_dict(parent.state_dict(), strict=True)
        self.penalty, self.embedding_weight = parent.penalty, parent.embedding_weight

    def new_cache(self, max_bytes: int) -> "DesignMatrix":
        return DesignMatrix()

    def encode_ahead(self, batch: Sequence[StepTexts], cache: "DesignMatrix") -> Iterator[int]:
        for start in range(0, len(batch), _CHUNK):
            cache.add(batch[start : start + _CHUNK])
            yield min(start + _CHUNK, len(batch))

    def states(self, batch: Sequence[Any], *, cache: Any = None) -> States:
        rows = self._design(cache).rows(batch, self.known)
        device = self.weight.device
        values = self._read(rows)
        structure = torch.from_numpy(rows.structure)
        labels = 1 + len(self.readout.labels)
        reward, by_label, by_criterion = values.tensor_split((1, labels), -1)
        if self.cumulative:
            reward, structure = _summed(reward, rows.counts), _summed(structure, rows.counts)
        values = torch.cat([reward, by_label, _summed(by_criterion, rows.counts)], -1)
        intercept = self.intercept.cpu().expand(self.readout.heads, -1)
        flat = torch.cat([(values + intercept).flatten(1), structure], 1)
        start = torch.cat([intercept.flatten(), torch.zeros(len(STRUCTURE), dtype=torch.double)])
        flat = _with_starts(flat, start, rows.counts).to(device)
        return States(flat, rows.counts, (0,) * len(batch))

    def _design(self, cache: Any) -> "DesignMatrix":
        return cache if isinstance(cache, DesignMatrix) else self.new_cache(0)

    def scaled(self, weights: Tensor) -> Tensor:
        """[known features, ...]: weights, each times what its feature is multiplied by."""
        return weights

    def _read(self, rows: "DesignRows") -> Tensor:
        """[steps, heads, outputs] of the features of each step, on the CPU, where sparse products are."""
        heads, outputs = self.readout.heads, self.readout.outputs
        common = _Product.apply(rows.matrix, self.scaled(self.weight.cpu())).unsqueeze(1)
        if not self.deviates:
            return common.expand(-1, heads, -1)
        own = _Product.apply(rows.matrix, self.scaled(self.deviations.cpu().flatten(1)))
        unseen = rows.unseen @ (float(self.prior) * prior_draws(heads, outputs))
        return common + (own + torch.from_numpy(unseen)).view(-1, heads, outputs)

    def finish_training(self) -> None:
        for tensor in (self.weight.data, self.deviations, self.intercept.data):
            tensor.copy_(tensor.float())

    def cost(self, batch: Sequence[StepTexts]) -> int:
        return sum(item.tokens for item in batch)

    @property
    def deviates(self) -> bool:
        """Whether the heads differ."""
        return float(self.prior) > 0 or self.deviations.requires_grad


@cache
def prior_draws(heads: int, outputs: int) -> Floats:
    """[UNSEEN, heads * outputs]: standard normal, with the mean 0 over the heads; 0 for one head."""
    drawn = np.random.default_rng(0).standard_normal((UNSEEN, heads, outputs))
    return centred(drawn).reshape(UNSEEN, -1)


def centred(draws: Floats) -> Floats:
    """[.., heads, outputs]: with the mean 0 over the heads, and the same expected variance among them."""
    heads = draws.shape[-2]
    kept: Floats = (draws - draws.mean(-2, keepdims=True)) * np.sqrt(heads / max(1, heads - 1))
    return kept


def text_features(said: str, seen: str) -> tuple[NDArray[np.int32], Floats]:
    """columns, values: [entries] of what the agent said and saw at a step."""
    channels = [
        _channel(*words(said), 0, SAID),
        _channel(*pieces(said), COLUMNS, PIECES),
        *([_channel(*words(seen, salt=1), 2 * COLUMNS, SEEN)] if seen else []),
    ]
    columns, values = (np.concatenate(parts) for parts in zip(*channels, strict=True))
    return columns, values


def _channel(
    columns: NDArray[np.int64], counts: Floats, first: int, length: float
) -> tuple[NDArray[np.int32], Floats]:
    return (columns + first).astype(np.int32), scaled_channel(counts, length)


def scaled_channel(counts: Floats, length: float) -> Floats:
    values = np.log1p(counts)
    norm = float(np.sqrt(values @ values))
    return values * (length / norm if norm else 0.0)


@dataclass(frozen=True, slots=True)
class DesignRows:
    """matrix: [steps of all items, known features] sparse. unseen: [steps, UNSEEN], the other features, hashed again.
    structure: [steps, numbers]. counts: steps by item. known: the features of `matrix`."""

    matrix: sparse.csr_matrix
    unseen: sparse.csr_matrix
    structure: Floats
    counts: tuple[int, ...]
    known: NDArray[np.int64]


class DesignMatrix:
    """The features of items, kept for the many passes of a fit, and for the fits of several models.

    Items are known by their key, and equal steps are hashed once. width: columns there may be.
    """

    def __init__(self, width: int = FIRST_EMBEDDING) -> None:
        self.width = width
        self._first: dict[bytes, int] = {}
        self._steps = 0
        self._entries: list[_Entries] = []
        self._structure: list[Floats] = []
        self._chosen: dict[tuple[int, tuple[bytes, ...]], DesignRows] = {}

    def add(self, batch: Sequence[StepTexts]) -> None:
        columns, values, lengths = [], [], []
        by_text: dict[tuple[str, str], tuple[NDArray[np.int32], Floats]] = {}
        new = {item.key: item for item in batch if item.key not in self._first}
        embedding_columns = np.arange(FIRST_EMBEDDING, self.width, dtype=np.int32)
        for item, embeddings in zip(new.values(), self.embeddings(list(new.values())), strict=True):
            self._first[item.key] = self._steps
            self._steps += len(item.said)
            self._structure.append(item.structure.astype(np.float64) * SHAPE)
            texts_by_step = zip(item.said, item.seen, strict=True)
            for texts, shape, embedding in zip(texts_by_step, item.structure, embeddings, strict=True):
                if texts not in by_text:
                    by_text[texts] = text_features(*texts)
                found, counts = by_text[texts]
                columns += [found, _STRUCTURE_COLUMNS, embedding_columns]
                values += [counts, shape * SHAPE, embedding]
                lengths.append(len(found) + len(shape) + len(embedding))
        if lengths:
            self._entries.append(_Entries(np.concatenate(columns), np.concatenate(values), np.array(lengths)))

    def embeddings(self, batch: Sequence[Any]) -> Iterable[Floats]:
        """By item, [steps, width - FIRST_EMBEDDING]: what stands in the columns after the structure."""
        return [np.empty((len(item.said), 0)) for item in batch]

    def columns(self, batch: Sequence[StepTexts]) -> NDArray[np.int64]:
        """The features that these have, ascending."""
        entries, _ = self._of(batch)
        return np.unique(entries.columns).astype(np.int64)

    def rows(self, batch: Sequence[StepTexts], known: NDArray[np.int64]) -> DesignRows:
        """Of these items, in this order; what is not there yet is added. known: the features of the model, ascending.

        The last few batches are kept as they are.
        """
        name = (id(known), tuple(item.key for item in batch))
        kept = self._chosen.get(name)
        if kept is None or kept.known is not known:
            entries, structure = self._of(batch)
            place = np.full(self.width, -1, dtype=np.int32)
            place[known] = np.arange(len(known))
            found = place[entries.columns]
            counts = tuple(len(item.said) for item in batch)
            kept = DesignRows(
                entries.matrix(found >= 0, found, len(known)),
                entries.matrix(found < 0, entries.columns % UNSEEN, UNSEEN),
                structure,
                counts,
                known,
            )
            if len(self._chosen) >= _BATCHES:
                self._chosen.pop(next(iter(self._chosen)))
            self._chosen[name] = kept
        return kept

    def _of(self, batch: Sequence[StepTexts]) -> "tuple[_Entries, Floats]":
        self.add(batch)
        if len(self._entries) > 1:
            self._entries = [_joined(self._entries)]
        if len(self._structure) > 1:
            self._structure = [np.concatenate(self._structure)]
        firsts = [self._first[item.key] for item in batch]
        steps = np.concatenate(
            [np.arange(first, first + len(item.said)) for first, item in zip(firsts, batch, strict=True)]
        )
        return self._entries[0].of(steps), self._structure[0][steps]


@dataclass(frozen=True, slots=True)
class _Entries:
    """A sparse matrix. lengths: [steps], how many of the columns and values each step has, one step after another."""

    columns: NDArray[np.int32]
    values: Floats
    lengths: NDArray[np.int64]

    def of(self, steps: NDArray[np.int64]) -> "_Entries":
        if len(steps) == len(self.lengths) and bool((np.diff(steps) == 1).all()):
            return self
        starts = np.concatenate([[0], self.lengths.cumsum()])[steps]
        lengths = self.lengths[steps]
        firsts = np.concatenate([[0], lengths.cumsum()[:-1]])
        place = np.repeat(starts - firsts, lengths) + np.arange(lengths.sum())
        return _Entries(self.columns[place], self.values[place], lengths)

    def matrix(self, chosen: NDArray[np.bool_], columns: NDArray[np.int32], width: int) -> sparse.csr_matrix:
        """[steps, width] of the chosen entries, in these columns."""
        before = np.concatenate([[0], chosen.cumsum()])
        ends = before[np.concatenate([[0], self.lengths.cumsum()])]
        return sparse.csr_matrix((self.values[chosen], columns[chosen], ends), shape=(len(ends) - 1, width))


def _joined(parts: Sequence[_Entries]) -> _Entries:
    return _Entries(
        np.concatenate([part.columns for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )


class _Product(torch.autograd.Function):
    """A sparse matrix, which is data, times a dense one."""

    @staticmethod
    def forward(ctx: Any, matrix: sparse.csr_matrix, weight: Tensor) -> Tensor:
        ctx.matrix = matrix
        return torch.from_numpy(matrix @ weight.detach().numpy())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, _Product.apply(ctx.matrix.T, gradient)


def _summed(values: Tensor, counts: Sequence[int]) -> Tensor:
    """[steps, ...]: within each item, the sum up to and with each step."""
    total = values.cumsum(0)
    ends = torch.tensor([0, *accumulate(counts)][:-1])
    before = torch.cat([torch.zeros_like(total[:1]), total])[ends]
    return total - before.repeat_interleave(torch.tensor(counts), 0)


def _with_starts(flat: Tensor, start: Tensor, counts: Sequence[int]) -> Tensor:
    """[items + steps, width]: before the steps of each item, the start."""
    rows = torch.cat([start.unsqueeze(0).expand(len(counts), -1), flat])
    firsts = [0, *accumulate(1 + count for count in counts)][:-1]
    place = torch.empty(len(rows), dtype=torch.long)
    is_start = torch.zeros(len(rows), dtype=torch.bool)
    is_start[firsts] = True
    place[is_start] = torch.arange(len(counts))
    place[~is_start] = torch.arange(len(counts), len(rows))
    return rows[place]
