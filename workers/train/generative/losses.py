"""What a generative model learns of people's comparisons and ratings, after their critiques and after its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.models.generative.verdicts import VerdictPrompt
from workers.models.generative.writer import Line, LineLogProbs, Writer, Written
from workers.objectives.generative import critique_loss, pair_loss, rating_loss, run_loss
from workers.schema.recipe import Recipe
from workers.train.generative.questions import Question
from workers.train.generative.ratings import RatedRun


@dataclass(frozen=True, slots=True)
class QuestionLosses:
    """writes: whether anyone gave reasons; where no one did, that no critique comes is learnt from all."""

    writer: Writer
    recipe: Recipe
    writes: bool

    def taught(self, batch: Sequence[Question], orders: Sequence[int]) -> Tensor:
        """[questions]: verdicts after people's critiques, and the critiques. orders: 0 where the better is shown as A,
        1 where as B."""
        read = self.writer.read(self.taught_lines(batch, orders))
        return self._verdicts(batch, orders, read) + self.recipe.critique_weight * self._writing(batch, read)

    def own(self, batch: Sequence[Question], orders: Sequence[int], written: Sequence[Written]) -> Tensor:
        """[questions]: verdicts after critiques of the model, and people's critiques, so that it goes on to write them
        (CLoud: Ankner et al. 2024, arXiv 2408.11791, section 3). written: of `own_prompts`."""
        loss = self.own_verdicts(batch, orders, written)
        if not self.recipe.critique_weight:
            return loss
        read = self.writer.read(self.taught_lines(batch, orders))
        return loss + self.recipe.critique_weight * self._writing(batch, read)

    def own_verdicts(
        self, batch: Sequence[Question], orders: Sequence[int], written: Sequence[Written]
    ) -> Tensor:
        """[questions]: of `own` the verdicts alone."""
        lines = [
            self.writer.line(prompt, critique.ids, is_formed=critique.is_formed)
            for prompt, critique in zip(own_prompts(batch, orders), written, strict=True)
        ]
        return self._verdicts(batch, orders, self.writer.read(lines))

    def taught_runs(self, batch: Sequence[Question]) -> Tensor:
        """[questions]: verdicts about single trajectories after people's critiques."""
        return self._runs(batch, self.writer.read(self._taught_run_lines(batch)))

    def rated(self, runs: Sequence[RatedRun], written: Sequence[Written] | None = None) -> Tensor:
        """[ratings]. written: the model's critiques; without them, after what the annotators wrote."""
        if written is None:
            lines = [self.writer.line(run.prompt, run.reasons, is_formed=False) for run in runs]
        else:
            lines = [
                self.writer.line(run.prompt, critique.ids, is_formed=critique.is_formed)
                for run, critique in zip(runs, written, strict=True)
            ]
        read = self.writer.read(lines)
        good, poor = read.words(self.writer.renderer.of_run)
        loss = rating_loss(good - poor, good.new_tensor([run.place for run in runs]))
        if written is not None:
            return loss
        counts = good.new_tensor([bool(run.reasons) or not self.writes for run in runs])
        return loss + self.recipe.critique_weight * critique_loss(read.log_probs, read.mask) * counts

    def taught_lines(self, batch: Sequence[Question], orders: Sequence[int]) -> list[Line]:
        """Of the pairs, the better trajectories, then the others."""
        pairs = [
            self.writer.line(item.pair[order], item.pair_reasons[order], is_formed=False)
            for item, order in zip(batch, orders, strict=True)
        ]
        return [*pairs, *self._taught_run_lines(batch)]

    def _taught_run_lines(self, batch: Sequence[Question]) -> list[Line]:
        return [
            self.writer.line(item.runs[side], item.run_reasons[side], is_formed=False)
            for side in (0, 1)
            for item in batch
        ]

    def _verdicts(self, batch: Sequence[Question], orders: Sequence[int], read: LineLogProbs) -> Tensor:
        n = len(batch)
        yes, no = read.words(self.writer.renderer.of_pair)
        is_a = torch.tensor(orders, device=yes.device) == 0
        right, wrong = torch.where(is_a, yes[:n], no[:n]), torch.where(is_a, no[:n], yes[:n])
        together = pair_loss(right, wrong, self.smoothing(batch))
        return together + self.recipe.pointwise_weight * self._runs(batch, read)

    def _runs(self, batch: Sequence[Question], read: LineLogProbs) -> Tensor:
        """[questions]. read: ends with the lines about their trajectories."""
        good, poor = read.words(self.writer.renderer.of_run)
        z, n = good - poor, len(batch)
        return run_loss(z[-2 * n : -n], z[-n:], self.smoothing(batch), centring=self.recipe.centring)

    def smoothing(self, batch: Sequence[Question]) -> Tensor:
        return torch.tensor([item.of.smoothing for item in batch], device=self.writer.device)

    def _writing(self, batch: Sequence[Question], read: LineLogProbs) -> Tensor:
        """[questions]: of those with reasons; of all, that no critique comes, where no one wrote one."""
        written = critique_loss(read.log_probs, read.mask).view(3, len(batch))
        counts = torch.tensor(
            [
                [item.of.has_reasons or not self.writes for item in batch],
                *([bool(item.of.reasons[side]) or not self.writes for item in batch] for side in (0, 1)),
            ],
            device=written.device,
        ).float()
        return (written * counts).sum(0) / counts.sum(0).clamp(min=1)


def own_prompts(batch: Sequence[Question], orders: Sequence[int]) -> list[VerdictPrompt]:
    """What the model writes about: the pairs in these orders, the better trajectories, then the others."""
    pairs = [item.pair[order] for item, order in zip(batch, orders, strict=True)]
    return [*pairs, *(item.runs[side] for side in (0, 1) for item in batch)]
