"""A causal language model that writes critiques and gives verdicts.

On a CPU what is to be the same whatever else is asked is written and read one by one; in training, and on a GPU,
several at once.
"""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel, StoppingCriteria, StoppingCriteriaList

from workers.models.generative.verdicts import VerdictPrompt, VerdictRenderer, Words

_TAIL = 12  # tokens that hold the mark, however they are cut


@dataclass(frozen=True, slots=True)
class Written:
    """ids: what the model wrote, the mark included if it wrote one. critique: in words, without the mark.

    end: the end token that the model drew after `ids`; None where it wrote the mark, or came to its limit of tokens.
    """

    ids: tuple[int, ...]
    critique: str
    is_formed: bool
    end: int | None = None

    @property
    def drawn(self) -> tuple[int, ...]:
        """Every token that the model drew."""
        return self.ids if self.end is None else (*self.ids, self.end)


@dataclass(frozen=True, slots=True)
class Line:
    """A sequence for the model to be read on. answer: where it begins. before: what the verdict's words begin with.

    drawn: the tokens, from `answer` on, whose log-probabilities are read; None: those of `ids`. An end token that the
    model drew is one of them, and no part of `ids`: the verdict is read after a mark in its place. is_pair: whether
    two trajectories are asked about.
    """

    ids: tuple[int, ...]
    answer: int
    before: tuple[int, ...] = ()
    drawn: tuple[int, ...] | None = None
    is_pair: bool = False

    @property
    def targets(self) -> tuple[int, ...]:
        return self.ids[self.answer :] if self.drawn is None else self.drawn


@dataclass(frozen=True, slots=True)
class LineLogProbs:
    """What a model says of lines. log_probs: [lines, longest answer] of their targets, 0 beyond. mask: 1 for a token.

    entropy: [lines], mean over the tokens. next: [lines, vocabulary], log-probabilities where the verdict's words part.
    """

    log_probs: Tensor
    mask: Tensor
    entropy: Tensor
    next: Tensor

    def words(self, words: Words) -> tuple[Tensor, Tensor]:
        """[lines] log-probabilities of the word for and of the word against."""
        return self.next[:, words.yes_id], self.next[:, words.no_id]


