"""What a verifier, a service of the user, replies for items."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from workers.engine.protocol import ModelScore
from workers.errors import RewardError
from workers.schema import ScoreInput
from workers.schema.components import Verifier


@dataclass(frozen=True, slots=True)
class VerifierScore:
    """A verifier's reply for an item. steps: by agent step, which sum to the reward; None where it has none."""

    reward: float
    steps: tuple[float, ...] | None = None

    def score(self, steps: int) -> ModelScore:
        if self.steps is None:
            return ModelScore.at_last_step(self.reward, steps)
        return ModelScore(self.reward, 0.0, 0.0, self.steps)


Verify = Callable[[Verifier, Sequence[ScoreInput]], Awaitable[list[VerifierScore]]]


async def no_verifier(verifier: Verifier, items: Sequence[ScoreInput]) -> list[VerifierScore]:
    raise RewardError(f"{verifier.url} cannot be called from this process.")
