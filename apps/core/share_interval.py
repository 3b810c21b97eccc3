"""The interval of a share, where its units are taken as independent."""

from math import sqrt


def wilson_interval(count: float, of: int) -> tuple[float, float]:
    """95 % of a share (Wilson 1927), which holds for few and for extremes too."""
    if not of:
        return 0.0, 1.0
    z, p = 1.96, count / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)
