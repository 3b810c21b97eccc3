"""Critiques that a judge writes of comparisons, and what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workers.models.generative.verdicts import VerdictPrompt
from workers.models.generative.writer import Line, LineLogProbs, Writer, Written, micro_batches
from workers.objectives.generative import advantages, reward
from workers.schema.recipe import Recipe
from workers.train.generative.questions import Question, run_micro_batches


@dataclass(frozen=True, slots=True)
class Sampled:
    """Of a batch of questions, each in both orders in turn, the samples of a prompt in a row. All on the CPU.

    own: how many tokens of each line the model wrote on its own. says_a: the verdict that was drawn. old: [samples,
    width + 1] log-probabilities of its tokens, and of its verdict, which stands last. The rest: [samples].
    """

    lines: list[Line]
    own: list[int]
    says_a: Tensor
    old: Tensor
    advantages: Tensor
    rewards: Tensor
    right: Tensor
    agrees: Tensor
    formed: Tensor
    entropy: Tensor

    @property
    def width(self) -> int:
        return self.old.shape[1] - 1


@torch.no_grad()
def sample(
    writer: Writer, batch: Sequence[Question], recipe: Recipe, tokens: int, *, writes: bool
) -> Sampled:
    """Drawn with torch's generator. tokens: what goes through the model at once. writes: whether people gave reasons;
    then a verdict without one is not formed."""
    samples, renderer = recipe.reinforce_samples, writer.renderer
    prompts = [item.pair[order] for item in batch for order in (0, 1)]
    written: list[Written] = []
    for part in run_micro_batches(prompts, samples, tokens, renderer.critique_tokens):
        written += writer.write([index.ids for index in part], temperature=1.0, samples=samples)
    lines = [
        writer.line(prompts[place // samples], verdict.ids, is_formed=verdict.is_formed)
        for place, verdict in enumerate(written)
    ]
    own = [len(verdict.ids) for verdict in written]
    log_probs, odds, entropy = _read(writer, lines, tokens)
    says_a = torch.rand(len(lines)) < odds.sigmoid()
    better_is_a = torch.tensor([order == 0 for _ in batch for order in (0, 1)]).repeat_interleave(samples)
    right = (says_a == better_is_a).float()
    by_prompt = right.view(len(batch), 2, samples)
    other = by_prompt.mean(-1).flip(1).unsqueeze(-1)  # how often the other order names the better run
    agrees = torch.where(by_prompt > 0, other, 1 - other).reshape(-1)
    formed = torch.tensor([is_whole(verdict, writes=writes) for verdict in written]).float()
    rewards = reward(right, agrees, formed, consistency=recipe.reinforce_consistency)
    return Sampled(
        lines=lines,
        own=own,
        says_a=says_a,
        old=with_verdict(log_probs, odds, says_a, own)[0],
        advantages=advantages(rewards.view(-1, samples)).reshape(-1),
        rewards=rewards,
        right=right,
        agrees=agrees,
        formed=formed,
        entropy=entropy,
    )


def is_whole(written_verdict: Written, *, writes: bool) -> bool:
    """Whether the verdict came on its own, and a critique before it where there are to be some."""
    return written_verdict.is_formed and (bool(written_verdict.critique) or not writes)


@torch.no_grad()
def log_probs_of(writer: Writer, sampled: Sampled, tokens: int) -> Tensor:
    """[samples, width + 1]: as `Sampled.old`, by another model."""
    log_probs, odds, _ = _read(writer, sampled.lines, tokens)
    return with_verdict(log_probs, odds, sampled.says_a, sampled.own, sampled.width)[0]


def with_verdict(
    log_probs: Tensor, odds: Tensor, says_a: Tensor, own: Sequence[int], width: int | None = None
) -> tuple[Tensor, Tensor]:
    """[lines, width + 1] log-probabilities and mask: of the `own` first tokens (a mark that was put there for it is not
    the model's), and last of its verdict, whose log-odds for A are `odds`."""
    width = log_probs.shape[1] if width is None else width
    found = nn.functional.pad(log_probs, (0, width - log_probs.shape[1]))
    counts = torch.tensor(list(own), device=found.device).unsqueeze(-1)
    mask = (torch.arange(width, device=found.device) < counts).float()
    verdict = nn.functional.logsigmoid(torch.where(says_a.to(odds.device), odds, -odds)).unsqueeze(-1)
    return torch.cat([found * mask, verdict], 1), torch.cat([mask, torch.ones_like(verdict)], 1)


def odds_of(lines: LineLogProbs, writer: Writer) -> Tensor:
    """[lines]: of A against B."""
    yes, no = lines.words(writer.renderer.of_pair)
    return yes - no


@torch.no_grad()
def log_odds_after_critique(writer: Writer, prompts: Sequence[VerdictPrompt], tokens: int) -> Tensor:
    """[questions]: log-odds of A after the likeliest critique, several written at once."""
    odds = torch.zeros(len(prompts))
    for part in micro_batches([Line(prompt.ids, len(prompt.ids)) for prompt in prompts], tokens):
        written = writer.write([prompts[index].ids for index in part])
        lines = [
            writer.line(prompts[index], said.ids, is_formed=said.is_formed)
            for index, said in zip(part, written, strict=True)
        ]
        odds[part] = odds_of(writer.read(lines), writer).cpu()
    return odds


def _read(writer: Writer, lines: Sequence[Line], tokens: int) -> tuple[Tensor, Tensor, Tensor]:
    """log_probs: [lines, longest answer]. odds, entropy: [lines]."""
    log_probs = torch.zeros(len(lines), max(max(len(line.ids) - line.answer for line in lines), 1))
    odds, entropy = torch.zeros(len(lines)), torch.zeros(len(lines))
    for part in micro_batches(lines, tokens):
        read = writer.read([lines[index] for index in part], entropy=True)
        log_probs[part, : read.log_probs.shape[1]] = read.log_probs.cpu()
        odds[part], entropy[part] = odds_of(read, writer).cpu(), read.entropy.cpu()
    return log_probs, odds, entropy
