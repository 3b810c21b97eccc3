"""Logistic regression on n-grams: what a good engineer would try first, tuned, next to every model of comparisons.

Bradley-Terry with a reward linear in log(1 + count) of the agent's words and word pairs and of its characters 3 to 5,
hashed (Weinberger et al. 2009). The ridge penalty is chosen by cross-validation over tasks within the training data.
However much training data there is, no more than MAX_COMPARISONS and MAX_CHARACTERS are used.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.schema import FeedbackRecord, PreferenceRecord, RankingRecord, Trajectory
from workers.schema.contamination import agent_text
from workers.schema.records import record_trajectories
from workers.schema.task_folds import task_folds

PENALTIES = (0.003, 0.03, 0.3)  # C of scikit-learn: the inverse of the ridge penalty
MIN_COMPARISONS, MIN_TASKS = 50, 10
MAX_COMPARISONS, MAX_CHARACTERS = 5_000, 10_000_000
_COLUMNS, _FOLDS, _BLOCK = 2**18, 3, 1_000
_FEWEST_CHARACTERS, _MOST_CHARACTERS = 1_000, 20_000  # of a text
_OF_CHARACTERS = 0.3  # there are several times as many of them as of words
NgramRewards = dict[tuple[str, str | None], float]  # by content hash and criterion
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Choice:
    better: Trajectory
    worse: Trajectory
    weight: float


@dataclass(frozen=True, slots=True)
class NgramBaseline:
    """held_out: the regression's rewards. training: of what it learnt from, by fits that had not seen the task."""

    held_out: NgramRewards = field(default_factory=dict)
    training: NgramRewards = field(default_factory=dict)


def fit_ngrams(
    training: Sequence[FeedbackRecord],
    held_out: Sequence[FeedbackRecord],
    criteria: Collection[str | None],
    *,
    check: Callable[[], None] = lambda: None,
) -> NgramBaseline:
    """The regression's reward of each trajectory that `held_out` compares or ranks by one of the criteria.

    Fitted to comparisons with a winner and pairs of rankings of `training` by the same criterion, with their weights. A
    criterion with fewer than 50 of these, or fewer than 10 tasks, has no rewards: too few to choose a penalty by. Nor
    has one whose trajectories do not differ in their text, such as those of numbers.
    check: called between fits; may raise to stop.
    """
    found = NgramBaseline()
    rewards = found.held_out
    for criterion in criteria:
        choices = _sample([*_choices(training, criterion)])
        asked = {
            trajectory.content_hash: trajectory
            for record in _by(held_out, criterion)
            for trajectory in record_trajectories(record)
        }
        tasks = [str(choice.better.task.id) for choice in choices]
        if len(choices) < MIN_COMPARISONS or len(set(tasks)) < MIN_TASKS:
            continue
        texts = {
            trajectory.content_hash: trajectory
            for choice in choices
            for trajectory in (choice.better, choice.worse)
        }
        encoder = _Encoder(len(texts))
        rows = encoder.encode(texts.values())
        differences = _differences(choices, rows, [*texts])
        weights = np.array([choice.weight for choice in choices])
        # The others have no gradient and the weight 0; the library would go through them in every step.
        used = np.unique(differences.indices)
        if not len(used):
            continue
        width, differences = differences.shape[1], differences[:, used]
        fold = np.array(task_folds(tasks, _FOLDS))
        penalty, by_fold = _choose_penalty(differences, weights, fold, check)
        reward = np.zeros(width)
        reward[used] = _fit(differences, weights, penalty)
        task_fold = dict(zip(tasks, fold.tolist(), strict=True))
        by_row = rows[:, used] @ by_fold.T
        for name, trajectory, values in zip(texts, texts.values(), by_row, strict=True):
            found.training[name, criterion] = float(values[task_fold[str(trajectory.task.id)]])
        names = list(asked)
        for start in range(0, len(names), _BLOCK):
            check()
            block = names[start : start + _BLOCK]
            values = encoder.encode([asked[name] for name in block]) @ reward
            rewards.update(
                {(name, criterion): float(value) for name, value in zip(block, values, strict=True)}
            )
    return found


def ngram_rewards(
    training: Sequence[FeedbackRecord],
    held_out: Sequence[FeedbackRecord],
    criteria: Collection[str | None],
    *,
    check: Callable[[], None] = lambda: None,
) -> NgramRewards:
    """Only the rewards of what is held out, see `fit_ngrams`."""
    return fit_ngrams(training, held_out, criteria, check=check).held_out


