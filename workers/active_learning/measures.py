"""What can be said for asking about an item: a pure function each, of a pool of items. Higher: ask sooner."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from workers.active_learning.posterior import Numbers, Posterior, sigmoid

Places = NDArray[np.int64]
_NEAR = 10  # neighbours whose distance says how wide a kernel is
_MOST_TRAFFIC = 2000
_MOST_TARGETS = 2000
_LEAST, _FAR = 1e-12, 6.0  # of a variance; standard deviations beyond which a sign is settled
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """Items by the places of their trajectories in `features`, [trajectories, d], on a common scale.

    differences: [comparisons, d] of all pairs within items, a trajectory alone being compared with the mean one.
    owner: [comparisons], the item of each. item_features: [items, 2 d], the mean and the standard
    deviation over an item's trajectories: the same in every order.
    """

    items: Sequence[tuple[int, ...]]
    features: Numbers
    differences: Numbers
    owner: Places
    item_features: Numbers

    def mean_per_item(self, comparisons: Numbers) -> Numbers:
        """[items] of [comparisons]: the mean of each item's."""
        counts = np.bincount(self.owner, minlength=len(self.items))
        return np.bincount(self.owner, weights=comparisons, minlength=len(self.items)) / counts


def make_candidate_pool(items: Sequence[tuple[int, ...]], features: Numbers) -> CandidatePool:
    """items: of at least one trajectory each."""
    middle = features.mean(0) if len(features) else np.zeros(features.shape[1])
    rows, owner = [], []
    for place, item in enumerate(items):
        if len(item) == 1:
            rows.append(features[item[0]] - middle)
            owner.append(place)
        for first, other in combinations(item, 2):
            rows.append(features[first] - features[other])
            owner.append(place)
    width = features.shape[1]
    differences = np.array(rows) if rows else np.zeros((0, width))
    item_features = np.array(
        [np.concatenate([features[list(item)].mean(0), features[list(item)].std(0)]) for item in items]
    )
    return CandidatePool(
        items, features, differences, np.array(owner, dtype=np.int64), item_features.reshape(-1, 2 * width)
    )


def uncertainty(pool: CandidatePool, posterior: Posterior) -> Numbers:
    """[items]: the standard deviation, over heads, of the difference between an item's trajectories, in logits."""
    return pool.mean_per_item(posterior.spread(pool.differences))


def information_gain(pool: CandidatePool, posterior: Posterior) -> Numbers:
    """[items], nats: what an answer is expected to tell of the head. See `bald`."""
    return pool.mean_per_item(bald(posterior.margin(pool.differences), posterior.spread(pool.differences)))


def bald(margin: Numbers, spread: Numbers) -> Numbers:
    """H[y] - E[H[y | w]] of a comparison whose margin is N(margin, spread^2) over heads, elementwise, in nats.

    Bayesian active learning by disagreement, Houlsby et al. (arXiv 1112.5745), eq. 2, by Gauss-Hermite quadrature:
    to 0.01 where the spread is below 8 logits, and somewhat too much where it is larger.
    """
    heads = sigmoid(margin[:, None] + spread[:, None] * _NODES)
    return np.maximum(entropy(heads @ _NODE_WEIGHTS) - entropy(heads) @ _NODE_WEIGHTS, 0.0)


def predictive_gain(
    differences: Numbers, margin: Numbers, variance: Numbers, covariance: Numbers, weights: Numbers
) -> Numbers:
    """[n], nats: what an answer to each comparison is expected to tell of which side is better in all of them.

    Expected predictive information gain (EPIG; Bickford Smith et al., arXiv 2304.08151, eq. 5) about the sign of a
    target's margin, without the noise of an answer to it, to the second order in their correlation: half its square.
    BALD asks what is told of the head, also in directions that nothing scored lies in. weights: [n], how much each
    counts as a target.
    """
    if not len(differences) or not weights.sum() > 0:
        return np.zeros(len(differences))
    spread = np.sqrt(np.maximum(variance, _LEAST))
    scale = 1 / (1 + np.pi / 8 * variance)  # of the slope of a mean answer, MacKay (1992)
    chance = sigmoid(margin * np.sqrt(scale))
    step = max(1, len(differences) // _MOST_TARGETS)
    # Slope of the chance that a target's margin is positive, over the deviation of its being so.
    z = np.clip(margin[::step] / spread[::step], -_FAR, _FAR)
    above = np.array([0.5 * math.erfc(-score / math.sqrt(2)) for score in z])
    told = np.exp(-(z**2)) / (2 * np.pi * np.maximum(variance[::step], _LEAST) * above * (1 - above))
    told *= weights[::step] / weights[::step].sum()
    targets = differences[::step]
    through = covariance @ ((targets.T * told) @ targets) @ covariance
    squares = np.einsum("nd,nd->n", differences @ through, differences)
    return 0.5 * scale * chance * (1 - chance) * np.maximum(squares, 0.0)


def entropy(chance: Numbers) -> Numbers:
    """Of a coin, elementwise, in nats."""
    inside = np.clip(chance, 1e-300, 1 - 1e-16)
    return -inside * np.log(inside) - (1 - inside) * np.log1p(-inside)


def novelty(item_features: Numbers, known: Numbers) -> Numbers:
    """[n] of [n, d] and [m, d]: the distance to the nearest that was asked about; all alike where none was.

    What k-center picks by: Sener & Savarese (arXiv 1708.00489).
    """
    if not len(known):
        return np.full(len(item_features), np.inf)
    nearest = np.full(len(item_features), np.inf)
    for start in range(0, len(known), 256):  # so that memory does not grow with what is known
        nearest = np.minimum(nearest, _distances(item_features, known[start : start + 256]).min(1))
    return nearest


def representativeness(pool: CandidatePool, traffic: Numbers) -> Numbers:
    """[items], 0 to 1: how densely what is really scored lies about an item's trajectories.

    traffic: [m, d], features of what is scored. The mean of exp(-distance^2 / 2 h^2) over it, h the median distance
    of traffic to its tenth neighbour. Information density, Settles & Craven (2008), sec. 3.
    """
    if not len(traffic) or not len(pool.items):
        return np.ones(len(pool.items))
    sample = traffic[:: max(1, len(traffic) // _MOST_TRAFFIC)]
    within = np.sort(_distances(sample, sample), axis=1)
    width = float(np.median(within[:, min(_NEAR, len(sample) - 1)])) or 1.0
    of_each = np.concatenate(
        [
            np.exp(-(_distances(pool.features[start : start + 1024], sample) ** 2) / (2 * width**2)).mean(1)
            for start in range(0, len(pool.features), 1024)
        ]
    )
    return np.array([of_each[list(item)].mean() for item in pool.items])


def _distances(a: Numbers, b: Numbers) -> Numbers:
    """[n, m], Euclidean."""
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1)[None] - 2 * a @ b.T
    return np.sqrt(np.maximum(squares, 0.0))
