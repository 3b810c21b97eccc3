"""The best baseline of each part of a report, chosen within the training data: what a model has to beat.

Chosen on the reported data, the best of several would be the luckiest.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from workers.evaluate.bootstrap import MIN_TASKS, task_count
from workers.evaluate.learned_baselines import PARTS, LearnedBaselines, Part
from workers.evaluate.outcome import outcome_baselines
from workers.evaluate.predictions import ScoredRecord
from workers.evaluate.preference import accuracy_baselines, predictions
from workers.evaluate.scores import score_baselines
from workers.evaluate.step_baselines import first_error_baselines, label_baselines, located_baselines
from workers.models import ModelScore
from workers.schema import FeedbackRecord, PreferenceRecord, RankingRecord
from workers.schema.records import record_trajectories

MIN_RECORDS = 30
_NOTHING = ModelScore(0.0, 0.0, None, ())
Values = Callable[[Sequence[ScoredRecord], LearnedBaselines], dict[str, float]]


def best_baselines(
    training: Iterable[FeedbackRecord],
    learned: LearnedBaselines,
    criteria: Collection[str | None],
    *,
    folds: Mapping[str, int] | None = None,
) -> dict[str, dict[str, Any]]:
    """By part of a report, {name, value, n, tasks, values}: the baseline with the highest value on training records.

    learned: of the training records, each by a fit that had not seen its task. values: of all baselines, by name, on
    the n records that each of them has. A part with fewer than MIN_RECORDS such records or MIN_TASKS tasks has none.
    criteria: of the comparisons that count. folds: by task, which fit its scores are by. Values are means over folds,
    since scores of two fits differ by more than what they are about: where a fit had fewer successes, it expects fewer
    of tasks that had more.
    """

    def accuracies(records: Sequence[ScoredRecord], known: LearnedBaselines) -> dict[str, float]:
        return accuracy_baselines([each for each in predictions(records, criteria) if each.is_strict], known)

    parts: dict[str, tuple[Part, Values]] = {
        "preference": ("preference", accuracies),
        "outcome": ("outcome", outcome_baselines),
        "scores": ("scores", score_baselines),
        "steps": ("steps", first_error_baselines),
        "located": ("steps", located_baselines),
        "labels": ("steps", label_baselines),
    }
    records = [*training]
    found = {
        name: _best(
            part,
            [record for record in records if isinstance(record, PARTS[part])],
            learned,
            values,
            folds or {},
        )
        for name, (part, values) in parts.items()
    }
    return {name: best for name, best in found.items() if best is not None}


def _best(
    part: Part,
    records: Sequence[Any],
    learned: LearnedBaselines,
    values_of: Values,
    folds: Mapping[str, int],
) -> dict[str, Any] | None:
    known = learned.scores_of(part).values()
    covered = [
        ScoredRecord(record, tuple(_NOTHING for _ in sides))
        for record in records
        for sides in [record_trajectories(record)]
        if all(side.content_hash in scores for side in sides for scores in known)
        and (part != "preference" or _has_ngrams(record, learned))
    ]
    tasks = task_count([scored.task for scored in covered])
    if len(covered) < MIN_RECORDS or tasks < MIN_TASKS:
        return None
    by_fold: dict[int, list[ScoredRecord]] = defaultdict(list)
    for scored in covered:
        by_fold[folds.get(scored.task, 0)].append(scored)
    found = [(len(some), values) for some in by_fold.values() if (values := values_of(some, learned))]
    if not found:
        return None
    count = sum(size for size, _ in found)
    values = {name: sum(size * each[name] for size, each in found) / count for name in found[0][1]}
    name = max(values, key=lambda each: values[each])
    return {"name": name, "value": values[name], "n": len(covered), "tasks": tasks, "values": values}


def _has_ngrams(record: PreferenceRecord | RankingRecord, learned: LearnedBaselines) -> bool:
    """True where there are no n-grams, too."""
    criteria = {criterion for _, criterion in learned.ngrams}
    return record.criterion not in criteria or all(
        (side.content_hash, record.criterion) in learned.ngrams for side in record_trajectories(record)
    )
