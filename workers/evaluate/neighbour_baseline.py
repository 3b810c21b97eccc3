"""Nearest neighbours: what is known of the training trajectories, or steps, that are most like one, in embeddings.

The mean over the k nearest by cosine, each weighted by how much nearer it is than the last of them (Dudani 1976). Of
comparisons it is how often the neighbours won, of outcomes how often they succeeded, of ratings and scores their place
on the scale, of step labels how often the nearest steps had each label. k has the lowest squared error in
cross-validation over tasks within the training records.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.evaluate.learned_baselines import PARTS, BaselineScores, Part
from workers.models import ModelScore
from workers.objectives.process import known_labels
from workers.objectives.regression import place_on_scale
from workers.schema import FeedbackRecord, PreferenceRecord, RatingRecord
from workers.schema.records import record_trajectories
from workers.schema.task_folds import task_folds

COUNTS = (1, 5, 20, 80, 320)  # of neighbours, of which one is chosen
MIN_TASKS = 10
_FOLDS, _MOST_POINTS, _BLOCK = 3, 20_000, 512
_LEAST_DISTANCE = 1e-9
_Key = tuple[str, int]  # content hash of a trajectory, and agent step; 0 for the trajectory itself
Floats = NDArray[np.float64]
Embeddings = Mapping[
    str, NDArray[np.float32]
]  # by content hash, [agent steps, hidden]; 0 for a step without text


@dataclass(frozen=True, slots=True)
class _Space:
    """Points of which something is known. vectors: [points, hidden], of unit length around the centre. folds: [points],
    by task. values: by name, [points], NaN where it is not known."""

    keys: Sequence[_Key]
    centre: NDArray[np.float32]
    vectors: NDArray[np.float32]
    folds: NDArray[np.int64]
    values: Mapping[str, Floats]


def neighbour_scores(
    training: Sequence[FeedbackRecord],
    asked: Sequence[FeedbackRecord],
    embeddings: Embeddings,
    criteria: Collection[str | None],
    *,
    check: Callable[[], None] = lambda: None,
) -> dict[Part, BaselineScores]:
    """By part of a report, the scores of the trajectories of `asked` and of the training records that have embeddings.

    A part with training records of fewer than MIN_TASKS tasks has none. criteria: of the comparisons that count. check:
    called between blocks of queries; may raise to stop.
    """
    found: dict[Part, BaselineScores] = {}
    for part, kinds in PARTS.items():
        space = _space(
            part, [record for record in training if isinstance(record, kinds)], embeddings, criteria
        )
        if space is None:
            continue
        names = {
            side.content_hash: None
            for record in asked
            if isinstance(record, kinds)
            for side in record_trajectories(record)
            if side.content_hash in embeddings
        }
        own = _neighbour_means(space, space.vectors, space.folds, COUNTS, check)
        best = min(range(len(COUNTS)), key=lambda place: _squared_error(space.values, own[place]))
        keys = [key for name in names for key in _keys(part, name, embeddings)]
        asked_vectors = _centred(_vectors(part, keys, embeddings), space.centre)
        (means,) = _neighbour_means(space, asked_vectors, None, COUNTS[best : best + 1], check)
        found[part] = BaselineScores(_scores(part, keys, means), _scores(part, space.keys, own[best]))
    return found


def _space(
    part: Part, records: Sequence[Any], embeddings: Embeddings, criteria: Collection[str | None]
) -> _Space | None:
    """None for too few tasks."""
    known: dict[str, dict[_Key, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    tasks: dict[str, str] = {}
    for record in records:
        for name, trajectory, step, value, weight in _known_values(record, criteria):
            if trajectory.content_hash in embeddings and weight > 0:
                known[name][trajectory.content_hash, step].append((value, weight))
                tasks[trajectory.content_hash] = str(trajectory.task.id)
    if len(set(tasks.values())) < MIN_TASKS:
        return None
    # Steps without a label are no points, but their trajectories are asked about whole.
    keys = [key for name in tasks for key in _keys(part, name, embeddings)][:_MOST_POINTS]
    vectors = _vectors(part, keys, embeddings)
    centre = vectors.mean(0)
    values = {name: np.array([_mean(by_key.get(key, ())) for key in keys]) for name, by_key in known.items()}
    fold_of = dict(zip(tasks, task_folds([*tasks.values()], _FOLDS), strict=True))
    folds = np.array([fold_of[name] for name, _ in keys])
    return _Space(keys, centre, _centred(vectors, centre), folds, values)


def _mean(weighted: Sequence[tuple[float, float]]) -> float:
    """NaN for nothing."""
    total = sum(weight for _, weight in weighted)
    return sum(value * weight for value, weight in weighted) / total if total else np.nan


def _known_values(
    record: Any, criteria: Collection[str | None]
) -> Iterator[tuple[str, Any, int, float, float]]:
    """Name, trajectory, step, value and weight of what a record tells. The name is empty for the reward."""
    sides, weight = record_trajectories(record), getattr(record, "weight", 1.0)
    if isinstance(record, PreferenceRecord):
        if record.criterion in criteria and record.choice in ("a", "b"):
            yield "", record.a, 0, float(record.choice == "a"), weight
            yield "", record.b, 0, float(record.choice == "b"), weight
    elif hasattr(record, "ranks"):
        if record.criterion in criteria:
            for (first, a), (second, b) in combinations(zip(record.ranks, sides, strict=True), 2):
                if first != second:
                    yield "", a, 0, float(first < second), weight
                    yield "", b, 0, float(second < first), weight
    elif hasattr(record, "success"):
        yield "", sides[0], 0, float(record.success), weight
    elif hasattr(record, "labels"):
        labels = known_labels(record, len(sides[0].agent_steps))
        for step, label in enumerate(labels):
            for name in ("good", "neutral", "bad") if label else ():
                yield name, sides[0], step, float(name == label), weight
    else:
        yield (
            "" if isinstance(record, RatingRecord) else record.criterion,
            sides[0],
            0,
            place_on_scale(record),
            weight,
        )


def _keys(part: Part, name: str, embeddings: Embeddings) -> list[_Key]:
    return [(name, step) for step in range(len(embeddings[name]))] if part == "steps" else [(name, 0)]


def _vectors(part: Part, keys: Sequence[_Key], embeddings: Embeddings) -> NDArray[np.float32]:
    """[keys, hidden]: of a step its own; of a trajectory the mean over its steps and the last one, next to each
    other."""
    if not keys:
        return np.zeros((0, 1), dtype=np.float32)
    if part == "steps":
        return np.stack([embeddings[name][step] for name, step in keys])
    rows = (embeddings[name] for name, _ in keys)
    return np.stack([np.concatenate([_unit(steps.mean(0)), _unit(steps[-1])]) for steps in rows])


def _centred(vectors: NDArray[np.float32], centre: NDArray[np.float32]) -> NDArray[np.float32]:
    return _unit(vectors - centre) if len(vectors) else np.zeros((0, len(centre)), dtype=np.float32)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
    return found


def _neighbour_means(
    space: _Space,
    queries: NDArray[np.float32],
    folds: NDArray[np.int64] | None,
    counts: Sequence[int],
    check: Callable[[], None],
) -> list[dict[str, Floats]]:
    """By count of neighbours and by name, [queries]. folds: of the queries, whose points are none of their
    neighbours; None where no point is left out."""
    found = [{name: np.zeros(len(queries)) for name in space.values} for _ in counts]
    for name, values in space.values.items():
        places = np.flatnonzero(~np.isnan(values))
        points, known = space.vectors[places], values[places]
        for start in range(0, len(queries), _BLOCK):
            check()
            block = slice(start, start + _BLOCK)
            distances = 1 - queries[block] @ points.T
            if folds is not None:
                distances[folds[block][:, None] == space.folds[places]] = np.inf
            nearest = _nearest(distances, max(counts))
            near, near_values = np.take_along_axis(distances, nearest, 1), known[nearest]
            for place, count in enumerate(counts):
                found[place][name][block] = _weighted_means(near[:, :count], near_values[:, :count])
    return found


def _nearest(distances: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """[queries, at most count]: places, the nearest first."""
    if count < distances.shape[1]:
        chosen = np.argpartition(distances, count - 1, axis=1)[:, :count]
    else:
        chosen = np.broadcast_to(np.arange(distances.shape[1]), distances.shape)
    order = np.argsort(np.take_along_axis(distances, chosen, 1), axis=1, kind="stable")
    nearest: NDArray[np.int64] = np.take_along_axis(chosen, order, 1)
    return nearest


def _weighted_means(distances: NDArray[np.float32], values: Floats) -> Floats:
    """[queries]. distances, values: [queries, neighbours], the nearest first; those that are infinite do not count."""
    last = np.where(np.isfinite(distances), distances, -np.inf).max(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        weights = np.where(np.isfinite(distances), last - distances, 0.0)
    is_flat = weights.max(1, keepdims=True) < _LEAST_DISTANCE
    weights = np.where(is_flat, np.isfinite(distances), weights)
    total = weights.sum(1)
    means: Floats = (weights * values).sum(1) / np.where(total == 0, np.nan, total)
    return np.nan_to_num(means)


def _squared_error(values: Mapping[str, Floats], means: Mapping[str, Floats]) -> float:
    return float(np.mean([np.nanmean((values[name] - means[name]) ** 2) for name in values]))


def _scores(part: Part, keys: Sequence[_Key], means: Mapping[str, Floats]) -> dict[str, ModelScore]:
    """By content hash."""
    if part != "steps":
        return {
            name: ModelScore(
                float(means[""][row]) if "" in means else 0.0,
                0.0,
                None,
                (),
                criteria={criterion: float(found[row]) for criterion, found in means.items() if criterion},
            )
            for row, (name, _) in enumerate(keys)
        }
    labels: dict[str, list[dict[str, float]]] = defaultdict(list)
    for row, (name, _) in enumerate(keys):
        labels[name].append({label: float(found[row]) for label, found in means.items()})
    return {name: ModelScore(0.0, 0.0, None, (), labels=tuple(steps)) for name, steps in labels.items()}
