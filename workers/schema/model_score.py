"""What a model scores one item, in its own units. What a rule, a verifier or a judge scores has the same shape."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

PROCESS_AGGREGATIONS = ("mean", "min", "product", "last")  # whose step rewards do not add up to the reward


@dataclass(frozen=True, slots=True)
class ModelScore:
    """One item's score, before it is normalised.

    offset: V_0 for `value`, else 0. std: of `raw` over the ensemble's heads, None for a single head.
    step_rewards, values: by agent_step, a dropped step (see `dropped`) having the reward 0 and the value before it.
    They sum to raw - offset for `value` and `sum`. tokens: rendered; cached_tokens: of those, not encoded again.
    labels: by agent_step, the probability of every label; None without such a head, and at dropped steps.
    criteria: by name, on the criterion's own scale. ood_score: how far it lies from the model's training data, above 1
    out of distribution; None where the model does not know. critique: of a model or judge that writes one.
    """

    raw: float
    offset: float
    std: float | None
    step_rewards: tuple[float, ...]
    values: tuple[float, ...] = ()
    tokens: int = 0
    cached_tokens: int = 0
    truncated: bool = False
    dropped: tuple[int, ...] = ()
    labels: tuple[dict[str, float] | None, ...] | None = None
    criteria: dict[str, float] = field(default_factory=dict)
    ood_score: float | None = None
    critique: str | None = None
    flags: tuple[str, ...] = ()

    @classmethod
    def sum_of_steps(cls, steps: Sequence[float]) -> "ModelScore":
        """The score of a rule: each agent step adds its part, and nothing is uncertain."""
        return cls(math.fsum(steps), 0.0, 0.0, tuple(steps))

    @classmethod
    def at_last_step(
        cls, value: float, steps: int, critique: str | None = None, flags: tuple[str, ...] = ()
    ) -> "ModelScore":
        """The score of the trajectory in one number, which its last step gets."""
        return cls(value, 0.0, 0.0, (*[0.0] * (steps - 1), value), critique=critique, flags=flags)
