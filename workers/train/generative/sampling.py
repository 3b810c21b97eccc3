"""Critiques that a generative model writes of pairs and of single trajectories, and what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workers.models.generative.verdicts import VerdictPrompt
from workers.models.generative.writer import Line, LineLogProbs, Writer, Written, micro_batches
from workers.objectives.generative import advantages, ordered, reward
from workers.schema.recipe import Recipe
from workers.train.generative.questions import Question, run_micro_batches


@dataclass(frozen=True, slots=True)
class Sampled:
    """Of a batch of questions, the samples of a prompt in a row. All on the CPU. First those of pairs, each question in
    both orders in turn; then, where single trajectories are reinforced, each question's better and other one in turn.

    says_a: the verdict that was drawn of a pair; has_verdict: 1 for a pair. A verdict about a single trajectory is not
    drawn: it learns from people. old: [samples, width + 1] log-probabilities of the tokens that the model drew, and of
    its verdict, which stands last; mask: of them. The rest: [samples].
    """

    lines: list[Line]
    says_a: Tensor
    has_verdict: Tensor
    old: Tensor
    mask: Tensor
    advantages: Tensor
    rewards: Tensor
    right: Tensor
    agrees: Tensor
    formed: Tensor
    entropy: Tensor

    @property
    def width(self) -> int:
        return self.old.shape[1] - 1

    @property
    def pairs(self) -> int:
        """How many samples are of pairs."""
        return int(self.has_verdict.sum())

    @property
    def tokens(self) -> float:
        """That the model drew, verdicts included."""
        return float(self.mask.sum())


@torch.no_grad()
def sample(
    writer: Writer, batch: Sequence[Question], recipe: Recipe, tokens: int, *, writes: bool
) -> Sampled:
    """Drawn with torch's generator. tokens: what goes through the model at once. writes: whether people gave reasons;
    then a verdict without one is not formed."""
    samples, n = recipe.reinforce_samples, len(batch)
    prompts = [item.pair[order] for item in batch for order in (0, 1)]
    if recipe.reinforce_singles:
        prompts += [item.runs[side] for item in batch for side in (0, 1)]
    written = write_critiques(writer, prompts, tokens, samples=samples)
    lines = [writer.drawn_line(prompts[place // samples], verdict) for place, verdict in enumerate(written)]
    log_probs, odds, entropy = _read(writer, lines, tokens)
    pairs = 2 * n * samples
    has_verdict = (torch.arange(len(lines)) < pairs).float()
    says_a = torch.rand(len(lines)) < odds.sigmoid()
    better_is_a = torch.tensor([order == 0 for _ in batch for order in (0, 1)]).repeat_interleave(samples)
    right = (says_a[:pairs] == better_is_a).float()
    by_prompt = right.view(n, 2, samples)
    other = by_prompt.mean(-1).flip(1).unsqueeze(-1)  # how often the other order names the better run
    agrees = torch.where(by_prompt > 0, other, 1 - other).reshape(-1)
    if recipe.reinforce_singles:
        of_runs = odds[pairs:].view(n, 2, samples)
        above = torch.stack(ordered(of_runs[:, 0], of_runs[:, 1]), 1)  # [n, 2, samples]
        right, agrees = torch.cat([right, above.reshape(-1)]), torch.cat([agrees, torch.zeros(pairs)])
    formed = torch.tensor([is_whole(verdict, writes=writes) for verdict in written]).float()
    rewards = reward(right, agrees, formed, consistency=recipe.reinforce_consistency)
    old, mask = with_verdict(log_probs, odds, says_a, [len(line.targets) for line in lines], has_verdict)
    return Sampled(
        lines=lines,
        says_a=says_a,
        has_verdict=has_verdict,
        old=old,
        mask=mask,
        advantages=advantages(rewards.view(-1, samples)).reshape(-1),
        rewards=rewards,
        right=right,
        agrees=agrees,
        formed=formed,
        entropy=entropy,
    )


def write_critiques(
    writer: Writer,
    prompts: Sequence[VerdictPrompt],
    tokens: int,
    *,
    samples: int = 1,
    temperature: float = 1.0,
) -> list[Written]:
    """`samples` of each prompt in a row, as many at once as fit into `tokens`."""
    written: list[Written] = []
    for part in run_micro_batches(prompts, samples, tokens, writer.renderer.critique_tokens):
        written += writer.write([prompt.ids for prompt in part], temperature=temperature, samples=samples)
    return written


def is_whole(written_verdict: Written, *, writes: bool) -> bool:
    """Whether the verdict came on its own, and a critique before it where there are to be some."""
    return written_verdict.is_formed and (bool(written_verdict.critique) or not writes)


@torch.no_grad()
def log_probs_of(writer: Writer, sampled: Sampled, tokens: int) -> Tensor:
    """[samples, width + 1]: as `Sampled.old`, by another model."""
    log_probs, odds, _ = _read(writer, sampled.lines, tokens)
    drawn = [len(line.targets) for line in sampled.lines]
    return with_verdict(log_probs, odds, sampled.says_a, drawn, sampled.has_verdict, sampled.width)[0]


def with_verdict(
    log_probs: Tensor,
    odds: Tensor,
    says_a: Tensor,
    drawn: Sequence[int],
    has_verdict: Tensor,
    width: int | None = None,
) -> tuple[Tensor, Tensor]:
    """[lines, width + 1] log-probabilities and mask: of the tokens that the model drew, so many of each line, and last
    of its verdict, whose log-odds for A are `odds`, where it drew one."""
    width = log_probs.shape[1] if width is None else width
    found = nn.functional.pad(log_probs, (0, width - log_probs.shape[1]))
    counts = torch.tensor(list(drawn), device=found.device).unsqueeze(-1)
    mask = (torch.arange(width, device=found.device) < counts).float()
    has_one = has_verdict.to(odds.device).unsqueeze(-1)
    verdict = nn.functional.logsigmoid(torch.where(says_a.to(odds.device), odds, -odds)).unsqueeze(-1)
    return torch.cat([found * mask, verdict * has_one], 1), torch.cat([mask, has_one], 1)


def odds_of(read: LineLogProbs, writer: Writer, lines: Sequence[Line]) -> Tensor:
    """[lines]: of A against B, or of good against bad."""
    renderer = writer.renderer
    together, alone = read.words(renderer.of_pair), read.words(renderer.of_run)
    is_pair = torch.tensor([line.is_pair for line in lines], device=together[0].device)
    return torch.where(is_pair, together[0] - together[1], alone[0] - alone[1])


@torch.no_grad()
def log_odds_after_critique(writer: Writer, prompts: Sequence[VerdictPrompt], tokens: int) -> Tensor:
    """[questions]: log-odds of A, or of good, after the likeliest critique, several written at once."""
    odds = torch.zeros(len(prompts))
    for part in micro_batches([Line(prompt.ids, len(prompt.ids)) for prompt in prompts], tokens):
        written = writer.write([prompts[index].ids for index in part])
        lines = [
            writer.line(prompts[index], said.ids, is_formed=said.is_formed)
            for index, said in zip(part, written, strict=True)
        ]
        odds[part] = odds_of(writer.read(lines), writer, lines).cpu()
    return odds


def _read(writer: Writer, lines: Sequence[Line], tokens: int) -> tuple[Tensor, Tensor, Tensor]:
    """log_probs: [lines, most tokens drawn]. odds, entropy: [lines]."""
    log_probs = torch.zeros(len(lines), max(max(len(line.targets) for line in lines), 1))
    odds, entropy = torch.zeros(len(lines)), torch.zeros(len(lines))
    for part in micro_batches(lines, tokens):
        some = [lines[index] for index in part]
        read = writer.read(some, entropy=True)
        log_probs[part, : read.log_probs.shape[1]] = read.log_probs.cpu()
        odds[part] = odds_of(read, writer, some).cpu()
        entropy[part] = read.entropy.cpu()
    return log_probs, odds, entropy
