"""Intervals that hold at every look at growing data at the same time, so that one may look as often as one likes. Pure.

With probability 1 - alpha, the true value is inside at all sample sizes n; a usual interval promises that for one n.
"""

import math
from collections.abc import Callable

_TUNED_FOR = 1000  # sample size at which the normal mixture is narrowest


def mixture_half_width(standard_deviation: float, n: int, alpha: float) -> float:
    """Half the width of the asymptotic confidence sequence of a mean of n values with this standard deviation.

    Robbins' normal mixture: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (arXiv 2103.06476), theorem 2.2 and, for
    rho, equation 10. At alpha 0.05 and n 1,000 it is 3.0 standard errors, where an interval for one look has 1.96.
    """
    rho2 = (-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / _TUNED_FOR
    grown = n * rho2 + 1
    return standard_deviation * math.sqrt(2 * grown / (n * n * rho2) * math.log(math.sqrt(grown) / alpha))


def share_bounds(successes: int, n: int, alpha: float) -> tuple[float, float]:
    """Bounds of the probability behind `successes` of `n`, exact at every n.

    All p where the likelihood, mixed over Jeffreys' prior Beta(1/2, 1/2), is less than 1 / alpha times the likelihood
    of p: Ville's inequality (Robbins 1970). (0, 1) where n is 0.
    """
    if not n:
        return 0.0, 1.0
    failures = n - successes
    mixed = (
        math.lgamma(successes + 0.5) + math.lgamma(failures + 0.5) - math.lgamma(n + 1) - math.log(math.pi)
    )
    least = mixed + math.log(alpha)  # log likelihood of the bounds

    def is_inside(p: float) -> bool:
        likelihood = _times_log(successes, p) + _times_log(failures, 1 - p)
        return likelihood > least

    estimate = successes / n
    return _edge(estimate, 0.0, is_inside), _edge(estimate, 1.0, is_inside)


def _times_log(count: int, p: float) -> float:
    return 0.0 if not count else -math.inf if p <= 0 else count * math.log(p)


def _edge(inside: float, outside: float, is_inside: Callable[[float], bool]) -> float:
    if is_inside(outside):
        return outside
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
    return outside
