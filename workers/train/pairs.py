"""Pairs as tensors, and which of them each head of the ensemble learns from."""

from collections.abc import Iterable, Sequence

import torch

from workers.errors import RewardError
from workers.objectives import CHOICES, PairTensors
from workers.schema.recipe import Recipe
from workers.text.pairs import Pair, Pairs


def require_usable(pairs: Pairs) -> None:
    """Raises RewardError for fewer than two pairs."""
    if len(pairs) >= 2:
        return
    why = "; ".join(f"{count} {reason}" for reason, count in pairs.skipped.items())
    raise RewardError(
        f"the training split has {len(pairs)} usable comparisons{f' (left out: {why})' if why else ''}; "
        "label at least two, of different tasks, and freeze again.",
        pointer="/snapshot",
    )


def annotator_places(pairs: Iterable[Pair]) -> dict[str, int]:
    return {name: place for place, name in enumerate(sorted({pair.record.annotator for pair in pairs}))}


def pair_tensors(
    pairs: Sequence[Pair], recipe: Recipe, annotators: dict[str, int], device: torch.device
) -> PairTensors:
    given = recipe.annotators == "given"
    reliability = [
        one.record.reliability if given and one.record.reliability is not None else 1.0 for one in pairs
    ]
    return PairTensors(
        choice=torch.tensor([CHOICES[one.record.choice] for one in pairs], device=device),
        margin=torch.tensor([recipe.margins[one.record.strength - 1] for one in pairs], device=device),
        # Below one half an annotator would count backwards; he is taken to guess instead.
        reliability=torch.tensor(reliability, device=device).clamp(min=0.5),
        annotator=torch.tensor([annotators[one.record.annotator] for one in pairs], device=device),
    )


def bootstrap_weights(pairs: int, heads: int, seed: int) -> torch.Tensor:
    """[pairs, heads]: how often each head's own bootstrap sample holds each pair (Poisson, mean 1); 1 for one head."""
    if heads == 1:
        return torch.ones(pairs, 1)
    generator = torch.Generator().manual_seed(seed)
    return torch.poisson(torch.ones(pairs, heads), generator=generator)
