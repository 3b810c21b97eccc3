"""What a generative model reaches on validation while it is trained."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from workers.train.generative.losses import QuestionLosses, own_prompts
from workers.train.generative.questions import Question, pair_micro_batches
from workers.train.generative.sampling import odds_of, write_critiques

_MEASURED = 200  # pairs, at most: each is four critiques


@torch.no_grad()
def validation_metrics(
    losses: QuestionLosses, questions: Sequence[Question], micro_tokens: int
) -> dict[str, float]:
    """loss: as in the first stage, the mean of both orders. After the likeliest critiques: own_loss, of the verdicts;
    accuracy, of the mean of both orders' chances; right, of verdicts in one order; consistency: both orders name the
    same run; pointwise: the accuracy of the difference of two single scores."""
    losses.writer.language.eval()
    taught: list[Tensor] = []
    for part in pair_micro_batches(questions, micro_tokens):
        batch = [questions[index] for index in part]
        taught += [losses.taught(batch, [order] * len(batch)) for order in (0, 1)]
    own: list[Tensor] = []
    odds: list[Tensor] = []
    for part in pair_micro_batches(questions[:_MEASURED], micro_tokens):
        loss, found = _after_own_critiques(losses, [questions[index] for index in part], micro_tokens)
        own.append(loss)
        odds.append(found)
    return {"loss": float(torch.cat(taught).mean()), "own_loss": float(torch.cat(own).mean())} | _shares(
        torch.cat(odds)
    )


def _after_own_critiques(
    losses: QuestionLosses, batch: Sequence[Question], micro_tokens: int
) -> tuple[Tensor, Tensor]:
    """[questions] loss of the verdicts, the mean of both orders; [questions, 4] log-odds: of A where the better is A,
    of A where it is B, of good of the better, of good of the other."""
    writer, n = losses.writer, len(batch)
    prompts = [*own_prompts(batch, [0] * n), *(item.pair[1] for item in batch)]
    written = write_critiques(writer, prompts, micro_tokens, temperature=0.0)
    first, runs, second = written[:n], written[n : 3 * n], written[3 * n :]
    loss = sum(
        losses.own_verdicts(batch, [order] * n, [*pairs, *runs]) for order, pairs in ((0, first), (1, second))
    )
    lines = [
        writer.line(prompt, critique.ids, is_formed=critique.is_formed)
        for prompt, critique in zip(prompts, written, strict=True)
    ]
    found = odds_of(writer.read(lines), writer, lines).view(4, n)
    return torch.as_tensor(loss) / 2, torch.stack([found[0], found[3], found[1], found[2]], 1)


def _shares(odds: Tensor) -> dict[str, float]:
    chance = (odds[:, 0].sigmoid() + (-odds[:, 1]).sigmoid()) / 2
    first, second = odds[:, 0] > 0, odds[:, 1] < 0
    return {
        "accuracy": _share_above(chance, 0.5),
        "right": float((first.float() + second.float()).mean() / 2),
        "consistency": float((first == second).float().mean()),
        "pointwise": _share_above(odds[:, 2] - odds[:, 3], 0.0),
    }


def _share_above(values: Tensor, middle: float) -> float:
    return float(((values > middle).float() + 0.5 * (values == middle).float()).mean())


def validation_worth(stage: str, measured: dict[str, Any], *, singles: bool) -> float:
    """More is better: the least loss of what a stage trains; in reinforcement the most right verdicts in one order, and
    single scores in order where these are reinforced."""
    if stage == "teach":
        return -float(measured["loss"])
    if stage == "own":
        return -float(measured["own_loss"])
    return float(measured["right"] + measured["pointwise"]) / 2 if singles else float(measured["right"])
