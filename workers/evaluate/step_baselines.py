"""What rules and learned baselines say of steps: the first error, the step of an error, labels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workers.evaluate.first_errors import best_threshold, first_below, step_scores, true_first_error
from workers.evaluate.learned_baselines import LearnedBaselines, ModelScores
from workers.evaluate.predictions import ScoredRecord
from workers.models import ModelScore
from workers.objectives.process import known_labels
from workers.schema import StepLabelRecord


def first_error_baselines(
    scored_records: Sequence[ScoredRecord], learned: LearnedBaselines
) -> dict[str, float]:
    """By name, how often each baseline finds the first error, by the threshold that is best for it on these."""
    firsts = with_first_error(scored_records)
    return _accuracies(firsts, first_error_guesses(firsts, firsts, learned)) if firsts else {}


def located_baselines(scored_records: Sequence[ScoredRecord], learned: LearnedBaselines) -> dict[str, float]:
    """By name, how often each baseline's step of an error is the first one."""
    wrong = [scored for scored in with_first_error(scored_records) if true_first_error(scored) is not None]
    return _accuracies(wrong, located_guesses(wrong, wrong, learned)) if wrong else {}


def label_baselines(scored_records: Sequence[ScoredRecord], learned: LearnedBaselines) -> dict[str, float]:
    """By name, how often each baseline's label of a labelled step is right."""
    labelled = [scored for scored in scored_records if isinstance(scored.record, StepLabelRecord)]
    true = [label for scored in labelled for _, label in known_steps(scored)]
    guesses = label_guesses(labelled, learned) if true else {}
    return {name: _share(found, true) for name, found in guesses.items()}


def with_first_error(scored_records: Sequence[ScoredRecord]) -> list[ScoredRecord]:
    return [
        scored
        for scored in scored_records
        if isinstance(scored.record, StepLabelRecord) and scored.record.has_first_error
    ]


def _scores_of(records: Sequence[ScoredRecord], scores: ModelScores) -> list[list[float]]:
    """By record and step."""
    return [step_scores(scores[scored.record.trajectory.content_hash]) for scored in records]


def first_error_guesses(
    firsts: Sequence[ScoredRecord], known: Sequence[ScoredRecord], learned: LearnedBaselines
) -> dict[str, list[int | None]]:
    """Of each baseline. A model's are by the threshold that is best for it on `known`, as for the reported model."""
    guesses = _rules(firsts, known)
    records = [scored.record for scored in (*firsts, *known)]
    for name, scores in learned.scores_of_all("steps", records).items():
        own = [
            ScoredRecord(scored.record, (scores[scored.record.trajectory.content_hash],)) for scored in known
        ]
        threshold = best_threshold(own)
        guesses[name] = [first_below(steps, threshold) for steps in _scores_of(firsts, scores)]
    return guesses


def located_guesses(
    wrong: Sequence[ScoredRecord], known: Sequence[ScoredRecord], learned: LearnedBaselines
) -> dict[str, list[int | None]]:
    """Of each baseline but "no error", since there is one in each."""
    guesses = _rules(wrong, known)
    guesses.pop("no_error", None)
    for name, scores in learned.scores_of_all("steps", [scored.record for scored in wrong]).items():
        guesses[name] = [steps.index(min(steps)) for steps in _scores_of(wrong, scores)]
    return guesses


def _rules(firsts: Sequence[ScoredRecord], known: Sequence[ScoredRecord]) -> dict[str, list[int | None]]:
    """Rules that look at no text: always the same place, or no error at all."""
    if not firsts:
        return {}
    common = Counter(map(true_first_error, known or firsts)).most_common(1)[0][0]
    return {
        "no_error": [None] * len(firsts),
        "first_step": [0] * len(firsts),
        "last_step": [len(scored.record.trajectory.agent_steps) - 1 for scored in firsts],
        "most_common": [common] * len(firsts),
    }


def _accuracies(
    firsts: Sequence[ScoredRecord], guesses: Mapping[str, Sequence[int | None]]
) -> dict[str, float]:
    return {
        name: _share(found, [true_first_error(scored) for scored in firsts])
        for name, found in guesses.items()
    }


def _share(guesses: Sequence[Any], true: Sequence[Any]) -> float:
    return float(np.mean([guess == value for guess, value in zip(guesses, true, strict=True)]))


def known_steps(scored: ScoredRecord) -> list[tuple[int, str]]:
    """Labelled steps that the model has read, with their labels."""
    labels = scored.scores[0].labels
    known = known_labels(scored.record, len(scored.record.trajectory.agent_steps))
    return [
        (step, label)
        for step, label in enumerate(known)
        if label is not None and (labels is None or labels[step] is not None)
    ]


def label_guesses(labelled: Sequence[ScoredRecord], learned: LearnedBaselines) -> dict[str, list[str | None]]:
    """Of each baseline, of the known steps in their order. A model without labels has none."""
    read = [(scored, step, label) for scored in labelled for step, label in known_steps(scored)]
    common = Counter(label for *_, label in read).most_common(1)[0][0]
    guesses: dict[str, list[str | None]] = {"majority": [common] * len(read)}
    for name, scores in learned.scores_of_all("steps", [scored.record for scored in labelled]).items():
        found = [(scores[scored.record.trajectory.content_hash], step) for scored, step, _ in read]
        if all(score.labels is not None for score, _ in found):
            guesses[name] = [most_probable(score, step) for score, step in found]
    return guesses


def most_probable(score: ModelScore, step: int) -> str | None:
    labels = None if score.labels is None else score.labels[step]
    return None if labels is None else max(labels, key=labels.__getitem__)
