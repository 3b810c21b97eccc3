"""A judge that writes a critique and gives a verdict, as a reward model.

The reward of a run is the log-odds of "good" against "bad" after the critique the model thinks likeliest. Two runs are
compared in both orders, and the chances averaged. One that learnt to follow principles (SALMON, Sun et al. 2023, arXiv
2310.05910) is asked the same by each that a request names, and the chance of "good" is its score.
"""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from workers.errors import RewardError
from workers.models.backbones.decoder import conversation_renderer, decoder_folder
from workers.models.generative.judge_prompts import JudgePrompts
from workers.models.generative.judge_renderer import JudgeRenderer
from workers.models.generative.verdicts import VerdictPrompt, VerdictRenderer, principle
from workers.models.generative.writer import Writer, Written
from workers.models.loaded import Described
from workers.models.transformers_loading import transformers_loading
from workers.schema import Text
from workers.schema.logistic import logistic
from workers.schema.model_score import ModelScore
from workers.schema.recipe import Recipe
from workers.text import Content

KIND = "generative"
_STEP_RULE = "after the critique, at the end of the whole; steps before the last have the reward 0"


@dataclass(frozen=True, slots=True)
class Answer:
    """written: the critique. log_odds: of the word for over the word against, after it; of a judge that answers on a
    scale about one run, the expected point."""

    written: Written
    log_odds: float


@dataclass(frozen=True, slots=True)
class PairComparison:
    """first, second: what was answered about (a, b), and about (b, a). probability: that a is better, both averaged."""

    first: Answer
    second: Answer

    @property
    def probability(self) -> float:
        return (logistic(self.first.log_odds) + logistic(-self.second.log_odds)) / 2

    @property
    def log_odds(self) -> float:
        """Of the averaged probability, at most 20 either way."""
        p = min(max(self.probability, 2e-9), 1 - 2e-9)
        return math.log(p) - math.log1p(-p)

    @property
    def is_consistent(self) -> bool:
        """Whether both orders name the same run."""
        return (self.first.log_odds > 0) == (self.second.log_odds < 0)


class GenerativeModel(Described):
    """May be called from any thread, and computes one batch at a time."""

    ood_detector = None
    warm_up_content: Content = Text("Hello.")

    def __init__(self, writer: Writer, manifest: dict[str, Any]) -> None:
        super().__init__(writer.renderer, manifest)
        self.writer = writer
        self.writer.language.eval().requires_grad_(False)
        self._lock = threading.Lock()

    @property
    def compares(self) -> bool:  # type: ignore[override]
        return bool(self.renderer.compares)

    @property
    def precision(self) -> str:
        return "bfloat16" if self.writer.in_bfloat16 else "float32"

    @property
    def scores_criteria(self) -> bool:
        return bool(self.criteria)

    @property
    def compared_by(self) -> set[str | None]:
        return super().compared_by | self.criteria.keys()

    def score(
        self, batch: Sequence[VerdictPrompt], *, cache: Any = None, criteria: Sequence[str] = ()
    ) -> list[ModelScore]:
        """In order. Each is written on its own, so that nothing depends on what is asked next to it.

        criteria: names it was trained on, the texts of new ones, or "The opposite of: " either. Raises RewardError for
        them where it follows none, and if a score is not finite.
        """
        if criteria and not self.scores_criteria:
            raise RewardError(
                "this judge scores no criteria; train one with `principles = true`.", pointer="/criteria"
            )
        return [self._scored(item, criteria) for item in batch]

    def render_pair(self, a: Content, b: Content) -> VerdictPrompt:
        """The question which is better, in this order; `score` of it is the log-odds of the first."""
        return self.renderer.pair(a, b)

    def compare(
        self, pairs: Sequence[tuple[Content, Content]], *, by: str | None = None
    ) -> list[PairComparison]:
        """In order. by: as `score` takes criteria. Raises RewardError for what cannot be read."""
        text = self._text(by)
        answers = self.answers(
            [self.renderer.pair(*sides, by=text) for pair in pairs for sides in (pair, (pair[1], pair[0]))]
        )
        return [PairComparison(*both) for both in zip(answers[::2], answers[1::2], strict=True)]

    def answers(self, prompts: Sequence[VerdictPrompt]) -> list[Answer]:
        """The likeliest critique of each, and the verdict after it."""
        return [self._answer(prompt) for prompt in prompts]

    def log_odds(self, content: Content, *, by: str) -> float:
        """Of "good" by a principle."""
        return self._answer(self.renderer.render(content, by=self._text(by))).log_odds

    def _text(self, by: str | None) -> str | None:
        return None if by is None else principle(by, self.criteria)

    def _answer(self, prompt: VerdictPrompt) -> Answer:
        with self._lock, torch.no_grad():
            (written,) = self.writer.write([prompt.ids])
            line = self.writer.line(prompt, written.ids, is_formed=written.is_formed)
            found = self.writer.read([line]).next[0]
        log_odds = self.renderer.verdict(prompt, lambda id_: float(found[id_]))
        if not math.isfinite(log_odds):
            raise RewardError(
                "the model's verdict is not a finite number; train it again with a lower learning rate."
            )
        return Answer(written, log_odds)

    def _scored(self, prompt: VerdictPrompt, criteria: Sequence[str]) -> ModelScore:
        ask = self.renderer.pair if prompt.is_pair else self.renderer.render
        by = {name: ask(*prompt.runs, by=self._text(name)) for name in criteria}
        answer, *others = self.answers([prompt, *by.values()])
        alone = self._model_score(prompt, answer)
        more = sum(
            index.tokens + len(said.written.ids) for index, said in zip(by.values(), others, strict=True)
        )
        scores = {name: logistic(said.log_odds) for name, said in zip(by, others, strict=True)}
        cut = any(index.truncated for index in by.values())
        return replace(alone, tokens=alone.tokens + more, truncated=alone.truncated or cut, criteria=scores)

    def _model_score(self, prompt: VerdictPrompt, answer: Answer) -> ModelScore:
        steps = (*[0.0] * (len(prompt.reads) - 1), answer.log_odds)
        return ModelScore(
            raw=answer.log_odds,
            offset=0.0,
            std=None,
            step_rewards=steps,
            values=steps,
            tokens=prompt.tokens + len(answer.written.ids),
            cached_tokens=0,
            truncated=prompt.truncated,
            critique=answer.written.critique,
        )


