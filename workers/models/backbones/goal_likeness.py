"""How much pictures are like a goal that a text describes (Rocamonde et al. 2023, arXiv 2310.12921)."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.errors import RewardError
from workers.models.backbones.base import Backbone
from workers.models.backbones.dual_encoder import DualEncoder
from workers.models.cache.embeddings import ChunkCache
from workers.models.states import Aggregation, RewardFrom, States, join
from workers.schema.goal_likeness import GoalTexts
from workers.text.newest_pictures import NewestPictureRenderer, NewestPictures

_LEAST_SPREAD = 1e-6
# Times the learning rate: few numbers, each of which every pair moves.
_NUMBERS_RATE = 10.0


def goal_likeness(pictures: Tensor, goal: Tensor, baseline: Tensor | None, alpha: Tensor | float) -> Tensor:
    """1 - |alpha proj_L(s) + (1 - alpha) s - g|^2 / 2 of pictures s, [n] in -1..1, where L is the line through the
    baseline b and the goal g (definition 1 of the paper). At alpha 0 the cosine of s and g.

    pictures: [n, size]; goal, baseline: [size]; all of length 1. alpha: 0 to 1, not read without a baseline.
    """
    away = pictures - goal
    if baseline is not None:
        along = functional.normalize(goal - baseline, dim=0)
        away = alpha * (away @ along).unsqueeze(-1) * along + (1 - alpha) * away
    return (1 - away.square().sum(-1) / 2).clamp(-1, 1)


class GoalLikeness(Backbone):
    """Its states are rewards, of width 1: the likeness of the newest picture after each agent step, times a scale.

    is_component: whether its steps add up, see `looking_for`. rank: of what is added to a picture's embedding before
    its length is made 1 again, a linear map of it (as LoRA, and CLIP-Adapter, arXiv 2110.04544); 0 adds nothing. It,
    alpha and the scale are what comparisons train.
    """

    kind = "goal-likeness"
    width = 1
    sets_heads = True

    def __init__(
        self,
        encoder: DualEncoder,
        renderer: NewestPictureRenderer,
        texts: GoalTexts,
        *,
        rank: int = 0,
    ) -> None:
        super().__init__()
        self.encoder, self.texts, self.rank = encoder, texts, rank
        self.renderer: NewestPictureRenderer = renderer
        names = [texts.goal, *([texts.baseline] if texts.baseline else [])]
        embeddings = encoder.text_embeddings(names)
        self.goal: Tensor
        self.baseline: Tensor | None
        self.register_buffer("goal", embeddings[0], persistent=False)
        self.register_buffer("baseline", embeddings[1] if texts.baseline else None, persistent=False)
        if self.baseline is not None and torch.allclose(self.goal, self.baseline, atol=1e-5):
            raise RewardError(
                f"the model reads goal and baseline ({texts.goal[:60]!r}, {texts.baseline[:60]!r}) alike, so there is "
                "no direction from one to the other; describe them in other words.",
                pointer="/baseline",
            )
        self.alpha = nn.Parameter(torch.tensor(float(texts.alpha)))
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.down: nn.Parameter | None = None
        self.up: nn.Parameter | None = None
        if rank:
            self.down = nn.Parameter(torch.randn(encoder.size, rank) / math.sqrt(encoder.size))
            self.up = nn.Parameter(torch.zeros(rank, encoder.size))
        self.embedded: ChunkCache | None = None  # in training
        self.is_component = False

    @property
    def clipped_alpha(self) -> Tensor:
        """0 to 1; outside of it the gradient still leads back."""
        return self.alpha + (self.alpha.clamp(0, 1) - self.alpha).detach()

    def trained_tensors(self) -> dict[str, Tensor]:
        """What comparisons train, by name."""
        return {name: tensor for name, tensor in self.named_parameters() if not name.startswith("encoder.")}

    def looking_for(self, texts: GoalTexts) -> "GoalLikeness":
        """The same encoders as a component of an endpoint: -1 to 1, and its steps add up. Of the own goal and baseline
        with what was learnt of pictures; of any other as they were imported."""
        is_own = (texts.goal, texts.baseline) == (self.texts.goal, self.texts.baseline)
        found = GoalLikeness(self.encoder, self.renderer, texts, rank=self.rank if is_own else 0)
        if is_own:
            own = self.trained_tensors()
            found.load_state_dict({name: own[name] for name in ("down", "up") if name in own}, strict=False)
        found.is_component = True
        return found.to(self.device).eval().requires_grad_(False)

    def scoring(self, aggregation: Aggregation, reward_from: RewardFrom) -> tuple[Aggregation, RewardFrom]:
        if self.texts.pictures == "last":
            return "value", "state"
        return ("sum" if self.is_component else "mean"), "state"

    def likeness(self, batch: Sequence[NewestPictures], *, cache: Any = None) -> list[Tensor]:
        """By item, [pictures]: -1 to 1."""
        pictures = [picture for item in batch for picture in item.pictures]
        embeddings = self.encoder.picture_embeddings(pictures, self.embedded if cache is None else cache)
        if self.down is not None and self.up is not None:
            embeddings = functional.normalize(embeddings + embeddings @ self.down @ self.up, dim=-1)
        found = goal_likeness(embeddings, self.goal, self.baseline, self.clipped_alpha)
        return list(found.split([len(item.pictures) for item in batch]))

    def states(self, batch: Sequence[NewestPictures], *, cache: Any = None) -> States:
        """cache: of embeddings, by the content of a picture."""
        scale = self.log_scale.exp()
        found = []
        for item, values in zip(batch, self.likeness(batch, cache=cache), strict=True):
            rows = (scale * values).unsqueeze(1)
            first = rows.new_zeros(1) if item.before is None else rows[item.before]
            steps = rows[[place for place in item.reads if place is not None]]
            is_mean = self.is_component and self.texts.pictures == "each"
            found.append((first, steps / len(steps) if is_mean else steps))
        return join(found, [0] * len(batch))

    def cost(self, batch: Sequence[NewestPictures]) -> int:
        return sum(item.tokens for item in batch)

    def new_cache(self, max_bytes: int) -> ChunkCache:
        return ChunkCache(max_bytes)

    def rate_factor(self, name: str) -> float:
        return _NUMBERS_RATE if name in ("alpha", "log_scale") else 1.0

    @torch.no_grad()
    def prepare(self, rendered: Sequence[Any]) -> None:
        """The scale at which rewards of the training trajectories have the standard deviation 1: cosines differ by
        hundredths, which a logistic loss would hardly see."""
        values = self.likeness(rendered)
        each = [
            found[[place for place in item.reads if place is not None]]
            for item, found in zip(rendered, values, strict=True)
        ]
        rewards = torch.stack(
            [found[-1] if self.texts.pictures == "last" else found.mean() for found in each]
        )
        spread = float(rewards.std(correction=0))
        if spread > _LEAST_SPREAD:
            self.log_scale.fill_(-math.log(spread))

    def inherit(self, parent: Backbone) -> None:
        """What a parent of the same goal has learnt; its adapter where it is of the same rank."""
        if not isinstance(parent, GoalLikeness) or parent.texts.goal != self.texts.goal:
            raise RewardError("the parent looks for another goal than this model.", pointer="/parent")
        if parent.rank not in (0, self.rank):
            raise RewardError(
                f"lora_rank = {self.rank}, but the parent was trained with lora_rank = {parent.rank}; use the same.",
                pointer="/lora_rank",
            )
        self.load_state_dict(parent.trained_tensors(), strict=False)
