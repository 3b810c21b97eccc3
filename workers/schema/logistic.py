"""From a difference of rewards to a chance."""

import math
from collections.abc import Sequence


def logistic(x: float) -> float:
    """1 / (1 + exp(-x)), in [0, 1], without overflow."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def softmax(logits: Sequence[float]) -> list[float]:
    """Chances that add up to 1."""
    highest = max(logits)
    weights = [math.exp(logit - highest) for logit in logits]
    return [weight / math.fsum(weights) for weight in weights]