def verdict_renderer(folder: Path, recipe: Recipe) -> VerdictRenderer:
    return VerdictRenderer(
        conversation_renderer(folder, max_tokens=recipe.max_tokens, names_speakers=True),
        critique_tokens=recipe.critique_tokens,
        criterion=recipe.criterion,
        principles=recipe.principles,
    )


def load_language(folder: Path, *, device: str) -> PreTrainedModel:
    """With its LM head; local safetensors only, no remote code, no pickles."""
    with transformers_loading():
        found: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, trust_remote_code=False, dtype=torch.float32
        )
    return found.to(device)


def build_writer(recipe: Recipe, *, device: str) -> Writer:
    """Raises RewardError where the folder holds no model, or one whose words cannot be distinguished."""
    folder = decoder_folder(recipe.decoder)
    return Writer(load_language(folder, device=device), verdict_renderer(folder, recipe))


def save_language(writer: Writer, folder: Path, recipe: Recipe) -> dict[str, Any]:
    """Its files, and its part of the manifest."""
    renderer = writer.renderer
    writer.language.save_pretrained(folder)
    renderer.tokenizer.chat_template = renderer.template
    renderer.tokenizer.save_pretrained(folder)
    return {
        "backbone": {
            "kind": KIND,
            "architecture": writer.language.config.model_type,
            "lora_rank": recipe.lora_rank,
        },
        "text": {
            "max_tokens": recipe.max_tokens,
            "speakers": bool(renderer.named_sources),
            "critique_tokens": recipe.critique_tokens,
            "prompts": renderer.prompts,
        },
        "step_rule": _STEP_RULE,
    }


def load_generative(folder: Path, manifest: dict[str, Any], device: str, precision: str) -> GenerativeModel:
    text = manifest["text"]
    conversations = conversation_renderer(
        folder, max_tokens=text["max_tokens"], names_speakers=text.get("speakers", False)
    )
    if "judge" in manifest:
        renderer: VerdictRenderer = JudgeRenderer(conversations, JudgePrompts.from_dict(manifest["judge"]))
    else:
        renderer = VerdictRenderer(
            conversations,
            critique_tokens=text["critique_tokens"],
            criterion=manifest["criterion"],
            principles=bool(manifest["criteria"]),
        )
    writer = Writer(load_language(folder, device=device), renderer)
    writer.in_bfloat16 = precision == "bfloat16"
    return GenerativeModel(writer, manifest)
