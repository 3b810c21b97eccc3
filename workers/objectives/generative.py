"""A critique, then a verdict: a language model judges in words, and how sure it is is read off its next word.

Of a pair it is asked which run is better, and of a run on its own whether it is good. With z the difference of two
words' log-probabilities after the critique c (A and B; good and bad), and y the side that people preferred:

    pair         -log p(y | a, b, c)          written for both orders
    run          -log sigma(z_y - z_other)    Bradley and Terry (1952) on the verdicts about the two
    rating       -r log sigma(z) - (1 - r) log sigma(-z)    where someone rated it r of 0 to 1
    critique     -mean_t log p(c_t | c_<t)    where someone wrote one

A question may name a principle that alone is to be judged by; by the opposite of one, y is the other side (SALMON, Sun
et al. 2023, arXiv 2310.05910).

Critics that write first: Ankner et al. 2024 (arXiv 2408.11791); verdicts read off the next token: Zhang et al. 2024
(arXiv 2408.15240). Then the judge's own critiques, by whether their verdict was right: GRPO (arXiv 2402.03300) as
RM-R1 (arXiv 2505.02387) does, made stable as R1-Reward does (arXiv 2505.02835).
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

_LEAST_SPREAD = 1e-4


def pair_loss(right: Tensor, wrong: Tensor, smoothing: Tensor | float = 0.0) -> Tensor:
    """[n] log-probabilities of the words for the better side and for the other; the chance of a slip of each. [n]"""
    return -(1 - smoothing) * right - smoothing * wrong


def run_loss(
    better: Tensor, other: Tensor, smoothing: Tensor | float = 0.0, *, centring: float = 0.0
) -> Tensor:
    """[n] verdicts z on the better run and on the other; the chance of a slip of each. [n]"""
    z = better - other
    return (
        -(1 - smoothing) * logsigmoid(z) - smoothing * logsigmoid(-z) + centring * (better + other).square()
    )


def rating_loss(verdicts: Tensor, places: Tensor) -> Tensor:
    """[n] verdicts z, and the place of each rating on its scale, 0 to 1: the cross-entropy of the probability of
    "good". [n]"""
    return -places * logsigmoid(verdicts) - (1 - places) * logsigmoid(-verdicts)


def critique_loss(log_probs: Tensor, mask: Tensor) -> Tensor:
    """[n, tokens] log-probabilities of what was written, and 1 for every token of it. [n], 0 where nothing was."""
    return -(log_probs * mask).sum(-1) / mask.sum(-1).clamp(min=1)


def advantages(rewards: Tensor, *, most: float = 3.0) -> Tensor:
    """[prompts, samples] of one prompt each: (reward - mean) / standard deviation within the prompt's samples.

    A prompt whose samples all got the same teaches nothing: 0. What lies more than `most` standard deviations of all
    from their mean is left out, as 0 (R1-Reward's advantage filter).
    """
    spread = rewards.std(-1, correction=0, keepdim=True)
    found = torch.where(
        spread > _LEAST_SPREAD,
        (rewards - rewards.mean(-1, keepdim=True)) / spread.clamp(min=_LEAST_SPREAD),
        torch.zeros_like(rewards),
    )
    wide = found.std(correction=0)
    if not wide > _LEAST_SPREAD:
        return found
    return torch.where(((found - found.mean()) / wide).abs() <= most, found, torch.zeros_like(found))


def reinforce_loss(
    log_probs: Tensor,
    sampled: Tensor,
    reference: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    clip: float = 0.2,
    pre_clip: float = 1000.0,
    kl: float = 0.0,
) -> Tensor:
    """[n, tokens] log-probabilities now, when sampled, and of the model at the start; [n] advantages. [n, tokens]

    Each token's ratio is bounded before it is exponentiated, |log ratio| <= log(pre_clip), so that no token's ratio
    explodes where its advantage is negative (R1-Reward's pre-clip), then clipped as in PPO. The divergence from the
    start is Schulman's estimator exp(d) - d - 1 with d = reference - now. Every token counts the same, however long its
    critique is (DAPO, arXiv 2503.14476): where the tokens of each are averaged, right critiques grow ever shorter.
    """
    bound = math.log(pre_clip)
    ratio = (log_probs - sampled).clamp(-bound, bound).exp()
    weight = advantages.unsqueeze(-1)
    gain = torch.minimum(ratio * weight, ratio.clamp(1 - clip, 1 + clip) * weight)
    difference = (reference - log_probs).clamp(-10, 10)
    divergence = difference.exp() - difference - 1
    return -(gain - kl * divergence) * mask


def ordered(better: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """[pairs, samples] verdicts z after several critiques of the better trajectory and of the other. [pairs, samples]
    twice: how often each of the better is above one of the other, and each of the other below one of the better; equal
    ones count one half. It is what a pointwise judge is rewarded for (J1, Whitehouse et al. 2025, arXiv 2505.10320)."""
    wins = (better.unsqueeze(-1) > other.unsqueeze(-2)).float()
    wins = wins + 0.5 * (better.unsqueeze(-1) == other.unsqueeze(-2)).float()
    return wins.mean(-1), wins.mean(-2)


def reward(is_right: Tensor, agrees: Tensor, is_formed: Tensor, *, consistency: float = 0.5) -> Tensor:
    """R = right (1 + consistency * agrees) + formed / 2 (R1-Reward's). [samples]

    right, formed: 0 or 1; formed where the verdict came on its own, within the tokens there are, and after a critique
    where the judge was taught to write one. agrees: 0 to 1. There
    another model says whether critique and verdict agree; here it is the share of the judge's verdicts on the same pair
    in the other order that name the same run.
    """
    return is_right * (1 + consistency * agrees) + 0.5 * is_formed
