"""What is reported of metrics: how good they are, and which earlier metrics they continue.

Coverage and redundancy are those of AutoLibra (https://arxiv.org/abs/2505.02820, section 3.3): an aspect is covered if
some trait of its trajectory says the same with the same sign; a trait, a metric judged good or bad on a trajectory, is
redundant if no aspect does. A metric that does not apply to a trajectory is no trait of it, and counts nowhere.
Intervals are drawn over trajectories, whose aspects and traits belong together.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workers.errors import RewardError
from workers.induce.grounding import Evidence
from workers.induce.induction_files import Aspect, PreviousMetric, Trait
from workers.induce.metric_classifier import (
    InducedMetrics,
    TrajectoryVerdicts,
    judge_trajectories,
    match_aspects,
)
from workers.induce.step_features import Encode, FloatArray, IndexArray

MIN_POINTS = 10
MIN_TRAJECTORIES = 5
BOOTSTRAP_DRAWS = 1000


def require_enough(aspects: Sequence[Aspect], comments: int, *, unsigned: int = 0) -> None:
    """Raises RewardError where there is too little to induce from. unsigned: points that neither praise nor blame."""
    trajectories = len({aspect.trajectory for aspect in aspects})
    if len(aspects) >= MIN_POINTS and trajectories >= MIN_TRAJECTORIES:
        return
    raise RewardError(
        f"{comments} comments make {len(aspects)} points of praise or blame on {trajectories} trajectories"
        f"{f' ({unsigned} more are neither)' if unsigned else ''}; metrics need at least {MIN_POINTS} on "
        f"{MIN_TRAJECTORIES}, since some are held out to see whether they are any good. Collect more comments."
    )


@dataclass(frozen=True, slots=True)
class MetaMetrics:
    """Shares, None where there is nothing to take one of; intervals hold 95 %."""

    coverage: float | None
    redundancy: float | None
    aspects: int
    traits: int
    coverage_interval: tuple[float, float] | None
    redundancy_interval: tuple[float, float] | None

    @property
    def shares(self) -> dict[str, Any]:
        """As the result has them."""
        return {
            "coverage": self.coverage,
            "redundancy": self.redundancy,
            "coverage_interval": self.coverage_interval,
            "redundancy_interval": self.redundancy_interval,
        }


@dataclass(frozen=True, slots=True)
class MetricsReport:
    """verdicts: of all trajectories of the evidence. matches: of each aspect the metric it is matched to, or -1."""

    verdicts: TrajectoryVerdicts
    matches: IndexArray
    meta: MetaMetrics


def report_metrics(
    evidence: Evidence, rows: IndexArray, induced: InducedMetrics, names: Sequence[str], *, is_held_out: bool
) -> MetricsReport:
    """How well the metrics describe these aspects. names: of the metrics. Those that are refused do not count.

    is_held_out: only traits of the trajectories of these aspects count.
    """
    verdicts = judge_trajectories(induced, evidence.steps, evidence.names, evidence.tasks, names)
    signs = verdicts.signs.copy()
    signs[:, list(induced.refused)] = 0
    best = match_aspects(evidence, rows, induced.clusters, signs)
    commented = {evidence.aspects[row].trajectory for row in rows}
    refused = {names[place] for place in induced.refused}
    traits = [
        replace(trait, sign=0) if trait.metric in refused else trait
        for trait, _ in verdicts.traits
        if not is_held_out or trait.trajectory in commented
    ]
    first: dict[str, int] = {}
    for place, trait in enumerate(traits):
        first.setdefault(trait.trajectory, place)
    matches = {
        place: [first[evidence.aspects[row].trajectory] + int(metric)]
        for place, (row, metric) in enumerate(zip(rows, best, strict=True))
        if metric >= 0
    }
    meta = compute_meta_metrics([evidence.aspects[row] for row in rows], traits, matches)
    return MetricsReport(verdicts, best, meta)


def compute_meta_metrics(
    aspects: Sequence[Aspect],
    traits: Sequence[Trait],
    matches: Mapping[int, Collection[int]],
    *,
    seed: int = 0,
) -> MetaMetrics:
    """matches: by the place of an aspect, the places of the traits that say the same. Raises RewardError for a match of
    different trajectories or signs, or with a trait that does not apply."""
    for place, met in matches.items():
        for other in met:
            aspect, trait = aspects[place], traits[other]
            if aspect.trajectory != trait.trajectory or aspect.sign != trait.sign or not trait.sign:
                raise RewardError(
                    f"aspect {place} and trait {other} ({trait.metric}) cannot match: they are of different "
                    "trajectories or signs."
                )
    covered = np.array([bool(matches.get(place)) for place in range(len(aspects))], dtype=float)
    used = {other for met in matches.values() for other in met}
    applying = [place for place, trait in enumerate(traits) if trait.sign]
    unused = np.array([place not in used for place in applying], dtype=float)
    trajectories = [aspect.trajectory for aspect in aspects]
    trait_trajectories = [traits[place].trajectory for place in applying]
    return MetaMetrics(
        coverage=float(covered.mean()) if len(covered) else None,
        redundancy=float(unused.mean()) if len(unused) else None,
        aspects=len(covered),
        traits=len(unused),
        coverage_interval=_bootstrap_interval(covered, trajectories, seed),
        redundancy_interval=_bootstrap_interval(unused, trait_trajectories, seed),
    )


def _bootstrap_interval(
    values: "np.ndarray[tuple[int], np.dtype[np.float64]]", groups: Sequence[str], seed: int
) -> tuple[float, float] | None:
    """Of the mean, groups drawn with replacement; None of fewer than two groups."""
    names = sorted(set(groups))
    if len(names) < 2:
        return None
    place = {name: number for number, name in enumerate(names)}
    rows = np.array([place[name] for name in groups])
    sums, counts = np.bincount(rows, values, len(names)), np.bincount(rows, minlength=len(names))
    draws = np.random.default_rng(seed).integers(len(names), size=(BOOTSTRAP_DRAWS, len(names)))
    means = sums[draws].sum(1) / counts[draws].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def resolve_groups(
    aspects: Sequence[Aspect], groups: Sequence[Sequence[tuple[str, str]]]
) -> list[IndexArray]:
    """Rows of the aspects that groups name by comment and point. Raises RewardError where a group has none."""
    rows: dict[tuple[str, str], list[int]] = {}
    for row, aspect in enumerate(aspects):
        rows.setdefault((aspect.comment, aspect.feedback), []).append(row)
    found = [
        np.array(sorted({row for key in group for row in rows.get(key, ())}), dtype=np.intp)
        for group in groups
    ]
    for number, group in enumerate(found):
        if not len(group):
            raise RewardError(
                f"Nothing that metric {number + 1} was made of is there any more; reject it, then judge again."
            )
    return found


def match_previous_metrics(
    examples: Sequence[Sequence[tuple[FloatArray, int]]],
    previous: Sequence[PreviousMetric],
    encode: Encode,
    similarity: float,
) -> list[dict[str, Any] | None]:
    """Of each metric the earlier one that it continues: each the other's nearest by their examples, and similar enough.

    examples: of each metric the vectors of each side, and its sign.
    """
    if not previous or not examples:
        return [None] * len(examples)
    known = [[(encode(metric.good), 1), (encode(metric.bad), -1)] for metric in previous]
    cosines = np.full((len(examples), len(previous)), -1.0)
    for place, sides in enumerate(examples):
        for other, theirs in enumerate(known):
            found = [
                float((mine @ its.T).max(axis=1).mean())
                for mine, sign in sides
                for its, its_sign in theirs
                if its_sign == sign and len(mine) and len(its)
            ]
            cosines[place, other] = max(found, default=-1.0)
    nearest, back = cosines.argmax(axis=1), cosines.argmax(axis=0)
    return [
        {"id": previous[other].id, "name": previous[other].name, "alike": float(cosines[place, other])}
        if back[other] == place and cosines[place, other] >= similarity
        else None
        for place, other in enumerate(nearest.tolist())
    ]
