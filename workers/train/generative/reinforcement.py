"""Reinforcement of a generative model by whether its own verdicts are right: GRPO on pairs and single trajectories.

Every token that the model drew has its gradient: of its critique, its end token, and its verdict on a pair. A critique
of a single trajectory is rewarded for how often its score lies on the right side of those of the other trajectory; the
verdict after it is not drawn, and learns from people's comparisons directly.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.models.generative.writer import LineLogProbs, Writer, micro_batches
from workers.objectives.generative import reinforce_loss, run_loss
from workers.schema.recipe import Recipe
from workers.train.generative.adapters import ReferenceModel
from workers.train.generative.losses import QuestionLosses
from workers.train.generative.questions import Question, pair_micro_batches
from workers.train.generative.sampling import Sampled, log_probs_of, odds_of, sample, with_verdict

PASSES = 2  # over what was sampled


@dataclass(frozen=True, slots=True)
class Reinforcement:
    """reference: None where the divergence from it costs nothing."""

    writer: Writer
    recipe: Recipe
    losses: QuestionLosses
    reference: ReferenceModel | None

    def sampled(self, batch: Sequence[Question], micro_tokens: int) -> tuple[Sampled, Tensor]:
        """What the model draws, and the reference model's log-probabilities of it, as `Sampled.old`."""
        self.writer.language.eval()
        found = sample(self.writer, batch, self.recipe, micro_tokens, writes=self.losses.writes)
        if self.reference is None:
            return found, found.old
        with self.reference.active() as writer:
            return found, log_probs_of(writer, found, micro_tokens)

    def backward(
        self, batch: Sequence[Question], sampled: Sampled, reference: Tensor, micro_tokens: int
    ) -> dict[str, float]:
        """Adds the gradient: {loss, clipped: the share of tokens that were clipped, divergence: the mean from the
        reference}."""
        self.writer.language.train()
        sums: dict[str, float] = defaultdict(float)
        for part in micro_batches(sampled.lines[: sampled.pairs], micro_tokens):
            read = self.writer.read([sampled.lines[index] for index in part])
            self._gain(part, read, sampled, reference, sums).backward()
        if self.recipe.reinforce_singles:
            for part in _couples(sampled, self.recipe.reinforce_samples, micro_tokens):
                read = self.writer.read([sampled.lines[index] for index in part])
                loss = self._gain(part, read, sampled, reference, sums)
                (loss + self._run_loss(part, read, batch, sampled)).backward()
        else:
            for some in pair_micro_batches(batch, micro_tokens):
                runs = self.losses.taught_runs([batch[index] for index in some])
                (self.recipe.pointwise_weight * runs.sum() / len(batch)).backward()
        return dict(sums)

    def _gain(
        self,
        part: Sequence[int],
        read: LineLogProbs,
        sampled: Sampled,
        reference: Tensor,
        sums: dict[str, float],
    ) -> Tensor:
        device, places = self.writer.device, list(part)
        lines = [sampled.lines[index] for index in part]
        now, mask = with_verdict(
            read.log_probs,
            odds_of(read, self.writer, lines),
            sampled.says_a[places],
            [len(line.targets) for line in lines],
            sampled.has_verdict[places],
            sampled.width,
        )
        old, start = sampled.old[places].to(device), reference[places].to(device)
        loss = reinforce_loss(
            now,
            old,
            start,
            sampled.advantages[places].to(device),
            mask,
            clip=self.recipe.reinforce_clip,
            kl=self.recipe.reinforce_kl,
        )
        loss = loss.sum() / sampled.tokens
        sums["loss"] += float(loss.detach())
        with torch.no_grad():
            moved = ((now - old).exp() - 1).abs() > self.recipe.reinforce_clip
            sums["clipped"] += float((moved * mask).sum()) / sampled.tokens
            difference = (start - now).clamp(-10, 10)
            sums["divergence"] += float(((difference.exp() - difference - 1) * mask).sum()) / sampled.tokens
        return loss

    def _run_loss(
        self, part: Sequence[int], read: LineLogProbs, batch: Sequence[Question], sampled: Sampled
    ) -> Tensor:
        """Of what people prefer, after the model's critiques. part: better ones, then as many others."""
        good, poor = read.words(self.writer.renderer.of_run)
        z, half = good - poor, len(part) // 2
        samples = self.recipe.reinforce_samples
        items = [batch[(index - sampled.pairs) // (2 * samples)] for index in part[:half]]
        smoothing = self.losses.smoothing(items)
        loss = run_loss(z[:half], z[half:], smoothing, centring=self.recipe.centring)
        return self.recipe.pointwise_weight * loss.sum() / (len(batch) * samples)


def _couples(sampled: Sampled, samples: int, tokens: int) -> Iterator[list[int]]:
    """Places of samples about better trajectories, then of the other ones of the same pairs, that are read together."""
    firsts = [
        place
        for start in range(sampled.pairs, len(sampled.lines), 2 * samples)
        for place in range(start, start + samples)
    ]
    longest = [
        max((sampled.lines[place], sampled.lines[place + samples]), key=lambda line: len(line.ids))
        for place in firsts
    ]
    for part in micro_batches(longest, tokens // 2):
        yield [*(firsts[index] for index in part), *(firsts[index] + samples for index in part)]


def step_figures(sampled: Sampled, number: int, passes: Sequence[dict[str, float]]) -> dict[str, float]:
    """Of a step of reinforcement, for its curve. right, agrees: of verdicts on pairs; right_single: how often scores of
    single trajectories are in order, where these are reinforced."""
    pairs = sampled.pairs
    critiques = [len(line.targets) for line in sampled.lines]
    figures = {
        "step": float(number),
        "right": float(sampled.right[:pairs].mean()),
        "agrees": float(sampled.agrees[:pairs].mean()),
        "reward": float(sampled.rewards.mean()),
        "formed": float(sampled.formed.mean()),
        "entropy": float(sampled.entropy.mean()),
        "length": sum(critiques) / len(critiques),
        "clipped": sum(each["clipped"] for each in passes) / len(passes),
        "divergence": passes[-1]["divergence"],
    }
    if pairs < len(sampled.lines):
        figures["right_single"] = float(sampled.right[pairs:].mean())
    return figures
