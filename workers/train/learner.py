"""A model with the losses it learns from: what an optimiser step computes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from workers.errors import RewardError
from workers.models import RewardModel, build
from workers.objectives import (
    Batch,
    Example,
    Examples,
    Objective,
    components,
    objective_class,
    render_criteria,
)
from workers.schema import (
    CommentRecord,
    OutcomeRecord,
    PreferenceRecord,
    RankingRecord,
    RatingRecord,
    ScoreRecord,
    StepLabelRecord,
)
from workers.schema.recipe import Recipe
from workers.schema.records import record_trajectories

_KINDS: dict[Any, str] = {
    PreferenceRecord: "comparisons",
    RankingRecord: "rankings",
    RatingRecord: "ratings",
    ScoreRecord: "rubric scores",
    StepLabelRecord: "step labels",
    OutcomeRecord: "outcomes",
    CommentRecord: "comments",
}


class Learner(nn.Module):
    """model, and `parts`: the objectives for which there are examples, by name. weights: how much each counts.

    bootstrap [examples, heads]: how often each head's own sample holds each example. parent: whose weights it begins
    with; like: one whose untrained parts it may share.
    """

    def __init__(
        self,
        recipe: Recipe,
        examples: Examples,
        *,
        seed: int,
        device: str = "cpu",
        like: RewardModel | None = None,
        parent: RewardModel | None = None,
    ) -> None:
        super().__init__()
        known = {name: weight for name, weight in components(recipe).items() if examples.of(name)}
        self.weights: Mapping[str, float] = known or components(recipe)
        parts: dict[str, Objective] = {
            name: objective_class(name)(recipe, examples.of(name)) for name in self.weights
        }
        labels = [part.labels(examples.of(name)) for name, part in parts.items()]
        self.model = build(
            recipe,
            [one for example in examples.items[:1] for one in record_trajectories(example.record)],
            like=like,
            device=device,
            labels=max(labels, key=len, default=()),
            criteria=bool(examples.criteria),
            reward_from="labels"
            if all(part.reward_from == "labels" for part in parts.values())
            else "scalar",
        )
        if parent is not None:
            self.model.inherit(parent)
        if recipe.heads_only:
            self.model.hold_trunk()
        self.parts = nn.ModuleDict(parts).to(device)
        self.examples = examples
        self.criteria = render_criteria(examples.criteria, self.model.backbone.renderer)
        self.bootstrap = bootstrap_weights(len(examples), recipe.ensemble, seed)

    def objective(self, name: str) -> Objective:
        part = self.parts[name]
        assert isinstance(part, Objective)
        return part

    def forward(self, chosen: Sequence[int], whole: int, cache: Any = None) -> Tensor:
        """The part that these examples have in the mean loss over `whole` examples and the heads."""
        loss: Tensor | float = 0.0
        for _, losses in self._weighted(chosen, cache):
            loss = loss + losses.sum() / (whole * losses.shape[1])
        assert isinstance(loss, Tensor)
        return loss

    def losses(self, chosen: Sequence[int], cache: Any = None) -> Tensor:
        """[chosen], in their order: what each example adds to the loss, the mean over the heads."""
        place = {one: index for index, one in enumerate(chosen)}
        found = [(places, losses.mean(1)) for places, losses in self._weighted(chosen, cache)]
        order = torch.tensor([place[one] for places, _ in found for one in places])
        whole = torch.cat([losses for _, losses in found])
        return torch.empty_like(whole).index_put((order.to(whole.device),), whole)

    def _weighted(self, chosen: Sequence[int], cache: Any) -> Iterator[tuple[list[int], Tensor]]:
        """By objective, the places of its examples and their losses [n, heads] as they count."""
        batches = self._batches([self.examples.items[place] for place in chosen], self.examples, cache)
        places = {id(self.examples.items[place]): place for place in chosen}
        for name, batch in batches.items():
            some = [places[id(one)] for one in batch.examples]
            given = torch.tensor([[one.weight * self.weights[name]] for one in batch.examples])
            losses = self.objective(name)(batch)
            losses = losses * (self.bootstrap[some] * given).to(losses)
            if not bool(losses.isfinite().all()):
                raise _not_finite(batch, losses)
            yield some, losses

    @torch.no_grad()
    def measure(
        self, examples: Examples, parts: Sequence[Sequence[int]], cache: Any = None
    ) -> tuple[dict[str, float], Tensor]:
        """Means on validation: `loss` (over objectives by their weights), and by objective what it measures; and what
        each judgement adds to the loss, [n], always in the same order: their mean is it."""
        self.eval()
        found: dict[tuple[str, str], list[Tensor]] = {}
        for part in parts:
            for name, batch in self._batches(
                [examples.items[place] for place in part], examples, cache
            ).items():
                for metric, values in self.objective(name).measure(batch).items():
                    found.setdefault((name, metric), []).append(values.detach().double().cpu())
        whole = {key: torch.cat(values) for key, values in found.items()}
        means = {key: float(values.mean()) for key, values in whole.items() if values.numel()}
        weights = {name: self.weights[name] for name, metric in means if metric == "loss"}
        if not weights:
            return {}, torch.empty(0)
        total, count = sum(weights.values()), sum(len(whole[name, "loss"]) for name in weights)
        losses = torch.cat(
            [
                whole[name, "loss"] * (weight / total * count / len(whole[name, "loss"]))
                for name, weight in weights.items()
            ]
        )
        one = len(weights) == 1
        named = {metric if one else f"{name} {metric}": mean for (name, metric), mean in means.items()}
        return named | {"loss": float(losses.mean())}, losses

    def _batches(self, chosen: Sequence[Example], examples: Examples, cache: Any) -> dict[str, Batch]:
        """By objective, all from one pass through the model."""
        places = sorted({place for one in chosen for place in one.places})
        row = {place: index for index, place in enumerate(places)}
        wanted = {one.criterion for one in chosen} & set(self.criteria)
        outputs = self.model(
            [examples.rendered[place] for place in places],
            criteria={name: rendered for name, rendered in self.criteria.items() if name in wanted},
            cache=cache,
        )
        by_name: dict[str, list[Example]] = {}
        for one in chosen:
            if one.objective in self.parts:
                by_name.setdefault(one.objective, []).append(one)
        return {name: Batch(some, outputs, row, examples.rendered) for name, some in by_name.items()}


def require_usable(examples: Examples, recipe: Recipe) -> None:
    """Raises RewardError where there is too little to learn from."""
    why = "; ".join(f"{count} {reason}" for reason, count in examples.skipped.items())
    left_out = f" (left out: {why})" if why else ""
    if len(examples) < 2:
        raise RewardError(
            f"the training split has {len(examples)} usable judgements{left_out}: {recipe.objective} learns from "
            f"{_learns_from(recipe)}. Label at least two, of different tasks, and freeze again.",
            pointer="/snapshot",
        )
    for name in {one.objective for one in examples.items}:
        if (sentence := objective_class(name).lacks(examples.of(name))) is not None:
            raise RewardError(f"the training split teaches nothing: {sentence}.", pointer="/snapshot")


def _learns_from(recipe: Recipe) -> str:
    kinds = dict.fromkeys(_KINDS[kind] for name in components(recipe) for kind in objective_class(name).kinds)
    return ", ".join(kinds)


def bootstrap_weights(examples: int, heads: int, seed: int) -> Tensor:
    """[examples, heads]: how often each head's own bootstrap sample holds each (Poisson, mean 1); 1 for one head."""
    if heads == 1:
        return torch.ones(examples, 1)
    generator = torch.Generator().manual_seed(seed)
    return torch.poisson(torch.ones(examples, heads), generator=generator)


def _not_finite(batch: Batch, losses: Tensor) -> RewardError:
    bad = [
        one.name for one, loss in zip(batch.examples, losses, strict=True) if not bool(loss.isfinite().all())
    ]
    return RewardError(
        f"the loss became {float(losses.detach().sum())}; lower the learning rate, or look at these: "
        f"{'; '.join(bad[:20])}."
    )
