"""Whether comparisons have improved a model of goal likeness: on held-out pairs, against the same encoders without."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from workers.models import RewardModel
from workers.models.backbones.goal_likeness import GoalLikeness
from workers.schema import FeedbackRecord, PreferenceRecord, Trajectory
from workers.schema.recipe import Recipe
from workers.schema.records import RankingRecord
from workers.train.events import Report
from workers.train.reward_statistics import score_rendered

_DRAWS = 2000
_TIE = 1e-7  # of a likeness: two pictures that are read alike


def compare_with_zero_shot(
    model: RewardModel, records: Sequence[FeedbackRecord], recipe: Recipe, *, seed: int, events: Report
) -> dict[str, Any] | None:
    """{pairs, zero_shot, adapted: shares of pairs that are ordered as people ordered them, difference, interval, alpha:
    {zero_shot, adapted}, is_better}; None for another model, and without strict pairs.

    interval: 95 %, of the difference, by a bootstrap over tasks. is_better: whether all of it is above 0. An event says
    so where it is not.
    """
    if not isinstance(model.backbone, GoalLikeness):
        return None
    pairs = [pair for record in records for pair in _strict_pairs(record, recipe.criterion)]
    if not pairs:
        return None
    adapted = model.backbone
    renderer = adapted.renderer
    rendered = [renderer.render(side) for better, worse in pairs for side in (better, worse)]
    plain = GoalLikeness(adapted.encoder, renderer, adapted.texts).to(adapted.device)
    zero_shot = RewardModel(
        plain, model.heads.config, aggregation=model.aggregation, reward_from=model.reward_from
    )
    right = {
        name: _right(score_rendered(each, rendered, cache=adapted.embedded).raw.numpy())
        for name, each in (("zero_shot", zero_shot), ("adapted", model))
    }
    gained = right["adapted"] - right["zero_shot"]
    low, high = _interval(gained, [better.task.id for better, _ in pairs], seed)
    found = {
        "pairs": len(pairs),
        **{name: float(values.mean()) for name, values in right.items()},
        "difference": float(gained.mean()),
        "interval": [low, high],
        "alpha": {"zero_shot": adapted.texts.alpha, "adapted": float(adapted.clipped_alpha.detach())},
        "is_better": low > 0,
    }
    events(message=_sentence(found))
    return found


def _strict_pairs(record: FeedbackRecord, criterion: str | None) -> list[tuple[Trajectory, Trajectory]]:
    """(better, worse) by the criterion; of a ranking, neighbours in its order that are no tie."""
    if isinstance(record, PreferenceRecord) and record.choice in ("a", "b") and record.criterion == criterion:
        return [(record.a, record.b) if record.choice == "a" else (record.b, record.a)]
    if isinstance(record, RankingRecord) and record.criterion == criterion:
        ranked = sorted(zip(record.ranks, record.trajectories, strict=True), key=lambda each: each[0])
        return [(better, worse) for (low, better), (high, worse) in pairwise(ranked) if low < high]
    return []


def _right(raw: Any) -> Any:
    """[pairs]: 1, 0, or 0.5 where both have the same reward. raw: the better one first."""
    gaps = raw[::2] - raw[1::2]
    return np.where(np.abs(gaps) < _TIE, 0.5, gaps > 0)


def _interval(gained: Any, tasks: Sequence[str], seed: int) -> tuple[float, float]:
    names = sorted(set(tasks))
    places = {name: number for number, name in enumerate(names)}
    owner = np.array([places[task] for task in tasks])
    sums, counts = np.bincount(owner, gained), np.bincount(owner)
    drawn = np.random.default_rng(seed).integers(len(names), size=(_DRAWS, len(names)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _sentence(found: dict[str, Any]) -> str:
    low, high = found["interval"]
    figures = (
        f"{found['adapted']:.1%} of {found['pairs']:,} held-out pairs ordered as people did, {found['zero_shot']:.1%} "
        f"without comparisons (difference {found['difference']:+.3f}, 95 % interval {low:+.3f} to {high:+.3f})"
    )
    if found["is_better"]:
        return f"better than zero-shot: {figures}"
    return f"not shown to be better than zero-shot: {figures}. Compare more trajectories, or deploy the imported model"
