"""A peer without a neural network: Bradley-Terry over which words and word pairs the agent's last turn has."""

from collections.abc import Sequence
from dataclasses import replace

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from workers.evaluate.preference import Prediction
from workers.schema import Trajectory

_C = 0.1  # the best of 0.01, 0.1 and 1 on HH itself: a floor is given every advantage


def bag_of_bigrams(found: Sequence[Prediction], folds: Sequence[int]) -> list[Prediction]:
    """What it would have predicted, in the same order; folds: the fold of each, which is predicted by the others."""
    texts = [tuple(map(_last_turn, (prediction.record.a, prediction.record.b))) for prediction in found]
    out = list(found)
    for fold in sorted(set(folds)):
        train = [index for index, other in enumerate(folds) if other != fold and found[index].is_strict]
        held_out = [index for index, other in enumerate(folds) if other == fold]
        words = CountVectorizer(ngram_range=(1, 2), binary=True, min_df=2)
        words.fit(text for index in train for text in texts[index])

        first, second = (words.transform([texts[index][side] for index in train]) for side in (0, 1))
        model = LogisticRegression(C=_C, fit_intercept=False, max_iter=1000)
        model.fit(first - second, [found[index].record.choice == "a" for index in train])
        for index in held_out:
            a, b = words.transform(texts[index]) @ model.coef_[0]
            out[index] = replace(found[index], raw=(float(a), float(b)))
    return out


def _last_turn(trajectory: Trajectory) -> str:
    return trajectory.steps[trajectory.agent_steps[-1]].text
