"""The `linear` backbone: a reward that is a sum over the agent's steps, linear in n-grams and structure.

The features of a step are log(1 + count) of its hashed words and word pairs, of pieces of words, and of the words that
its calls gave back, each of these channels scaled to one length, and its structure (`workers.text.structure`). Each has
one weight for every number that is read off the model; the heads pick these numbers out. There is nothing else to
learn, so that the losses of a linear model are convex in the weights, and a step's reward is the sum of what its words
and events are worth.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from workers.models.backbones.base import Backbone
from workers.models.backbones.channels import is_in_channels, read_columns
from workers.models.backbones.design_matrix import (
    UNSEEN,
    DesignMatrix,
    DesignRows,
    SummedMatrix,
    column_places,
    new_design_matrix,
)
from workers.models.backbones.step_entries import Floats
from workers.models.heads import Heads, NamedCriteria
from workers.models.states import EndReadouts, States
from workers.schema.recipe_help import Channel
from workers.text import STRUCTURE, StepTextRenderer, StepTexts

_CHUNK = 2_000  # items encoded between two checks for a stop


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

    @property
    def names(self) -> list[tuple[str, str]]:
        """[outputs]: what each is, and of what."""
        labels, criteria = (
            [(kind, name) for name in names]
            for kind, names in (("label", self.labels), ("criterion", self.criteria))
        )
        return [("reward", ""), *labels, *criteria]


class LinearBackbone(Backbone):
    """cumulative: a state tells the sum over all steps so far, as the aggregation `value` needs it; else of its step.

    Labels are of a step and criteria of the steps so far either way. A state is [heads * outputs] readouts, then the
    structure so far or of the step. weight: [known features, outputs], what the heads have in common. deviations:
    [known features, heads, outputs], 0 until they are drawn; their mean over the heads is 0. A feature that training
    never had is worth nothing in the mean, and in a head what its prior, with standard deviation `prior`, draws.
    """

    kind = "linear"
    sets_heads = True
    channels: tuple[Channel, ...] = ()  # that it reads; all of them for none
    penalty = 0.0  # of the weights' squares, chosen in training
    # What embeddings are multiplied by, chosen in training too; only a hybrid model has any.
    embedding_weight = 0.0
    parent_embedding_weight = 0.0

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
        self._parent_columns = torch.empty(0, dtype=torch.long)
        self._parent_weight = torch.zeros(0, readout.outputs, dtype=torch.double)
        self._set_columns(torch.empty(0, dtype=torch.long) if columns is None else columns)
        self.intercept = nn.Parameter(torch.zeros(readout.outputs, dtype=torch.double))

    @property
    def embedding_weights(self) -> tuple[float, ...]:
        """What `embedding_weight` is chosen from."""
        return (0.0,)

    def _set_columns(self, columns: Tensor) -> None:
        count, readout = len(columns), self.readout
        self.register_buffer("columns", columns)
        self.weight = nn.Parameter(torch.zeros(count, readout.outputs, dtype=torch.double))
        self.register_buffer(
            "deviations", torch.zeros(count, readout.heads, readout.outputs, dtype=torch.double)
        )
        self.known = columns.numpy()
        self._places = np.empty(0, dtype=np.int32)  # made when they are first needed

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

    def prepare_with(self, rendered: Sequence[StepTexts], cache: DesignMatrix) -> None:
        """Weights, 0 at first, for the features that these have, or a parent."""
        if not len(self.columns):
            columns = np.union1d(cache.columns(rendered), self._parent_columns.numpy())
            if self.channels:
                columns = columns[is_in_channels(columns, self.channels)]
            self._set_columns(torch.from_numpy(columns))

    def restore(self, other: "LinearBackbone") -> None:
        """Compute what the other one does: take all of its weights."""
        self._set_columns(other.columns)
        self.load_state_dict(other.state_dict(), strict=True)
        self.penalty, self.embedding_weight = other.penalty, other.embedding_weight
        self.channels = other.channels

    def inherit(self, parent: Backbone) -> None:
        """Its weights become a prior mean (`parent_weight`), before `prepare_with`. Outputs are matched by name; those
        that the parent does not have, and the intercept, have none."""
        assert isinstance(parent, LinearBackbone)
        self._parent_columns = parent.columns.cpu()
        self.parent_embedding_weight = parent.embedding_weight
        weight = parent.scaled(parent.weight.detach().cpu())
        self._parent_weight = torch.zeros(len(weight), self.readout.outputs, dtype=torch.double)
        theirs = {name: place for place, name in enumerate(parent.readout.names)}
        for place, name in enumerate(self.readout.names):
            if name in theirs:
                self._parent_weight[:, place] = weight[:, theirs[name]]

    @property
    def has_parent(self) -> bool:
        return bool(self._parent_weight.any())

    def parent_weight(self) -> Tensor:
        """[known features, outputs]: the weights with which it would score as the parent, but for an intercept; 0
        without a parent."""
        found = torch.zeros_like(self.weight)
        columns = self.columns.cpu()
        place = torch.searchsorted(columns, self._parent_columns).clamp(max=max(0, len(columns) - 1))
        is_known = (
            columns[place] == self._parent_columns if len(columns) else torch.zeros(0, dtype=torch.bool)
        )
        found[place[is_known]] = self._parent_weight[is_known].to(found)
        return self.unscaled(found)

    def new_cache(self, max_bytes: int) -> DesignMatrix:
        return new_design_matrix(self.renderer.conditioned)

    def encode_ahead(self, batch: Sequence[StepTexts], cache: DesignMatrix) -> Iterator[int]:
        yield from cache.embed_ahead(batch)
        for start in range(0, len(batch), _CHUNK):
            cache.add(batch[start : start + _CHUNK])
            yield min(start + _CHUNK, len(batch))

    def states(self, batch: Sequence[Any], *, cache: Any = None) -> States:
        rows = self.design_rows(batch, cache)
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

    def end_readouts(
        self, batch: Sequence[Any], criteria: Sequence[str], *, cache: Any = None
    ) -> EndReadouts | None:
        """Of the sums of `SummedMatrix`. While training, heads that are all the same are one."""
        if not isinstance(cache, SummedMatrix):
            return None
        rows = self.design_rows(batch, cache)
        device, values = self.weight.device, self._read(rows)
        if self.training and not self.deviates:
            values = values[:, :1]
        values = values + self.intercept.cpu()
        states = torch.cat([values.detach().flatten(1), torch.from_numpy(rows.structure)], 1)
        place = {name: number for number, name in enumerate(self.readout.names)}
        return EndReadouts(
            self.intercept[:1].expand(values.shape[1]),
            values[..., 0].to(device),
            {name: values[..., place["criterion", name]].to(device) for name in criteria},
            states.to(device),
        )

    def design_rows(self, batch: Sequence[Any], cache: Any = None) -> DesignRows:
        """The features of these items. cache: as for `states`."""
        design = self._design(cache)
        if len(self._places) != design.width:
            self._places = column_places(self.known, design.width)
        return design.rows(batch, self.known, read_columns(design.width, self.channels), self._places)

    def _design(self, cache: Any) -> DesignMatrix:
        return cache if isinstance(cache, DesignMatrix) else self.new_cache(0)

    def scaled(self, weights: Tensor) -> Tensor:
        """[known features, ...]: weights, each times what its feature is multiplied by."""
        return weights

    def unscaled(self, weights: Tensor) -> Tensor:
        """The inverse of `scaled`; 0 of a feature that is multiplied by 0."""
        return weights

    def _read(self, rows: DesignRows) -> Tensor:
        """[steps, heads, outputs] of the features of each step, on the CPU, where sparse products are."""
        heads, outputs = self.readout.heads, self.readout.outputs
        common = _Product.apply(rows.matrix, self.scaled(self.weight.cpu())).unsqueeze(1)
        if not self.deviates:
            return common.expand(-1, heads, -1)
        own = _Product.apply(rows.matrix, self.scaled(self.deviations.cpu().flatten(1)))
        unseen = rows.unseen @ (float(self.prior) * prior_draws(heads, outputs))
        return common + (own + torch.from_numpy(unseen)).view(-1, heads, outputs)

    @torch.no_grad()
    def finish_training(self) -> None:
        """Round to what its file holds."""
        for tensor in (self.weight, self.deviations, self.intercept, self.prior):
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
