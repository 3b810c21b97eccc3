"""Tests of a share that may be looked at after every trajectory, without more false alarms for it.

A test is an e-process: under the hypothesis its expectation is at most 1 whenever it is looked at, so it passes
1 / alpha at any time with a chance of at most alpha (Ville's inequality; Ramdas et al. 2023, arXiv 2210.01948).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import betainc, betaln

ALPHA = 0.01  # chance of a false alarm of one agent version and one score, over all looks together
_PRIOR = (0.5, 0.5)  # of the mixture
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class ShareCount:
    """bad of `trials` trajectories."""

    bad: int = 0
    trials: int = 0

    @property
    def share(self) -> float | None:
        return self.bad / self.trials if self.trials else None

    def __add__(self, other: "ShareCount") -> "ShareCount":
        return ShareCount(self.bad + other.bad, self.trials + other.trials)


def upper_bound(reference: ShareCount, alpha: float) -> float:
    """Of the share of a reference that may still grow: too low at any time with a chance of at most alpha."""
    return share_interval(reference, alpha=alpha)[1]


def log_e_value(count: ShareCount, bound: float) -> float:
    """Of the hypothesis that each trajectory is bad with a chance of at most `bound`: the logarithm of the mean
    likelihood of larger shares (Jeffreys' prior above the bound) over that of the bound."""
    good = count.trials - count.bad
    bound = min(max(bound, _TINY), 1 - _TINY)
    above = 1 - float(betainc(_PRIOR[0] + count.bad, _PRIOR[1] + good, bound))
    before = 1 - float(betainc(*_PRIOR, bound))
    if above <= 0 or before <= 0:
        return -math.inf
    mixture = float(betaln(_PRIOR[0] + count.bad, _PRIOR[1] + good) - betaln(*_PRIOR))
    return mixture + math.log(above / before) - count.bad * math.log(bound) - good * math.log1p(-bound)


def is_worse(count: ShareCount, reference: ShareCount, *, alpha: float = ALPHA) -> bool:
    """Whether the share is larger than the reference's for sure: half of alpha is for the bound, half for the test."""
    return drift_log_e_value(count, reference, alpha=alpha) >= math.log(2 / alpha)


def drift_log_e_value(count: ShareCount, reference: ShareCount, *, alpha: float = ALPHA) -> float:
    return log_e_value(count, upper_bound(reference, alpha / 2)) if count.trials else 0.0


def share_interval(count: ShareCount, *, alpha: float = 0.05) -> tuple[float, float]:
    """Of a share, at all times together: the values that a mixture over all shares does not reject (Robbins 1970)."""
    if not count.trials:
        return 0.0, 1.0
    good = count.trials - count.bad
    mixture = float(betaln(_PRIOR[0] + count.bad, _PRIOR[1] + good) - betaln(*_PRIOR))
    limit = mixture - math.log(1 / alpha)

    def rejected(value: float) -> bool:
        value = min(max(value, _TINY), 1 - _TINY)
        return count.bad * math.log(value) + good * math.log1p(-value) < limit

    share = count.bad / count.trials
    return _edge(rejected, 0.0, share), _edge(rejected, 1.0, share)


def _edge(rejected: Callable[[float], bool], outside: float, inside: float) -> float:
    if not rejected(outside):
        return outside
    for _ in range(50):
        middle = (outside + inside) / 2
        if rejected(middle):
            outside = middle
        else:
            inside = middle
    return inside
