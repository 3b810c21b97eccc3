"""The implicit process reward of a policy and its reference model (Yuan et al. 2024, arXiv 2412.01981; PRIME, arXiv
2502.01456): a step's reward is beta sum_t (log pi(y_t) - log pi_ref(y_t)) over the tokens that the agent wrote in it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from workers.models.backbones.base import Backbone
from workers.models.backbones.language_decoder import LanguageDecoder
from workers.models.states import Aggregation, RewardFrom, States, join
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
        steps = [step_rewards(item, self.beta * (mine - theirs)) for item, mine, theirs in found]
        return join(steps, [0] * len(batch))

    def cost(self, batch: Sequence[AgentSpans]) -> int:
        return self.policy.cost(batch) + self.reference.cost(batch)

    def work(self, batch: Sequence[AgentSpans]) -> float:
        return self.policy.work(batch) + self.reference.work(batch)

    def require_exact(self) -> None:
        for decoder in (self.policy, self.reference):
            decoder.require_exact()


class TrainedPolicy(Backbone):
    """The same while its policy is trained. states: of width 1, as of `ImplicitProcess`.

    reference: a frozen copy of what the policy begins as; None with adapters, where it is the policy with these turned
    off, until `finish_training` merges them. Its log-probabilities of a trajectory never change, so they are computed
    once, for each trajectory alone: what else is in a batch differs in a resumed training, and may not move them.
    """

    kind = ImplicitProcess.kind
    width = 1

    def __init__(
        self,
        policy: LanguageDecoder,
        reference: LanguageDecoder | None,
        *,
        beta: float,
        load_reference: Callable[[], LanguageDecoder],
    ) -> None:
        super().__init__()
        self.policy, self.reference, self.beta = policy, reference, beta
        assert isinstance(policy.renderer, AgentSpanRenderer)
        self.renderer: AgentSpanRenderer = policy.renderer
        self._load_reference = load_reference
        _turn_dropout_off(policy)  # as DPO does: the reference model has none
        self._known: dict[bytes, Tensor] = {}  # by key of an item, on the CPU

    @property
    def in_bfloat16(self) -> bool:
        return self.policy.in_bfloat16

    @in_bfloat16.setter
    def in_bfloat16(self, value: bool) -> None:
        self.policy.in_bfloat16 = value
        if self.reference is not None:
            self.reference.in_bfloat16 = value

    @property
    def shares(self) -> bool:
        return True

    @property
    def device(self) -> Any:
        return self.policy.device

    def train(self, mode: bool = True) -> "TrainedPolicy":
        super().train(mode)
        if self.reference is not None:
            self.reference.eval()
        return self

    def states(self, batch: Sequence[AgentSpans], *, cache: Any = None) -> States:
        """cache: not used."""
        found = zip(batch, self.policy.log_probs(batch), self._reference_log_probs(batch), strict=True)
        steps = [step_rewards(item, self.beta * (mine - theirs)) for item, mine, theirs in found]
        return join(steps, [0] * len(batch))

    def cost(self, batch: Sequence[AgentSpans]) -> int:
        return self.policy.cost(batch)

    def work(self, batch: Sequence[AgentSpans]) -> float:
        return self.policy.work(batch)

    def scoring(self, aggregation: Aggregation, reward_from: RewardFrom) -> tuple[Aggregation, RewardFrom]:
        """The log-ratio of a whole is the sum of those of its steps."""
        return "sum", "state"

    def blocks(self) -> Sequence[nn.Module]:
        return self.policy.blocks()

    def finish_training(self) -> None:
        if self.reference is None:
            self.reference = self._load_reference()
            self.reference.in_bfloat16 = self.policy.in_bfloat16
        self.policy.finish_training()

    @torch.no_grad()
    def _reference_log_probs(self, batch: Sequence[AgentSpans]) -> list[Tensor]:
        """By item, [tokens the agent wrote]."""
        unknown = {item.key: item for item in batch if item.key not in self._known}
        if unknown:
            with self._reference_model() as reference:
                for key, item in unknown.items():
                    (found,) = reference.log_probs([item])
                    self._known[key] = found.cpu()
        return [self._known[item.key].to(self.device) for item in batch]

    @contextmanager
    def _reference_model(self) -> Iterator[LanguageDecoder]:
        if self.reference is not None:
            yield self.reference
            return
        with self.policy.without_adapters():
            yield self.policy


def _turn_dropout_off(decoder: LanguageDecoder) -> None:
    for module in decoder.modules():
        attention: Any = module
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(getattr(module, "attention_dropout", None), float):
            attention.attention_dropout = 0.0


def step_rewards(item: AgentSpans, scaled_ratios: Tensor) -> tuple[Tensor, Tensor]:
    """[1], 0 before the first step, and [steps, 1]. scaled_ratios: [tokens the agent wrote], beta log(pi / pi_ref)."""
    lengths = [end - start for start, end in item.kept_spans]
    sums = [part.sum() for part in scaled_ratios.split(lengths)]
    return scaled_ratios.new_zeros(1), torch.stack(sums).unsqueeze(1)
