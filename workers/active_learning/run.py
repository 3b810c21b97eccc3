"""A selection of items from its folder to its result."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workers.active_learning.curve import learning_curve
from workers.active_learning.directory import (
    Config,
    Item,
    read_comparisons,
    read_config,
    read_features,
    read_items,
    write_features,
    write_lines,
)
from workers.active_learning.measures import make_pool
from workers.active_learning.order import Known, choose, scores, shares
from workers.active_learning.posterior import Numbers, fit
from workers.active_learning.scale import common_scale
from workers.json_files import write_json
from workers.schema import read_trajectories
from workers.schema.comparisons import Comparison

_MOST_IN_CURVE = 4000  # of the newest comparisons: what a curve costs grows with them


def select_items(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError.

    torch is loaded only where a trajectory is new: otherwise this is a matter of a second.
    """
    config = read_config(folder)
    features = read_features(folder / "known")
    new = {str(one.id): one for one in read_trajectories(folder / "new.jsonl.zst")}
    missing = {name: one for name, one in new.items() if name not in features}
    if missing:
        # torch and transformers take seconds to load, which a pass without anything new should not cost
        from workers.active_learning.features import encode

        features |= encode(missing, folder / "model", device=config.device)
    items, asked = (read_items(folder / f"{name}.jsonl") for name in ("items", "asked"))
    said = read_comparisons(folder / "comparisons.jsonl")
    traffic: list[str] = json.loads((folder / "traffic.json").read_text())
    meant = {side for one in (*items, *asked) for side in one.sides}
    meant |= {side for one in said for side in (one.a, one.b)} | set(traffic)
    # What nobody means any more is forgotten: it may have been deleted for good.
    features = {name: row for name, row in features.items() if name in meant}
    seen = _Seen(features)
    items, asked = seen.whole(items), seen.whole(asked)
    said = [one for one in said if {one.a, one.b} <= features.keys()]
    chosen, found = _look(config, seen, items, asked, said, traffic)
    write_features(folder / "features", features)
    write_lines(folder / "chosen.jsonl", chosen)
    result = found | {"encoded": len(missing), "comparisons": len(said), "items": len(items)}
    write_json(folder / "result.json", result)
    return result


class _Seen:
    """Trajectories with their features on a common scale, [trajectories, d]."""

    def __init__(self, features: dict[str, Numbers]) -> None:
        self.place = {name: place for place, name in enumerate(features)}
        self.rows = common_scale(np.array(list(features.values()))) if features else np.zeros((0, 1))

    def whole(self, items: Sequence[Item]) -> list[Item]:
        """Those of which every trajectory could be read."""
        return [one for one in items if set(one.sides) <= self.place.keys()]

    def pool(self, items: Sequence[Item]) -> Any:
        return make_pool([tuple(self.place[side] for side in one.sides) for one in items], self.rows)

    def of(self, names: Sequence[str]) -> Numbers:
        return self.rows[[self.place[name] for name in names if name in self.place]]


def _look(
    config: Config,
    seen: _Seen,
    items: Sequence[Item],
    asked: Sequence[Item],
    said: Sequence[Comparison],
    traffic: Sequence[str],
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    differences = seen.of([one.a for one in said]) - seen.of([one.b for one in said])
    preferred = np.array([one.preferred for one in said])
    weights = np.array([one.weight for one in said])
    posterior = fit(differences, preferred, weights=weights) if said else None
    pool = seen.pool(items)
    known = Known(posterior, seen.pool(asked).looks, seen.of(traffic))
    found = choose(pool, known, config.strategy, count=config.count, seed=config.seed)
    of_item, beside = scores(found.order), shares(found.measures)
    chosen = [
        {
            "id": items[place].id,
            "rank": rank,
            "score": float(of_item[place]),
            "measures": {name: float(values[place]) for name, values in beside.items()},
        }
        for rank, place in enumerate(found.order[: config.count])
    ]
    newest = slice(-_MOST_IN_CURVE, None)
    curve = learning_curve(
        differences[newest],
        preferred[newest],
        [one.task for one in said[newest]],
        wanted=config.wanted,
        seed=config.seed,
    )
    return chosen, {
        "curve": None if curve is None else dataclasses.asdict(curve),
        "prior_variance": None if posterior is None else posterior.variance,
    }
