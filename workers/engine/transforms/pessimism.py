"""The lower confidence bound of an ensemble."""

from workers.engine.item_score import ItemScore
from workers.errors import RewardError
from workers.schema.transforms import Pessimism


def pessimism(reward: float, std: float, k: float) -> float:
    """reward - k * std, at most the reward; the lower confidence bound of an ensemble (arXiv 2310.02743)."""
    return reward - k * std


def apply(transform: Pessimism, reward: float, score: ItemScore) -> float:
    """Raises RewardError without an ensemble."""
    if score.std is None:
        raise RewardError(
            "pessimism needs an ensemble: a model of this endpoint has a single head, so it has no standard deviation. "
            "Train it with `ensemble` above 1, or remove the transform."
        )
    return pessimism(reward, score.std, transform.k)
