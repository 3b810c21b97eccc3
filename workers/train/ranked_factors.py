"""Comparisons by factors in the order of their importance: HERON (Bukharin et al. 2023, arXiv 2309.02632).

Of two trajectories of a task, the better one is that which is better by the first factor in which they clearly differ.
No one has to weigh factors against each other; a reward that is learnt from these comparisons does.
"""

import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from workers.errors import RewardError
from workers.schema import FeedbackRecord, OutcomeRecord, ScoreRecord, Trajectory
from workers.schema.recipe import Recipe
from workers.schema.records import record_trajectories

OUTCOME, STEPS, METADATA = "outcome", "steps", "metadata."
Factor = dict[str, float]  # by content hash; more is better


def ranked_pairs(
    records: Sequence[FeedbackRecord], recipe: Recipe, *, seed: int
) -> list[tuple[Trajectory, Trajectory]]:
    """(better, worse) of trajectories of one task; each is the better one at most `generated_per_trajectory` times.
    Raises RewardError for a factor that no record has."""
    trajectories = {side.content_hash: side for record in records for side in record_trajectories(record)}
    names = recipe.factors or criteria_by_weight(records)
    if not names:
        raise RewardError(
            "the generator 'factors' found no rubric scores to take factors from; name them in `factors`.",
            pointer="/factors",
        )
    factors = [factor_values(name, records, trajectories) for name in names]
    gaps = [recipe.factor_margin * _spread(values) for values in factors]
    by_task: dict[str, list[str]] = defaultdict(list)
    for key, trajectory in trajectories.items():
        by_task[trajectory.task.id].append(key)
    found: dict[str, list[tuple[Trajectory, Trajectory]]] = defaultdict(list)
    for keys in by_task.values():
        for first, second in combinations(keys, 2):
            better = _better(first, second, factors, gaps)
            if better is not None:
                worse = second if better == first else first
                found[better].append((trajectories[better], trajectories[worse]))
    dice = random.Random(f"{seed}/factors")  # noqa: S311 (not for secrets)
    most = recipe.generated_per_trajectory
    return [pair for pairs in found.values() for pair in dice.sample(pairs, min(most, len(pairs)))]


def criteria_by_weight(records: Iterable[FeedbackRecord]) -> tuple[str, ...]:
    """The criteria of rubric scores, those with the largest weights first; of equal weights, in the records' order."""
    weights: dict[str, float] = {}
    for record in records:
        if isinstance(record, ScoreRecord):
            weights.setdefault(record.criterion, abs(record.criterion_weight or 0.0))
    return tuple(sorted(weights, key=lambda name: -weights[name]))


def factor_values(
    name: str, records: Iterable[FeedbackRecord], trajectories: dict[str, Trajectory]
) -> Factor:
    """name: a criterion of rubric scores, `outcome`, `steps` (fewer are better), or `metadata.KEY`, a number of the
    trajectory; with a minus in front, less of it is better. Raises RewardError where no trajectory has it."""
    plain = name.removeprefix("-")
    values = _READERS.get(plain, _of_metadata if plain.startswith(METADATA) else _of_criterion)(
        plain, records, trajectories
    )
    if not values:
        raise RewardError(
            f"no trajectory of the training split has the factor {plain!r}; a factor is a criterion of rubric scores, "
            f"{OUTCOME!r}, {STEPS!r}, or {METADATA}KEY, a number in the metadata of trajectories.",
            pointer="/factors",
        )
    return {key: -value for key, value in values.items()} if plain != name else values


def _of_criterion(
    name: str, records: Iterable[FeedbackRecord], trajectories: dict[str, Trajectory]
) -> Factor:
    """The mean place on the scale over annotators; from its top where the rubric's weight is below 0."""
    told: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if isinstance(record, ScoreRecord) and record.criterion == name and record.scale[0] < record.scale[1]:
            place = (record.value - record.scale[0]) / (record.scale[1] - record.scale[0])
            is_bad = (record.criterion_weight or 0.0) < 0
            told[record.trajectory.content_hash].append(1 - place if is_bad else place)
    return {key: statistics.fmean(places) for key, places in told.items()}


def _of_outcomes(name: str, records: Iterable[FeedbackRecord], trajectories: dict[str, Trajectory]) -> Factor:
    return {
        record.trajectory.content_hash: float(record.success) if record.reward is None else record.reward
        for record in records
        if isinstance(record, OutcomeRecord)
    }


def _of_steps(name: str, records: Iterable[FeedbackRecord], trajectories: dict[str, Trajectory]) -> Factor:
    return {key: -float(len(trajectory.agent_steps)) for key, trajectory in trajectories.items()}


def _of_metadata(name: str, records: Iterable[FeedbackRecord], trajectories: dict[str, Trajectory]) -> Factor:
    key = name.removeprefix(METADATA)
    values = {hash_: trajectory.metadata.get(key) for hash_, trajectory in trajectories.items()}
    return {
        hash_: float(value)
        for hash_, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


_Reader = Callable[[str, Iterable[FeedbackRecord], dict[str, Trajectory]], Factor]
_READERS: dict[str, _Reader] = {OUTCOME: _of_outcomes, STEPS: _of_steps}


def _spread(values: Factor) -> float:
    return statistics.pstdev(values.values()) if len(values) > 1 else 0.0


def _better(first: str, second: str, factors: Sequence[Factor], gaps: Sequence[float]) -> str | None:
    """By the first factor that both have and in which they differ by more than its gap."""
    for values, gap in zip(factors, gaps, strict=True):
        if first in values and second in values:
            difference = values[first] - values[second]
            if abs(difference) > gap:
                return first if difference > 0 else second
    return None
