"""Logistic regression on n-grams: what a good engineer would try first, tuned, next to every model of comparisons.

Bradley-Terry with a reward linear in log(1 + count) of the agent's words and word pairs and of its characters 3 to 5,
hashed (Weinberger et al. 2009). The ridge penalty is chosen by cross-validation over tasks within the training data.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.schema import FeedbackRecord, PreferenceRecord, Trajectory
from workers.schema.contamination import agent_text

PENALTIES = (0.01, 0.1, 1.0)  # C of scikit-learn: the inverse of the ridge penalty
MIN_COMPARISONS, MIN_TASKS = 50, 10
_COLUMNS, _CHARACTERS, _FOLDS = 2**18, 20_000, 3
_OF_CHARACTERS = 0.3  # there are several times as many of them as of words
_WORD = re.compile(r"\w+")
Margins = dict[tuple[str, str, str | None], float]  # by the content hashes of a and b, and the criterion


def ngram_margins(
    training: Iterable[FeedbackRecord], held_out: Iterable[FeedbackRecord], criterion: str | None
) -> Margins:
    """For each comparison of `held_out` by the criterion, how much more reward a has than b.

    Empty where training has fewer than 50 comparisons with a winner, or fewer than 10 tasks: too few to choose a
    penalty by.
    """
    known = [record for record in _comparisons(training, criterion) if record.choice in ("a", "b")]
    tasks = [str(record.a.task.id) for record in known]
    if len(known) < MIN_COMPARISONS or len(set(tasks)) < MIN_TASKS:
        return {}
    asked = list(_comparisons(held_out, criterion))
    features = _Features(trajectory for record in (*known, *asked) for trajectory in (record.a, record.b))
    differences = features.differences(known)
    is_a = np.array([record.choice == "a" for record in known])
    weights = _fit(differences, is_a, _choose_penalty(differences, is_a, tasks))
    margins = features.differences(asked) @ weights
    return {
        (record.a.content_hash, record.b.content_hash, criterion): float(margin)
        for record, margin in zip(asked, margins, strict=True)
    }


def _comparisons(records: Iterable[FeedbackRecord], criterion: str | None) -> Iterator[PreferenceRecord]:
    for record in records:
        if isinstance(record, PreferenceRecord) and record.criterion == criterion:
            yield record


class _Features:
    """[trajectories, columns], sparse."""

    def __init__(self, trajectories: Iterable[Trajectory]) -> None:
        # A second to load, where it is not needed.
        from scipy import sparse
        from sklearn.feature_extraction.text import HashingVectorizer

        texts = {one.content_hash: agent_text(one)[:_CHARACTERS] for one in trajectories}
        self._row = {name: place for place, name in enumerate(texts)}
        options: dict[str, Any] = {"n_features": _COLUMNS, "norm": None, "alternate_sign": False}
        words = HashingVectorizer(analyzer=_words_and_pairs, **options)
        characters = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 5), **options)
        counts = [each.transform(texts.values()).log1p() for each in (words, characters)]
        self._counts = sparse.hstack([counts[0], counts[1] * _OF_CHARACTERS]).tocsr()

    def differences(self, records: Sequence[PreferenceRecord]) -> Any:
        """[comparisons, columns]: a minus b."""
        first, second = ([self._row[side.content_hash] for side in sides] for sides in _sides(records))
        return self._counts[first] - self._counts[second]


def _words_and_pairs(text: str) -> list[str]:
    """In lower case. A word of one letter counts."""
    words = _WORD.findall(text.lower())
    return [*words, *(f"{first} {second}" for first, second in pairwise(words))]


def _sides(records: Sequence[PreferenceRecord]) -> tuple[list[Trajectory], list[Trajectory]]:
    return [record.a for record in records], [record.b for record in records]


def _choose_penalty(differences: Any, is_a: NDArray[np.bool_], tasks: Sequence[str]) -> float:
    """That of the highest accuracy over folds of tasks; of equal ones the strongest."""
    fold = np.array([int.from_bytes(hashlib.sha256(task.encode()).digest()[:8]) % _FOLDS for task in tasks])
    right = []
    for penalty in PENALTIES:
        found = np.zeros(len(tasks))
        for each in set(fold):
            inside, outside = np.flatnonzero(fold != each), np.flatnonzero(fold == each)
            margin = differences[outside] @ _fit(differences[inside], is_a[inside], penalty)
            found[outside] = np.where(margin == 0, 0.5, (margin > 0) == is_a[outside])
        right.append(found.mean())
    return PENALTIES[int(np.argmax(right))]


def _fit(differences: Any, is_a: NDArray[np.bool_], penalty: float) -> NDArray[np.float64]:
    """[columns]. Without an intercept, so that the order of a and b says nothing; zeros where nothing differs."""
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    # One comparison the other way round, so that there are always two classes.
    both = sparse.vstack([differences, -differences[:1]]).tocsr()
    model = LogisticRegression(C=penalty, fit_intercept=False, max_iter=300)
    model.fit(both, np.append(is_a, not is_a[0]))
    weights: NDArray[np.float64] = model.coef_[0]
    return weights
