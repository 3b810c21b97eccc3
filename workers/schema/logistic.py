"""From a difference of rewards to a chance."""

import math


def logistic(x: float) -> float:
    """1 / (1 + exp(-x)), in [0, 1], without overflow."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
