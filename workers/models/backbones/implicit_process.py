"""The implicit process reward of a policy and its reference model (Yuan et al. 2024, arXiv 2412.01981; PRIME, arXiv
2502.01456): a step's reward is beta sum_t (log pi(y_t) - log pi_ref(y_t)) over the tokens that the agent wrote in it.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from workers.models.backbones.base import Backbone
from workers.models.backbones.language_decoder import LanguageDecoder
from workers.models.states import States, join
from workers.text import AgentSpanRenderer, AgentSpans


class ImplicitProcess(Backbone):
    """Its states are the rewards of steps, of width 1."""

    kind = "implicit-process"
    width = 1

    def __init__(self, policy: LanguageDecoder, reference: LanguageDecoder, *, beta: float) -> None:
        super().__init__()
        self.policy, self.reference, self.beta = policy, reference, beta
        assert isinstance(policy.renderer, AgentSpanRenderer)
        self.renderer: AgentSpanRenderer = policy.renderer

    @property
    def in_bfloat16(self) -> bool:
        return self.policy.in_bfloat16

    @in_bfloat16.setter
    def in_bfloat16(self, value: bool) -> None:
        self.policy.in_bfloat16 = self.reference.in_bfloat16 = value

    @property
    def shares(self) -> bool:
        return True

    def states(self, batch: Sequence[AgentSpans], *, cache: Any = None) -> States:
        """cache: not used."""
        found = zip(batch, self.policy.log_probs(batch), self.reference.log_probs(batch), strict=True)
        return join([self._steps(item, mine - theirs) for item, mine, theirs in found], [0] * len(batch))

    def cost(self, batch: Sequence[AgentSpans]) -> int:
        return self.policy.cost(batch) + self.reference.cost(batch)

    def work(self, batch: Sequence[AgentSpans]) -> float:
        return self.policy.work(batch) + self.reference.work(batch)

    def require_exact(self) -> None:
        for decoder in (self.policy, self.reference):
            decoder.require_exact()

    def _steps(self, item: AgentSpans, ratios: Tensor) -> tuple[Tensor, Tensor]:
        """ratios: [tokens] of log-probabilities."""
        lengths = [end - start for start, end in item.kept_spans]
        sums = [part.sum() for part in ratios.split(lengths)]
        steps = ratios.new_zeros(len(sums), 1)
        for place, value in enumerate(sums):
            steps[place, 0] = self.beta * value
        return ratios.new_zeros(1), steps