class Writer:
    """language: with its LM head, of which the renderer has the tokenizer."""

    def __init__(self, language: PreTrainedModel, renderer: VerdictRenderer) -> None:
        self.language = language
        self.renderer = renderer
        self.in_bfloat16 = False

    @property
    def device(self) -> torch.device:
        return self.language.device

    @torch.no_grad()
    def write(
        self, prompts: Sequence[Sequence[int]], *, temperature: float = 0.0, samples: int = 1
    ) -> list[Written]:
        """Critiques, `samples` of each prompt in a row. temperature 0: the likeliest words, which are always the same;
        else drawn with torch's generator. Until the mark, the end, or `critique_tokens`."""
        if not self.renderer.critique_tokens:
            return [Written((), "", is_formed=False) for _ in prompts for _ in range(samples)]
        pad = _pad(self.language, self.renderer)
        longest = max(map(len, prompts))
        ids = torch.full((len(prompts), longest), pad, device=self.device)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt) :] = torch.tensor(list(prompt), device=self.device)
            mask[row, longest - len(prompt) :] = 1
        # All of it is said: what is left out is taken from the model's own folder.
        drawn = (
            {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature else {}
        )
        options = GenerationConfig(
            max_new_tokens=self.renderer.critique_tokens,
            num_return_sequences=samples,
            repetition_penalty=1.0,
            pad_token_id=pad,
            eos_token_id=self.language.generation_config.eos_token_id
            if self.language.generation_config is not None
            else None,
            **({"do_sample": False} | drawn),
        )
        stop = StoppingCriteriaList([_AtMark(self.renderer, longest)])
        with self._precision():
            made: Any = self.language.generate(
                input_ids=ids, attention_mask=mask, generation_config=options, stopping_criteria=stop
            )
        return [self._written(row[longest:].tolist(), pad) for row in made]

    def read(self, lines: Sequence[Line], *, entropy: bool = False) -> LineLogProbs:
        """One forward pass, gradients and all. Logits are computed from the token before the answers on: lines end
        together, so that those of the prompts, nearly all of what is read, are left out."""
        whole = [(*line.ids, *line.before) for line in lines]
        longest = max(map(len, whole))
        width = max(max(len(line.targets) for line in lines), 1)
        ids = torch.zeros(len(lines), longest, dtype=torch.long)
        there = torch.zeros_like(ids)
        targets = torch.zeros(len(lines), width, dtype=torch.long)
        for row, (line, tokens) in enumerate(zip(lines, whole, strict=True)):
            ids[row, longest - len(tokens) :] = torch.tensor(tokens)
            there[row, longest - len(tokens) :] = 1
            targets[row, : len(line.targets)] = torch.tensor(line.targets, dtype=torch.long)
        kept = max(len(tokens) - line.answer for line, tokens in zip(lines, whole, strict=True)) + 1
        logits = self._logits(ids.to(self.device), there.to(self.device), kept)
        last = logits[:, -1].float().log_softmax(-1)
        counts = torch.tensor([len(line.targets) for line in lines], device=self.device).unsqueeze(-1)
        columns = torch.arange(width, device=self.device)
        mask = (columns < counts).float()
        # Where each token is predicted: the last of the prompt predicts the first of the answer.
        firsts = [kept - 1 - (len(tokens) - line.answer) for line, tokens in zip(lines, whole, strict=True)]
        places = (torch.tensor(firsts, device=self.device).unsqueeze(-1) + columns).clamp(max=kept - 1)
        rows = torch.arange(len(lines), device=self.device).unsqueeze(-1)
        before = logits[rows, places].float().log_softmax(-1)
        found = before.gather(-1, targets.to(self.device).unsqueeze(-1)).squeeze(-1) * mask
        spread = torch.zeros(len(lines), device=self.device)
        if entropy:
            with torch.no_grad():
                spread = (-(before.exp() * before).sum(-1) * mask).sum(-1) / mask.sum(-1).clamp(min=1)
        return LineLogProbs(found, mask, spread, last)

    def line(self, prompt: VerdictPrompt, written: Sequence[int], *, is_formed: bool) -> Line:
        """Up to where the verdict is read: the mark is added where it was not written."""
        mark = () if is_formed else self.renderer.mark_ids
        before = self.renderer.words(prompt).before
        return Line((*prompt.ids, *written, *mark), len(prompt.ids), before, is_pair=prompt.is_pair)

    def drawn_line(self, prompt: VerdictPrompt, written: Written) -> Line:
        """As `line`, of which the log-probabilities of all tokens that the model drew are read, and of no others: its
        end token, and no mark that was added."""
        line = self.line(prompt, written.ids, is_formed=written.is_formed)
        return replace(line, drawn=written.drawn)

    def _logits(self, ids: Tensor, there: Tensor, kept: int) -> Tensor:
        """[lines, kept, vocabulary] of the last places. there: 1 for a token, 0 for padding, which is on the left."""
        known = _forward_parameters(_base(self.language).__class__)
        options: dict[str, Any] = {}
        if "position_ids" in known:
            options["position_ids"] = (there.cumsum(-1) - 1).clamp(min=0)
        if "logits_to_keep" in known:
            options["logits_to_keep"] = kept
        with self._precision():
            logits: Tensor = self.language(
                input_ids=ids, attention_mask=there, use_cache=False, **options
            ).logits
        return logits[:, -kept:]

    def _written(self, ids: list[int], pad: int) -> Written:
        ends = _ends(self.language)
        size = len(ids)
        while size and (ids[size - 1] == pad or ids[size - 1] in ends):
            size -= 1
        text = self.renderer.text(ids[:size])
        critique, mark, _ = text.partition(self.renderer.mark)
        # What follows a mark that the model stopped at was filled in, be the padding an end token.
        follows = None if size == len(ids) or text.rstrip().endswith(self.renderer.mark) else ids[size]
        end = follows if follows in ends else None
        return Written(tuple(ids[:size]), critique.strip(), bool(mark), end)

    def _precision(self) -> Any:
        return torch.autocast(self.device.type, dtype=torch.bfloat16) if self.in_bfloat16 else nullcontext()


class _AtMark(StoppingCriteria):
    def __init__(self, renderer: VerdictRenderer, start: int) -> None:
        self.renderer, self.start = renderer, start

    def __call__(self, input_ids: Tensor, scores: Any, **more: Any) -> Tensor:
        tails = input_ids[:, max(self.start, input_ids.shape[1] - _TAIL) :].tolist()
        said = [self.renderer.text(tail).rstrip().endswith(self.renderer.mark) for tail in tails]
        return torch.tensor(said, device=input_ids.device)


def micro_batches(lines: Sequence[Line], tokens: int) -> Iterator[list[int]]:
    """Places of lines of about the same length, so many padded tokens together at most, but one at least."""
    order = sorted(range(len(lines)), key=lambda place: len(lines[place].ids))
    part: list[int] = []
    for place in order:
        if part and (len(part) + 1) * len(lines[place].ids) > tokens:
            yield part
            part = []
        part.append(place)
    if part:
        yield part


def _base(language: Any) -> PreTrainedModel:
    """The model itself where adapters are laid around it."""
    base: PreTrainedModel = language.get_base_model() if hasattr(language, "get_base_model") else language
    return base


@cache
def _forward_parameters(kind: type[PreTrainedModel]) -> frozenset[str]:
    return frozenset(inspect.signature(kind.forward).parameters)


def _ends(language: PreTrainedModel) -> set[int]:
    found = language.generation_config.eos_token_id if language.generation_config is not None else None
    return {found} if isinstance(found, int) else set(found or ())


def _pad(language: PreTrainedModel, renderer: VerdictRenderer) -> int:
    """A token to fill up with; it is masked."""
    pad = renderer.tokenizer.pad_token_id
    return int(pad if pad is not None else next(iter(_ends(language)), 0))
