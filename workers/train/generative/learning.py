"""The stages that learn from people: after their critiques, then after the model's own."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from workers.models.generative.writer import Written
from workers.train.generative.losses import QuestionLosses, own_prompts
from workers.train.generative.questions import Question, pair_micro_batches
from workers.train.generative.ratings import RatedRun, share_of_epoch
from workers.train.generative.sampling import write_critiques
from workers.train.generative.stages import StageName


@dataclass(frozen=True, slots=True)
class PeopleBatch:
    """orders: 0 where the better trajectory of a question is shown as A, 1 where as B."""

    questions: list[Question]
    orders: list[int]
    ratings: list[RatedRun]


@dataclass(frozen=True, slots=True)
class PeopleStages:
    losses: QuestionLosses
    questions: Sequence[Question]
    ratings: Sequence[RatedRun]
    seed: int
    per_epoch: int

    def batch(self, stage: StageName, place: int, seed: Callable[[str], int]) -> PeopleBatch:
        """Of a step of a stage, by its place in it. seed: of what is drawn at this step, by its name."""
        epoch, at = divmod(place, self.per_epoch)
        size = self.losses.recipe.batch_pairs
        shuffle = f"{self.seed}/{epoch}" if stage == "teach" else f"{self.seed}/{stage}/{epoch}"
        order = _shuffled(len(self.questions), shuffle)[at * size : (at + 1) * size]
        questions = self.by_principles([self.questions[index] for index in order], seed("opposites"))
        dice = random.Random(seed("order"))  # noqa: S311 (not for secrets)
        orders = [dice.randrange(2) for _ in questions]
        rated = _shuffled(len(self.ratings), f"{shuffle}/ratings")
        share = share_of_epoch(len(rated), at, self.per_epoch)
        return PeopleBatch(questions, orders, [self.ratings[rated[index]] for index in share])

    def by_principles(self, batch: Sequence[Question], seed: int) -> list[Question]:
        """A share of those by a principle is asked by its opposite."""
        dice = random.Random(seed)  # noqa: S311 (not for secrets)
        drawn = [dice.random() < self.losses.recipe.negate for _ in batch]
        return [item.opposite or item if turn else item for item, turn in zip(batch, drawn, strict=True)]

    def backward(self, stage: StageName, batch: PeopleBatch, micro_tokens: int) -> float:
        """Adds the gradient; the loss: the mean over the questions, and that over the ratings by `rating_weight`."""
        written = self._written(batch, micro_tokens) if stage == "own" else None
        self.losses.writer.language.train()
        total = 0.0
        whole = sum(item.of.weight for item in batch.questions) or 1.0
        n = len(batch.questions)
        for part in pair_micro_batches(batch.questions, micro_tokens):
            some, orders = [batch.questions[index] for index in part], [batch.orders[index] for index in part]
            if written is None:
                loss = self.losses.taught(some, orders)
            else:
                places = [index + shift for shift in (0, n, 2 * n) for index in part]
                loss = self.losses.own(some, orders, [written[index] for index in places])
            total += _descend(loss, [item.of.weight for item in some], whole)
        if not batch.ratings:
            return total
        whole = sum(run.weight for run in batch.ratings) / self.losses.recipe.rating_weight
        size = max(1, micro_tokens // max(run.longest for run in batch.ratings))
        for start in range(0, len(batch.ratings), size):
            some_runs = batch.ratings[start : start + size]
            critiques = None if written is None else written[3 * n :][start : start + size]
            loss = self.losses.rated(some_runs, critiques)
            total += _descend(loss, [run.weight for run in some_runs], whole)
        return total

    def _written(self, batch: PeopleBatch, micro_tokens: int) -> list[Written]:
        """The model's critiques of the questions, as `own_prompts` has them, then of the rated trajectories: the
        likeliest, as in serving. Verdicts after drawn ones got worse where a model still draws wrong ones."""
        writer = self.losses.writer
        writer.language.eval()
        prompts = [*own_prompts(batch.questions, batch.orders), *(run.prompt for run in batch.ratings)]
        return write_critiques(writer, prompts, micro_tokens, temperature=0.0)


def _descend(loss: Tensor, weights: Sequence[float], whole: float) -> float:
    share = (loss * loss.new_tensor(weights)).sum() / whole
    share.backward()
    return float(share.detach())


def _shuffled(count: int, seed: str) -> list[int]:
    order = list(range(count))
    random.Random(seed).shuffle(order)  # noqa: S311 (not for secrets)
    return order