def _by(
    records: Iterable[FeedbackRecord], criterion: str | None
) -> Iterator[PreferenceRecord | RankingRecord]:
    for record in records:
        if isinstance(record, PreferenceRecord | RankingRecord) and record.criterion == criterion:
            yield record


def _choices(records: Iterable[FeedbackRecord], criterion: str | None) -> Iterator[_Choice]:
    for record in _by(records, criterion):
        if record.weight <= 0:
            continue
        if isinstance(record, PreferenceRecord):
            if record.choice in ("a", "b"):
                better, worse = (record.a, record.b) if record.choice == "a" else (record.b, record.a)
                yield _Choice(better, worse, record.weight)
        else:
            ranked = sorted(zip(record.ranks, record.trajectories, strict=True), key=lambda place: place[0])
            for (first, better), (second, worse) in combinations(ranked, 2):
                if first != second:
                    yield _Choice(better, worse, record.weight)


def _sample(choices: list[_Choice]) -> list[_Choice]:
    """MAX_COMPARISONS of them, always the same."""
    if len(choices) <= MAX_COMPARISONS:
        return choices

    def place(choice: _Choice) -> bytes:
        return hashlib.sha256(f"{choice.better.content_hash} {choice.worse.content_hash}".encode()).digest()

    return sorted(choices, key=place)[:MAX_COMPARISONS]


class _Encoder:
    """texts: how many there are in training, which share MAX_CHARACTERS."""

    def __init__(self, texts: int) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer  # a second to load, where it is needed

        shared = MAX_CHARACTERS // max(1, texts)
        self._characters = min(max(shared, _FEWEST_CHARACTERS), _MOST_CHARACTERS)
        options: dict[str, Any] = {"n_features": _COLUMNS, "norm": None, "alternate_sign": False}
        options["dtype"] = np.float32
        words = r"(?u)\b\w+\b"  # of one letter too
        self._words = HashingVectorizer(ngram_range=(1, 2), token_pattern=words, **options)
        self._pieces = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 5), **options)

    def encode(self, trajectories: Iterable[Trajectory]) -> Any:
        """[trajectories, columns], sparse."""
        from scipy import sparse

        texts = [agent_text(trajectory)[: self._characters] for trajectory in trajectories]
        pieces = self._pieces.transform(texts).log1p() * np.float32(_OF_CHARACTERS)
        return sparse.hstack([self._words.transform(texts).log1p(), pieces]).tocsr()


def _differences(choices: Sequence[_Choice], rows: Any, names: Sequence[str]) -> Any:
    """[choices, columns]: better minus worse. names: of the rows."""
    row = {name: place for place, name in enumerate(names)}
    better, worse = (
        [row[trajectory.content_hash] for trajectory in side]
        for side in zip(*((choice.better, choice.worse) for choice in choices), strict=True)
    )
    return rows[better] - rows[worse]


def _choose_penalty(
    differences: Any, weights: Floats, fold: NDArray[np.int64], check: Callable[[], None]
) -> tuple[float, Floats]:
    """That of the lowest log loss over folds of tasks, which is less noisy than accuracy; and, [folds, columns], the
    fits with it, each without a fold.

    fold: of each choice.
    """
    losses, fits = [], []
    for penalty in PENALTIES:
        found = np.zeros(len(fold))
        by_fold = np.zeros((_FOLDS, differences.shape[1]))
        for each in range(_FOLDS):
            check()
            inside, outside = np.flatnonzero(fold != each), np.flatnonzero(fold == each)
            by_fold[each] = _fit(differences[inside], weights[inside], penalty)
            found[outside] = np.logaddexp(0, -(differences[outside] @ by_fold[each]))
        losses.append(np.average(found, weights=weights))
        fits.append(by_fold)
    best = int(np.argmin(losses))
    return PENALTIES[best], fits[best]


def _fit(differences: Any, weights: Floats, penalty: float) -> Floats:
    """[columns]. differences: better minus worse. No intercept: the order of two trajectories says nothing."""
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    # Every second choice the other way round, which is the same choice: the library asks for two classes.
    sign = np.where(np.arange(differences.shape[0]) % 2 == 0, 1.0, -1.0).astype(np.float32)
    model = LogisticRegression(C=penalty, fit_intercept=False, max_iter=300)
    model.fit(sparse.diags(sign) @ differences, sign > 0, sample_weight=weights)
    reward: Floats = model.coef_[0]
    return reward
