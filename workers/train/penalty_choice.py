"""What the ridge penalty of a linear model is chosen from, and what the choice is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

# Standard deviations of the prior of a weight, squared: from all but nothing to be learnt, to all but no penalty.
VARIANCES = (0.0003, 0.003, 0.03, 0.3, 3.0)
PARENT_FACTORS = (0.0, 0.25, 0.5, 1.0)  # of a parent's weights, for the mean of the prior
DEFAULT_VARIANCE = 0.3  # where there are too few tasks to choose by


@dataclass(frozen=True, slots=True)
class ChosenPenalty:
    """variance: of the prior of a weight, 1 / the ridge penalty. factor: its mean is this times the parent's weight; 0
    for no use of the parent."""

    variance: float
    embedding_weight: float
    factor: float = 0.0


@dataclass(frozen=True, slots=True)
class HeldOutFit:
    """A fit without some of the examples, with the penalty that was chosen. held_out: the indices of these."""

    held_out: Sequence[int]
    embedding_weight: float
    values: Sequence[Tensor]


def choose_penalty(
    losses: Mapping[ChosenPenalty, float], by_record: Mapping[ChosenPenalty, Tensor]
) -> ChosenPenalty:
    """That of the lowest mean loss on held-out tasks; one with a parent only where its loss is lower than that of the
    best without by more than a standard error of the difference.

    losses: means. by_record: the losses of the same held-out records with each.
    """
    best = min(losses, key=lambda choice: losses[choice])
    without = min((choice for choice in losses if not choice.factor), key=lambda choice: losses[choice])
    gain = by_record[without] - by_record[best]
    error = float(gain.std()) / len(gain) ** 0.5 if len(gain) > 1 else 0.0
    return best if not best.factor or float(gain.mean()) > error else without


def describe_choice(
    best: ChosenPenalty, losses: Mapping[ChosenPenalty, float], *, is_hybrid: bool, has_parent: bool
) -> list[str]:
    """Messages for the log. losses: of all that were tried, on held-out tasks."""

    def described(choice: ChosenPenalty) -> str:
        weight = f" and {choice.embedding_weight:g}" if is_hybrid else ""
        return f"{1 / choice.variance:g}{weight}"

    tried = ", ".join(
        f"{described(choice)}: {loss:.4f}" for choice, loss in losses.items() if choice.factor == best.factor
    )
    chosen = f"ridge penalty {1 / best.variance:g}"
    chosen += f" and embedding weight {best.embedding_weight:g}" if is_hybrid else ""
    chosen += f" around {best.factor:g} times the weights of the parent" if has_parent else ""
    messages = [f"{chosen}, by the loss on held-out tasks ({tried})"]
    if has_parent:
        found = ", ".join(f"{factor:g}: {loss:.4f}" for factor, loss in lowest_by_factor(losses).items())
        messages.append(
            f"the lowest loss on held-out tasks by what the parent's weights are multiplied by: {found}"
        )
    return messages


def lowest_by_factor(losses: Mapping[ChosenPenalty, float]) -> dict[float, float]:
    """By factor of a parent's weights, the lowest loss."""
    factors = sorted({choice.factor for choice in losses})
    return {
        factor: min(loss for choice, loss in losses.items() if choice.factor == factor) for factor in factors
    }


def spread(indices: Sequence[int], most: int) -> Sequence[int]:
    """At most so many of them, from all over."""
    if len(indices) <= most:
        return indices
    return [indices[place * len(indices) // most] for place in range(most)]
