"""A selection of items from its folder to its result."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workers.active_learning.curve import learning_curve
from workers.active_learning.measures import CandidatePool, make_candidate_pool
from workers.active_learning.order import AnnotatedData, measure_shares, rank_items, rank_scores
from workers.active_learning.posterior import Numbers, fit
from workers.active_learning.scale import scale_features
from workers.active_learning.selection_folder import (
    CandidateItem,
    SelectionConfig,
    read_comparisons,
    read_config,
    read_features,
    read_items,
    read_seen_tasks,
    write_features,
    write_lines,
)
from workers.json_files import write_json
from workers.schema import read_trajectories
from workers.schema.comparisons import Comparison
from workers.text.pictures import use_pictures

_MOST_IN_CURVE = 4000  # of the newest comparisons: what a curve costs grows with them


def select_items(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError.

    torch is loaded only where a trajectory is new: otherwise this is a matter of a second.
    """
    config = read_config(folder)
    features = read_features(folder / "known")
    use_pictures(folder)
    new = {str(trajectory.id): trajectory for trajectory in read_trajectories(folder / "new.jsonl.zst")}
    missing = {name: trajectory for name, trajectory in new.items() if name not in features}
    if missing:
        # torch and transformers take seconds to load, which a pass without anything new should not cost
        from workers.active_learning.features import encode

        features |= encode(missing, folder / "model", device=config.device)
    items, annotated = (read_items(folder / f"{name}.jsonl") for name in ("items", "asked"))
    comparisons = read_comparisons(folder / "comparisons.jsonl")
    traffic: list[str] = json.loads((folder / "traffic.json").read_text())
    used = {side for item in (*items, *annotated) for side in item.sides}
    used |= {side for comparison in comparisons for side in (comparison.a, comparison.b)} | set(traffic)
    # Features of trajectories that are not used any more are dropped: the trajectory may have been deleted permanently.
    features = {name: row for name, row in features.items() if name in used}
    table = _FeatureTable(features)
    items, annotated = table.complete_items(items), table.complete_items(annotated)
    comparisons = [
        comparison for comparison in comparisons if {comparison.a, comparison.b} <= features.keys()
    ]
    chosen, summary = _rank_and_estimate(
        config, table, items, annotated, comparisons, traffic, seen=read_seen_tasks(folder)
    )
    write_features(folder / "features", features)
    write_lines(folder / "chosen.jsonl", chosen)
    result = summary | {"encoded": len(missing), "comparisons": len(comparisons), "items": len(items)}
    write_json(folder / "result.json", result)
    return result


class _FeatureTable:
    """Trajectories with their features on a common scale, [trajectories, d]."""

    def __init__(self, features: dict[str, Numbers]) -> None:
        self.row_index = {name: index for index, name in enumerate(features)}
        self.rows = scale_features(np.array(list(features.values()))) if features else np.zeros((0, 1))

    def complete_items(self, items: Sequence[CandidateItem]) -> list[CandidateItem]:
        """The items whose trajectories all have features."""
        return [item for item in items if set(item.sides) <= self.row_index.keys()]

    def candidate_pool(self, items: Sequence[CandidateItem]) -> CandidatePool:
        return make_candidate_pool(
            [tuple(self.row_index[side] for side in item.sides) for item in items], self.rows
        )

    def features(self, names: Sequence[str]) -> Numbers:
        return self.rows[[self.row_index[name] for name in names if name in self.row_index]]


def _rank_and_estimate(
    config: SelectionConfig,
    table: _FeatureTable,
    items: Sequence[CandidateItem],
    annotated: Sequence[CandidateItem],
    comparisons: Sequence[Comparison],
    traffic: Sequence[str],
    *,
    seen: frozenset[str] | None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The chosen items in order, and the learning curve.

    seen: tasks whose labels the model behind the features was trained on; None if unknown. Their comparisons are not
    in the curve: features that know the labels make few of them look like enough.
    """
    first_sides = table.features([comparison.a for comparison in comparisons])
    differences = first_sides - table.features([comparison.b for comparison in comparisons])
    preferred = np.array([comparison.preferred for comparison in comparisons])
    weights = np.array([comparison.weight for comparison in comparisons])
    posterior = fit(differences, preferred, weights=weights) if comparisons else None
    pool = table.candidate_pool(items)
    known = AnnotatedData(posterior, table.candidate_pool(annotated).item_features, table.features(traffic))
    ranking = rank_items(pool, known, config.strategy, count=config.count, seed=config.seed)
    scores, shares = rank_scores(ranking.order), measure_shares(ranking.measures)
    chosen = [
        {
            "id": items[index].id,
            "rank": rank,
            "score": float(scores[index]),
            "measures": {name: float(values[index]) for name, values in shares.items()},
        }
        for rank, index in enumerate(ranking.order[: config.count])
    ]
    fresh = [
        index
        for index, comparison in enumerate(comparisons)
        if seen is not None and comparison.task not in seen
    ]
    newest = fresh[-_MOST_IN_CURVE:]
    curve = learning_curve(
        differences[newest],
        preferred[newest],
        [comparisons[index].task for index in newest],
        wanted=config.wanted,
        seed=config.seed,
    )
    return chosen, {
        "curve": None if curve is None else dataclasses.asdict(curve),
        "withheld": len(comparisons) - len(fresh),
        "seen_unknown": seen is None,
        "prior_variance": None if posterior is None else posterior.variance,
    }
