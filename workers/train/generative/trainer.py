"""Training a judge that writes: from people's verdicts and reasons, then from verdicts after its own critiques, then
from whether its own verdicts are right.

Everything a step draws depends on the seed and the step's number alone, so a training that was taken up again goes on
as it would have.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import nn

from workers.errors import RewardError
from workers.models.generative.writer import Writer
from workers.schema.recipe import Recipe
from workers.train.checkpoints import save_checkpoint, state_to_resume
from workers.train.events import Report
from workers.train.generative.adapters import (
    ReferenceModel,
    add_adapter,
    load_reference,
    load_weights,
    merge_adapter,
    save_reference,
    trained_weights,
)
from workers.train.generative.learning import PeopleStages
from workers.train.generative.losses import QuestionLosses
from workers.train.generative.optimisation import new_optimiser, set_rate, trainable
from workers.train.generative.progress import TrainingProgress
from workers.train.generative.questions import Question
from workers.train.generative.ratings import RatedRun
from workers.train.generative.reinforcement import PASSES, Reinforcement, step_figures
from workers.train.generative.stages import StageName, require_same_plan, stage_plan
from workers.train.generative.validation import validation_metrics, validation_worth
from workers.train.limits import LOG_SECONDS, TrainingLimits, TrainingStopped
from workers.train.precision import uses_bfloat16

T = TypeVar("T")
STAGE_MESSAGES = {
    "own": "verdicts after own critiques",
    "reinforce": "reinforcement by right verdicts",
}


@dataclass
class GenerativeTrainer(TrainingProgress):
    """One training, in the stages of `stage_plan`."""

    writer: Writer
    recipe: Recipe
    train: list[Question]
    validation: list[Question]
    seed: int
    report: Report
    limits: TrainingLimits = field(default_factory=TrainingLimits)
    ratings: list[RatedRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.micro_tokens = self.micro_tokens or self.recipe.micro_tokens
        self.writer.in_bfloat16 = uses_bfloat16(self.recipe, self.writer.device)
        language: Any = self.writer.language
        if self.recipe.gradient_checkpointing:
            language.gradient_checkpointing_enable({"use_reentrant": False})
        if self.recipe.lora_rank:
            self.writer.language = add_adapter(language, self.recipe)
        self.writes = any(question.of.has_reasons for question in self.train)
        self.writes |= any(rated.reasons for rated in self.ratings)
        self.plan = stage_plan(self.recipe, len(self.train), writes=self.writes)
        self.question_losses = QuestionLosses(self.writer, self.recipe, self.writes)
        self.people = PeopleStages(
            self.question_losses, self.train, self.ratings, self.seed, self.plan.per_epoch
        )
        self.optimiser = self._new_optimiser(self.recipe.learning_rate)
        self.reference: ReferenceModel | None = None

    @property
    def steps(self) -> int:
        return self.plan.steps

    def run(self) -> None:
        """All stages. Raises TrainingStopped, RewardError."""
        self._resume()
        started, saved, logged, before = time.monotonic(), time.monotonic(), 0.0, self.elapsed
        while self.step < self.steps:
            if self.plan.at(self.step) != self.stage:
                self._begin_stage(self.plan.at(self.step))
            torch.manual_seed(self._seed("step"))
            figures = self._reinforce() if self.stage == "reinforce" else self._learn()
            self.step += 1
            now = time.monotonic()
            self.elapsed = before + now - started
            measures = self.step in self.plan.validation_steps and self.validation
            measured = self._validate() if measures else None
            if measured or self.step == self.steps or now - logged >= LOG_SECONDS:
                self._log_step(figures, measured)
                logged = now
            stop = self.limits.stop()
            if stop or now - saved >= self.recipe.checkpoint_seconds:
                self._save()
                saved = time.monotonic()
            if stop:
                raise TrainingStopped
            if self._has_converged():
                self.step = self.plan.end(self.stage)
            if self.limits.seconds is not None and self.elapsed >= self.limits.seconds:
                self.report(message=f"stopped at the budget of {self.limits.seconds:g} seconds")
                break
        self._save()
        self._take_best()
        if self.recipe.lora_rank:
            self.writer.language = merge_adapter(self.writer.language)
        self.writer.language.eval()

    def _learn(self) -> dict[str, float]:
        """A step of the first stage, or of the second."""
        place = self.step - self.plan.start(self.stage)
        rate = self._set_rate(self.recipe.learning_rate, place)
        batch = self.people.batch(self.stage, place, self._seed)

        def descend() -> float:
            loss = self.people.backward(self.stage, batch, self.micro_tokens)
            self._descend(loss)
            return loss

        self.losses.append(self._within_memory(descend))
        return {"learning_rate": rate}

    def _reinforce(self) -> dict[str, float]:
        number = self.step - self.plan.start("reinforce")
        rate = self._set_rate(self.recipe.reinforce_rate, number)
        dice = random.Random(self._seed("pairs"))  # noqa: S311 (not for secrets)
        drawn = dice.sample(self.train, min(self.recipe.batch_pairs, len(self.train)))
        batch = self.people.by_principles(drawn, self._seed("opposites"))
        reinforcement = Reinforcement(self.writer, self.recipe, self.question_losses, self.reference)
        sampled, reference = self._within_memory(lambda: reinforcement.sampled(batch, self.micro_tokens))

        def climb() -> dict[str, float]:
            figures = reinforcement.backward(batch, sampled, reference, self.micro_tokens)
            self._descend(figures["loss"])
            return figures

        passes = [self._within_memory(climb) for _ in range(PASSES)]
        self.losses.append(sum(each["loss"] for each in passes) / PASSES)
        figures = step_figures(sampled, number + 1, passes)
        self.curve.append(figures)
        return {"learning_rate": rate} | {key: value for key, value in figures.items() if key != "step"}

    # Stages.

    def _begin_stage(self, stage: StageName) -> None:
        """From the best of the stage before."""
        self._take_best()
        self.best, self.patience_count = None, 0
        measured = (
            validation_metrics(self.question_losses, self.validation, self.micro_tokens)
            if self.validation
            else None
        )
        if measured:
            self.measured[self.stage] = measured
        self.stage = stage
        self.report(message=STAGE_MESSAGES[stage], **({"validation": measured} if measured else {}))
        if stage == "reinforce":
            self._begin_to_reinforce()
        else:
            self.optimiser = self._new_optimiser(self.recipe.learning_rate)
        if measured:  # so that the stage makes nothing worse on validation
            self._keep_if_best(measured)

    def _begin_to_reinforce(self) -> None:
        """The model as it is now is what it may not drift far from."""
        if self.limits.checkpoints is not None:
            save_reference(self.writer.language, self.limits.checkpoints)
        self._take_reference()
        self.optimiser = self._new_optimiser(self.recipe.reinforce_rate)

    def _take_reference(self) -> None:
        """Of the weights as they are: adapters are merged, and a new one is trained from here on."""
        if self.recipe.lora_rank:
            torch.manual_seed(self._seed("adapter"))
            self.writer.language = add_adapter(merge_adapter(self.writer.language), self.recipe)
        if self.recipe.reinforce_kl:
            self.reference = ReferenceModel(self.writer, has_adapter=bool(self.recipe.lora_rank))

    def _has_converged(self) -> bool:
        if self.stage == "reinforce" or self.step >= self.plan.end(self.stage):
            return False
        if not self.recipe.patience or self.patience_count < self.recipe.patience:
            return False
        self.report(
            message=f"learnt enough from people: validation has not improved {self.patience_count} times"
        )
        return True

    # Validation.

    def _validate(self) -> dict[str, float]:
        measured = validation_metrics(self.question_losses, self.validation, self.micro_tokens)
        if not self._keep_if_best(measured):
            self.patience_count += 1
        return measured

    def _keep_if_best(self, measured: dict[str, float]) -> bool:
        """Of equals the later."""
        worth = validation_worth(self.stage, measured, singles=self.recipe.reinforce_singles)
        if self.best is not None and worth < self.best["worth"]:
            return False
        weights = trained_weights(self.writer.language)
        self.best, self.patience_count = {"worth": worth, "step": self.step, "weights": weights}, 0
        return True

    def _log_step(self, figures: dict[str, float], measured: dict[str, float] | None) -> None:
        event: dict[str, Any] = {
            "step": self.step,
            "loss": self.losses[-1],
            "progress": {"done": self.step, "total": self.steps},
        }
        self.report(**event | figures | ({"validation": measured} if measured else {}))

    # The optimiser, within memory.

    def _new_optimiser(self, rate: float) -> torch.optim.AdamW:
        return new_optimiser(trainable(self.writer.language), self.recipe, rate)

    def _set_rate(self, peak: float, place: int) -> float:
        total = self.plan.length(self.stage)
        return set_rate(self.optimiser, peak, self.recipe, step=place, total=total)

    def _descend(self, loss: float) -> None:
        """A step by the gradient that was added."""
        if not torch.tensor(loss).isfinite():
            raise RewardError(f"at step {self.step + 1}: the loss became {loss}; lower the learning rate.")
        nn.utils.clip_grad_norm_(trainable(self.writer.language), self.recipe.clip_norm)
        self.optimiser.step()

    def _within_memory(self, compute: Callable[[], T]) -> T:
        """What it gives; half as much goes through the model at once where memory runs out."""
        while True:
            self.optimiser.zero_grad(set_to_none=True)
            try:
                return compute()
            except torch.OutOfMemoryError:
                self._halve_micro_batch()

    def _halve_micro_batch(self) -> None:
        longest = max(question.longest for question in self.train)
        if self.micro_tokens <= longest:
            raise RewardError(
                "one comparison alone does not fit into memory; lower max_tokens, or turn gradient_checkpointing on."
            ) from None
        self.micro_tokens //= 2
        self.report(
            message=f"out of memory: from now on a micro batch has at most {self.micro_tokens} tokens"
        )

    def _seed(self, what: str) -> int:
        return random.Random(f"{self.seed}/{what}/{self.step}").getrandbits(62)  # noqa: S311 (not for secrets)

    # Checkpoints.

    def _take_best(self) -> None:
        if self.best is not None:
            load_weights(self.writer.language, self.best["weights"])

    def _save(self) -> None:
        if self.limits.checkpoints is None:
            return
        state = {
            "weights": trained_weights(self.writer.language),
            "optimiser": self.optimiser.state_dict(),
            "examples": len(self.train),
            "plan": [self.plan.teach, self.plan.own, self.plan.reinforce],
            **self.progress_state(),
        }
        save_checkpoint(self.limits.checkpoints, self.step, state)

    def _resume(self) -> None:
        state = state_to_resume(self.limits.checkpoints, len(self.train), self.report)
        if state is None:
            return
        require_same_plan(state, self.plan, self.recipe, ratings=len(self.ratings))
        self.take_progress(state)
        if self.stage == "reinforce":
            self._resume_reference()
        load_weights(self.writer.language, state["weights"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.report(step=self.step, message=f"resumed from the checkpoint at step {self.step}")

    def _resume_reference(self) -> None:
        if self.limits.checkpoints is not None and (self.recipe.lora_rank or self.recipe.reinforce_kl):
            load_reference(self.writer.language, self.limits.checkpoints)
        self._take_reference()
        self.optimiser = self._new_optimiser(self.recipe.reinforce_rate)
