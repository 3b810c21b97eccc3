"""How far a trajectory lies from a model's training data, as a number to pay."""

from workers.errors import RewardError
from workers.schema.components import Novelty
from workers.schema.model_score import ModelScore


def novelty_score(part: Novelty, score: ModelScore, steps: int, index: int) -> ModelScore:
    """d / (1 + d), 0 to 1, at the last step. Raises RewardError at `/<index>` where the model does not know d."""
    if score.ood_score is None:
        raise RewardError(
            f"{part.model} does not know how far a trajectory lies from its training data: it was trained on fewer "
            "than 50 trajectories, or elsewhere. Train it on more, or remove the component.",
            pointer=f"/{index}",
        )
    return ModelScore.at_last_step(score.ood_score / (1 + score.ood_score), steps)
