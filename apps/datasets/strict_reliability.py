"""How reliable each annotator is where a winner is named: the q of Crowd-BT, from gold items and overlap.

Crowd-BT (Chen et al. 2013): an annotator of reliability q names a with probability q p + (1 - q) (1 - p), where p is
how often a is preferred at all. Hard comparisons have p near one half, so plain agreement is low for everyone; it says
something about an annotator only relative to the others. Ties and both-bad name no winner and do not count.
"""

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice

import numpy as np

from apps.annotation.models import is_by_judge
from workers.schema import FeedbackRecord, PreferenceRecord

PRIOR_ANSWERS = 4.0  # Beta(1 + 4, 1): as if so many answers were known to be right
_MIN_PEERS = 2  # with one, nothing says which of two annotators is wrong
_ROUNDS = 100


class StrictReliability:
    """Collects strict choices of people; `estimates` gives q by annotator.

    The mode of the posterior, (PRIOR_ANSWERS + right) / (PRIOR_ANSWERS + answers): 1 without evidence, as
    `annotators = "equal"` assumes. `right` and `answers` are gold items, and the overlap at its information.
    """

    def __init__(self) -> None:
        self._signs: dict[tuple[str, str | None], dict[str, float]] = defaultdict(dict)

    def add(self, record: FeedbackRecord) -> None:
        if not isinstance(record, PreferenceRecord) or record.item is None or record.choice not in ("a", "b"):
            return
        if not is_by_judge(record.origin, record.annotator):
            self._signs[record.item, record.criterion][record.annotator] = (
                1.0 if record.choice == "a" else -1.0
            )

    def estimates(self, gold: Mapping[str, tuple[int, int]] | None = None) -> dict[str, float]:
        """q by annotator, of those with evidence. gold: strict answers to gold items, {annotator: (right, of)}."""
        evidence = {name: (float(right), float(of)) for name, (right, of) in (gold or {}).items() if of}
        for name, (right, of) in self._overlap().items():
            known = evidence.get(name, (0.0, 0.0))
            evidence[name] = (known[0] + right, known[1] + of)
        return {
            name: (PRIOR_ANSWERS + right) / (PRIOR_ANSWERS + of) for name, (right, of) in evidence.items()
        }

    def _overlap(self) -> dict[str, tuple[float, float]]:
        """(right, answers) of annotators who share items with at least two others.

        Two strict answers +1 and -1 of i and j to one item multiply to v_i v_j in expectation, with v = (2 q - 1) times
        a factor common to all: one over the square root of how decided the items are. v is the least-squares fit. The
        median annotator sets the factor; overlap alone cannot tell it from a lower q of everyone.
        """
        items = [signs for signs in self._signs.values() if len(signs) > 1]
        names = sorted({name for signs in items for name in signs})
        place = {name: index for index, name in enumerate(names)}
        of_item = np.array([index for index, signs in enumerate(items) for _ in signs], dtype=np.int64)
        who = np.array([place[name] for signs in items for name in signs], dtype=np.int64)
        sign = np.array([value for signs in items for value in signs.values()])
        if not len(items):
            return {}

        def sums(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> tuple[np.ndarray, np.ndarray]:
            """Of every annotator: sum of own sign times the others' signed values, and of the others' squares."""
            signed, squared = sign * values[who], values[who] ** 2
            others = np.bincount(of_item, signed)[of_item] - signed
            weight = np.bincount(of_item, squared)[of_item] - squared
            return np.bincount(who, sign * others), np.bincount(who, weight)

        v = np.ones(len(names))
        for _ in range(_ROUNDS):
            agreed, weight = sums(v)
            v = (v + np.clip(agreed / np.maximum(weight, 1e-9), -1, 1)) / 2
        peers: dict[str, set[str]] = defaultdict(set)
        for signs in items:
            for name in signs:
                if len(peers[name]) <= _MIN_PEERS:  # itself and two others are enough to know
                    peers[name].update((name, *islice(signs, _MIN_PEERS + 1)))
        counted = [place[name] for name in names if len(peers[name]) > _MIN_PEERS]
        if not counted:
            return {}
        answers = np.bincount(who, minlength=len(names))
        level = _weighted_median(v[counted], answers[counted])
        if level <= 0:
            return {}  # no agreement that one could be measured by
        # What the answers tell, in answers whose right value is known.
        information = np.minimum(answers, sums(v)[1] * level**2)
        q = (1 + np.clip(v / level, -1, 1)) / 2
        return {
            names[index]: (float(information[index] * q[index]), float(information[index]))
            for index in counted
        }


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulated, cumulated[-1] / 2)])
