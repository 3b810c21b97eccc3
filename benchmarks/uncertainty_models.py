"""The models whose uncertainty `benchmarks.uncertainty` compares, and what they say of held-out comparisons."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from workers.device import choose_device
from workers.models import RewardModel, build
from workers.schema import PreferenceRecord, Trajectory
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.cross_validation import CrossValidation
from workers.train.reward_statistics import score_rendered

Numbers = NDArray[np.float64]
_MODELS = 5  # that are trained apart
_CACHE_BYTES = 1024**3
_MACKAY_ROUNDS = 20


@dataclass(frozen=True)
class Comparison:
    """better, worse: by the truth."""

    better: Trajectory
    worse: Trajectory


@dataclass(frozen=True)
class Judged:
    """Of held-out comparisons, [n] each. margin: reward of the better one less that of the worse one. uncertainty: of
    the comparison. excess: `std` of the better one less that of the worse one; None where single inputs have none."""

    margin: Numbers
    uncertainty: Numbers
    excess: Numbers | None


class Trainings:
    """Of models that share a frozen encoder and what it computed."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.like: dict[str, RewardModel] = {}
        self.caches: dict[str, Any] = {}
        for backbone in ("step-encoder", "hybrid"):
            self.like[backbone] = build(parse_recipe({"backbone": backbone}))
            self.caches[backbone] = self.like[backbone].backbone.new_cache(_CACHE_BYTES)

    def judge(
        self, records: Sequence[PreferenceRecord], held_out: Sequence[Comparison], seed: int
    ) -> dict[str, Judged]:
        """By measure: train on the records, and judge what is held out."""
        started = time.monotonic()
        model = self._trained(records, seed)
        heads = self._by_std(model, held_out, "step-encoder")
        found = {
            "heads": heads,
            "apart": self._apart(records, held_out, seed),
            "laplace": self._laplace(model, records, held_out, heads.margin),
            "margin": Judged(heads.margin, -np.abs(heads.margin), None),
        }
        for backbone in ("linear", "hybrid"):
            fitted = self._trained(records, seed, backbone=backbone)
            found[backbone] = self._by_std(fitted, held_out, backbone)
        seconds = round(time.monotonic() - started)
        sys.stderr.write(f"{len(records)} to train on, {len(held_out)} held out ({seconds} s)\n")
        return found

    def _trained(self, records: Sequence[PreferenceRecord], seed: int, **values: Any) -> RewardModel:
        recipe: Recipe = parse_recipe(values | ({"epochs": 2} if self.quick else {}))
        cache, like = self.caches.get(recipe.backbone), self.like.get(recipe.backbone)
        folds = CrossValidation(recipe, seed, choose_device("auto"), lambda **_: None, cache=cache, like=like)
        return folds.train(records)[1].model

    def _by_std(self, model: RewardModel, held_out: Sequence[Comparison], backbone: str) -> Judged:
        """By the spread of its heads."""
        better, worse = (self._scored(model, side, backbone) for side in _sides(held_out))
        return _judged((better.raw, worse.raw), (better.spread, worse.spread))

    def _apart(
        self, records: Sequence[PreferenceRecord], held_out: Sequence[Comparison], seed: int
    ) -> Judged:
        count = 2 if self.quick else _MODELS
        models = [self._trained(records, 1000 * (seed + 1) + number, ensemble=1) for number in range(count)]
        rewards = [
            torch.stack([self._scored(model, side, "step-encoder").raw for model in models])
            for side in _sides(held_out)
        ]
        means = rewards[0].mean(0), rewards[1].mean(0)
        return _judged(means, (rewards[0].std(0, correction=0), rewards[1].std(0, correction=0)))

    def _scored(self, model: RewardModel, trajectories: Sequence[Trajectory], backbone: str) -> Any:
        renderer = model.backbone.renderer
        rendered = [renderer.render(trajectory) for trajectory in trajectories]
        return score_rendered(model, rendered, cache=self.caches.get(backbone))

    @torch.no_grad()
    def _laplace(
        self,
        model: RewardModel,
        records: Sequence[PreferenceRecord],
        held_out: Sequence[Comparison],
        margin: Numbers,
    ) -> Judged:
        """The mean over heads of the variance: of the difference, and of each side from the mean of training."""

        def inner(trajectories: Sequence[Trajectory]) -> torch.Tensor:
            return _inner(model, self._scored(model, trajectories, "step-encoder").ends)

        strict = [record for record in records if record.choice in ("a", "b")]
        first, second = inner([record.a for record in strict]), inner([record.b for record in strict])
        better, worse = (inner(side) for side in _sides(held_out))
        middle = torch.cat([first, second]).mean(0)
        weights = model.heads.scalar.second.double().squeeze(-1)  # [heads, inner]
        wanted = torch.cat([better - worse, better - middle, worse - middle])
        variances = [
            _variance((first - second)[:, head], wanted[:, head], weights[head])
            for head in range(len(weights))
        ]
        between, of_better, of_worse = np.split(np.sqrt(np.mean(variances, axis=0)), 3)
        return Judged(margin, between, of_better - of_worse)


def _sides(held_out: Sequence[Comparison]) -> tuple[list[Trajectory], list[Trajectory]]:
    return [comparison.better for comparison in held_out], [comparison.worse for comparison in held_out]


def _judged(rewards: Sequence[torch.Tensor], spreads: Sequence[torch.Tensor]) -> Judged:
    """rewards, spreads: of the better ones and of the worse ones, [n] each."""
    better, worse = spreads
    return Judged(
        (rewards[0] - rewards[1]).numpy(), torch.hypot(better, worse).numpy(), (better - worse).numpy()
    )


def _inner(model: RewardModel, ends: torch.Tensor) -> torch.Tensor:
    """[n, heads, inner]: what the last layer of each head reads."""
    heads = model.heads.scalar
    features = torch.einsum("nw,kwi->nki", heads.norm(ends), heads.first) + heads.bias
    return functional.gelu(features).double()


def _variance(training: torch.Tensor, wanted: torch.Tensor, weights: torch.Tensor) -> Numbers:
    """[wanted]: x' (sum p (1 - p) x x' + precision I)^-1 x. training, wanted: [n, inner], differences of features."""
    p = torch.sigmoid(training @ weights)
    information = (training * (p * (1 - p)).unsqueeze(1)).T @ training
    values, vectors = torch.linalg.eigh(information)
    precision = 1.0
    for _ in range(_MACKAY_ROUNDS):
        used = float((values / (values + precision)).sum())
        precision = max(used, 1e-6) / max(float(weights @ weights), 1e-9)
    variance: Numbers = ((wanted @ vectors).square() / (values + precision)).sum(1).numpy()
    return variance
