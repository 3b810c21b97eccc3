"""Training a judge that writes: from people's verdicts and reasons, then from whether its own verdicts are right.

Everything a step draws depends on the seed and the step's number alone, so a training that was taken up again goes on
as it would have.
"""

import copy
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from workers.errors import RewardError
from workers.models.generative.writer import Line, LineLogProbs, Writer, micro_batches
from workers.objectives.generative import critique_loss, pair_loss, reinforce_loss, run_loss
from workers.schema.recipe import Recipe
from workers.train.checkpoints import save_checkpoint, state_to_resume
from workers.train.events import Report
from workers.train.generative.questions import Question, pair_micro_batches
from workers.train.generative.sampling import (
    Sampled,
    log_odds_after_critique,
    log_probs_of,
    odds_of,
    sample,
    with_verdict,
)
from workers.train.limits import TrainingLimits, TrainingStopped
from workers.train.optimiser import rate_factor, uses_bfloat16

T = TypeVar("T")
_LOG_SECONDS = 1.0
_MEASURED = 200  # pairs of validation, at most: each is two critiques
_PASSES = 2  # over what was sampled
_REFERENCE = "reference.safetensors"


@dataclass
class GenerativeTrainer:
    """One training. losses: one number for every step, of both stages. curve: of reinforcement, by step."""

    writer: Writer
    recipe: Recipe
    train: list[Question]
    validation: list[Question]
    seed: int
    report: Report
    limits: TrainingLimits = field(default_factory=TrainingLimits)
    losses: list[float] = field(default_factory=list)
    curve: list[dict[str, float]] = field(default_factory=list)
    step: int = 0
    patience_count: int = 0
    best: dict[str, Any] | None = None
    taught: dict[str, float] | None = None  # validation after the first stage
    reinforces: bool = False
    elapsed: float = 0.0
    micro_tokens: int = 0

    def __post_init__(self) -> None:
        self.micro_tokens = self.micro_tokens or self.recipe.micro_tokens
        self.writer.in_bfloat16 = uses_bfloat16(self.recipe, self.writer.device)
        language: Any = self.writer.language
        if self.recipe.gradient_checkpointing:
            language.gradient_checkpointing_enable({"use_reentrant": False})
        if self.recipe.lora_rank:
            from peft import LoraConfig, get_peft_model

            options = LoraConfig(
                r=self.recipe.lora_rank,
                lora_alpha=self.recipe.lora_alpha,  # a float, where peft annotates an int
                target_modules="all-linear",
                lora_dropout=0.0,
                bias="none",
                task_type="CAUSAL_LM",
            )
            self.writer.language = get_peft_model(language, options)
        self.trainable = [
            parameter for parameter in self.writer.language.parameters() if parameter.requires_grad
        ]
        per_epoch = -(-len(self.train) // self.recipe.batch_pairs)
        self.taught_steps = per_epoch * self.recipe.epochs
        self.steps = self.taught_steps + self.recipe.reinforce_steps
        parts = self.recipe.evaluations_per_epoch
        self.validation_steps = {
            epoch * per_epoch + max(1, round(per_epoch * part / parts))
            for epoch in range(self.recipe.epochs)
            for part in range(1, parts + 1)
        }
        every = max(1, self.recipe.reinforce_steps // 10)
        self.validation_steps |= set(range(self.taught_steps + every, self.steps + 1, every)) | {self.steps}
        self.writes = any(question.of.has_reasons for question in self.train)
        self.optimiser = self._new_optimiser(self.recipe.learning_rate)
        self.reference: Writer | None = None

    def run(self) -> None:
        """Both stages. Raises Stopped, RewardError."""
        self._resume()
        started, saved, logged, before = time.monotonic(), time.monotonic(), 0.0, self.elapsed
        while self.step < self.steps:
            if self.step >= self.taught_steps and not self.reinforces:
                self._begin_to_reinforce()
            torch.manual_seed(self._seed("step"))
            said = self._reinforce() if self.reinforces else self._teach()
            self.step += 1
            now = time.monotonic()
            self.elapsed = before + now - started
            measured = self._validate() if self.step in self.validation_steps and self.validation else None
            if measured or self.step == self.steps or now - logged >= _LOG_SECONDS:
                self._log_step(said, measured)
                logged = now
            stop = self.limits.stop()
            if stop or now - saved >= self.recipe.checkpoint_seconds:
                self._save()
                saved = time.monotonic()
            if stop:
                raise TrainingStopped
            if not self.reinforces and self._is_taught_enough():
                self.step = self.taught_steps
            if self.limits.seconds is not None and self.elapsed >= self.limits.seconds:
                self.report(message=f"stopped at the budget of {self.limits.seconds:g} seconds")
                break
        self._save()
        self._take_best()
        if self.recipe.lora_rank:
            self.writer.language = self.writer.language.merge_and_unload()
        self.writer.language.eval()

    # First stage: what people said.

    def _teach(self) -> dict[str, float]:
        rate = self._set_rate(self.recipe.learning_rate, self.step, self.taught_steps)
        per_epoch = -(-len(self.train) // self.recipe.batch_pairs)
        epoch, place = divmod(self.step, per_epoch)
        order = list(range(len(self.train)))
        random.Random(f"{self.seed}/{epoch}").shuffle(order)  # noqa: S311 (not for secrets)
        chosen = order[place * self.recipe.batch_pairs : (place + 1) * self.recipe.batch_pairs]
        batch = self._by_principles([self.train[index] for index in chosen])
        dice = random.Random(self._seed("order"))  # noqa: S311 (not for secrets)
        orders = [dice.randrange(2) for _ in batch]
        self.losses.append(self._within_memory(lambda: self._descend(batch, orders)))
        return {"learning_rate": rate}

    def _descend(self, batch: Sequence[Question], orders: Sequence[int]) -> float:
        """One optimiser step; its loss."""
        self.writer.language.train()
        whole, total = sum(item.of.weight for item in batch) or 1.0, 0.0
        for part in pair_micro_batches(batch, self.micro_tokens):
            loss = self._taught_loss([batch[index] for index in part], [orders[index] for index in part])
            weights = loss.new_tensor([batch[index].of.weight for index in part])
            share = (loss * weights).sum() / whole
            self._require_finite(share)
            share.backward()
            total += float(share.detach())
        self._step()
        return total

    def _taught_loss(self, batch: Sequence[Question], orders: Sequence[int]) -> Tensor:
        """[questions]"""
        pairs = [
            self.writer.line(item.pair[order], item.pair_reasons[order], is_formed=False)
            for item, order in zip(batch, orders, strict=True)
        ]
        read = self.writer.read([*pairs, *self._about_runs(batch)])
        n = len(batch)
        yes, no = read.words(self.writer.renderer.of_pair)
        is_a = torch.tensor(orders, device=yes.device) == 0
        right, wrong = torch.where(is_a, yes[:n], no[:n]), torch.where(is_a, no[:n], yes[:n])
        loss = pair_loss(right, wrong, self._smoothing(batch)) + self._run_loss(batch, read)
        return loss + self.recipe.critique_weight * self._writing(batch, read)

    def _about_runs(self, batch: Sequence[Question]) -> list[Line]:
        """Of the better runs, then of the others."""
        return [
            self.writer.line(item.runs[side], item.run_reasons[side], is_formed=False)
            for side in (0, 1)
            for item in batch
        ]

    def _run_loss(self, batch: Sequence[Question], read: LineLogProbs) -> Tensor:
        """[questions]. read: ends with the lines about their runs."""
        good, poor = read.words(self.writer.renderer.of_run)
        z, n = good - poor, len(batch)
        return run_loss(z[-2 * n : -n], z[-n:], self._smoothing(batch), centring=self.recipe.centring)

    def _smoothing(self, batch: Sequence[Question]) -> Tensor:
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

    def _is_taught_enough(self) -> bool:
        if (
            self.step >= self.taught_steps
            or not self.recipe.patience
            or self.patience_count < self.recipe.patience
        ):
            return False
        self.report(
            message=f"learnt enough from people: validation has not improved {self.patience_count} times"
        )
        return True

    # Second stage: whether its own verdicts are right.

    def _begin_to_reinforce(self) -> None:
        """From the best of the first stage; the model as it is then is what it may not drift far from."""
        self._take_best()
        self.best, self.patience_count, self.reinforces = None, 0, True
        path = self._reference_path
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part")
            save_file(self._weights(), part)
            part.replace(path)
        if self.validation:
            self.taught = self._validate()
            self.report(message="reinforcement by right verdicts", validation=self.taught)
        self._take_reference()
        self.optimiser = self._new_optimiser(self.recipe.reinforce_rate)

    @property
    def _reference_path(self) -> Path | None:
        return self.limits.checkpoints / _REFERENCE if self.limits.checkpoints is not None else None

    def _take_reference(self) -> None:
        if not self.recipe.reinforce_kl:
            return
        language = copy.deepcopy(self.writer.language)
        if self._reference_path is not None:
            _load_weights(language, load_file(self._reference_path))
        self.reference = Writer(language.eval().requires_grad_(False), self.writer.renderer)
        self.reference.in_bfloat16 = self.writer.in_bfloat16

    def _reinforce(self) -> dict[str, float]:
        number = self.step - self.taught_steps
        rate = self._set_rate(self.recipe.reinforce_rate, number, self.recipe.reinforce_steps)
        dice = random.Random(self._seed("pairs"))  # noqa: S311 (not for secrets)
        batch = self._by_principles(dice.sample(self.train, min(self.recipe.batch_pairs, len(self.train))))
        self.writer.language.eval()
        sampled = self._within_memory(
            lambda: sample(self.writer, batch, self.recipe, self.micro_tokens, writes=self.writes)
        )
        reference = (
            sampled.old
            if self.reference is None
            else log_probs_of(self.reference, sampled, self.micro_tokens)
        )
        said: dict[str, float] = defaultdict(float)
        for _ in range(_PASSES):
            loss, clipped, divergence = self._within_memory(lambda: self._climb(batch, sampled, reference))
            said["loss"] += loss / _PASSES
            said["clipped"] += clipped / _PASSES
            said["divergence"] = divergence
        self.losses.append(said["loss"])
        told = {
            "step": float(number + 1),
            "right": float(sampled.right.mean()),
            "agrees": float(sampled.agrees.mean()),
            "reward": float(sampled.rewards.mean()),
            "formed": float(sampled.formed.mean()),
            "entropy": float(sampled.entropy.mean()),
            "length": sum(sampled.own) / len(sampled.own),
            "clipped": said["clipped"],
            "divergence": said["divergence"],
        }
        self.curve.append(told)
        return {"learning_rate": rate} | {key: value for key, value in told.items() if key != "step"}

    def _climb(
        self, batch: Sequence[Question], sampled: Sampled, reference: Tensor
    ) -> tuple[float, float, float]:
        """One optimiser step on what was sampled, and on verdicts about single runs, which go on learning from people.

        Its loss, the share of tokens that were clipped, and the mean divergence from the reference.
        """
        self.writer.language.train()
        total = clipped = divergence = 0.0
        tokens = sum(sampled.own) + len(sampled.own)
        device = self.writer.device
        for part in micro_batches(sampled.lines, self.micro_tokens):
            read = self.writer.read([sampled.lines[index] for index in part])
            now, mask = with_verdict(
                read.log_probs,
                odds_of(read, self.writer),
                sampled.says_a[part],
                [sampled.own[index] for index in part],
                sampled.width,
            )
            old, start = sampled.old[part].to(device), reference[part].to(device)
            loss = (
                reinforce_loss(
                    now,
                    old,
                    start,
                    sampled.advantages[part].to(device),
                    mask,
                    clip=self.recipe.reinforce_clip,
                    kl=self.recipe.reinforce_kl,
                ).sum()
                / tokens
            )
            self._require_finite(loss)
            loss.backward()
            total += float(loss.detach())
            with torch.no_grad():
                moved = ((now - old).exp() - 1).abs() > self.recipe.reinforce_clip
                clipped += float((moved * mask).sum()) / tokens
                difference = (start - now).clamp(-10, 10)
                divergence += float(((difference.exp() - difference - 1) * mask).sum()) / tokens
        for some in pair_micro_batches(batch, self.micro_tokens):
            questions = [batch[index] for index in some]
            loss = self._run_loss(questions, self.writer.read(self._about_runs(questions)))
            (loss.sum() / len(batch)).backward()
        self._step()
        return total, clipped, divergence

    # What both stages share.

    def _by_principles(self, batch: Sequence[Question]) -> list[Question]:
        """A share of those by a principle is asked by its opposite."""
        dice = random.Random(self._seed("opposites"))  # noqa: S311 (not for secrets)
        drawn = [dice.random() < self.recipe.negate for _ in batch]
        return [item.opposite or item if turn else item for item, turn in zip(batch, drawn, strict=True)]

    def _validate(self) -> dict[str, float]:
        """In the first stage the least loss is best, in the second the most right verdicts, each order on its own; of
        equals the later."""
        measured = self._validation_metrics()
        worth = measured["right"] if self.reinforces else -measured["loss"]
        if self.best is None or worth >= self.best["worth"]:
            self.best, self.patience_count = (
                {"worth": worth, "step": self.step, "weights": self._weights()},
                0,
            )
        else:
            self.patience_count += 1
        return measured

    @torch.no_grad()
    def _validation_metrics(self) -> dict[str, float]:
        """loss: as in the first stage, the mean of both orders. accuracy: of the mean of both orders' chances after the
        likeliest critiques. right: of verdicts in one order. consistency: both orders name the same run."""
        self.writer.language.eval()
        losses: list[Tensor] = []
        for part in pair_micro_batches(self.validation, self.micro_tokens):
            batch = [self.validation[index] for index in part]
            losses += [self._taught_loss(batch, [order] * len(batch)) for order in (0, 1)]
        prompts = [question.pair[order] for question in self.validation[:_MEASURED] for order in (0, 1)]
        odds = log_odds_after_critique(self.writer, prompts, self.micro_tokens).view(-1, 2)
        chance = (odds[:, 0].sigmoid() + (-odds[:, 1]).sigmoid()) / 2
        first, second = odds[:, 0] > 0, odds[:, 1] < 0
        return {
            "loss": float(torch.cat(losses).mean()),
            "accuracy": float(((chance > 0.5).float() + 0.5 * (chance == 0.5).float()).mean()),
            "right": float((first.float() + second.float()).mean() / 2),
            "consistency": float((first == second).float().mean()),
        }

    def _log_step(self, said: dict[str, float], measured: dict[str, float] | None) -> None:
        event: dict[str, Any] = {
            "step": self.step,
            "loss": self.losses[-1],
            "progress": {"done": self.step, "total": self.steps},
        }
        self.report(**event | said | ({"validation": measured} if measured else {}))

    def _new_optimiser(self, rate: float) -> torch.optim.AdamW:
        decay = self.recipe.weight_decay
        groups = [
            {
                "params": [parameter for parameter in self.trainable if parameter.ndim >= 2],
                "weight_decay": decay,
            },
            {
                "params": [parameter for parameter in self.trainable if parameter.ndim < 2],
                "weight_decay": 0.0,
            },
        ]
        return torch.optim.AdamW([group for group in groups if group["params"]], lr=rate, fused=True)

    def _set_rate(self, peak: float, step: int, total: int) -> float:
        rate = peak * rate_factor(step, total, self.recipe.warmup)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        return rate

    def _step(self) -> None:
        nn.utils.clip_grad_norm_(self.trainable, self.recipe.clip_norm)
        self.optimiser.step()

    def _require_finite(self, loss: Tensor) -> None:
        if not bool(loss.isfinite()):
            raise RewardError(
                f"at step {self.step + 1}: the loss became {float(loss.detach())}; lower the learning rate."
            )

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

    def _weights(self) -> dict[str, Tensor]:
        """Of what is trained, copied."""
        return {
            name: named_parameter.detach().cpu().clone()
            for name, named_parameter in self.writer.language.named_parameters()
            if named_parameter.requires_grad
        }

    def _take_best(self) -> None:
        if self.best is not None:
            _load_weights(self.writer.language, self.best["weights"])

    def _save(self) -> None:
        if self.limits.checkpoints is None:
            return
        state = {
            "weights": self._weights(),
            "optimiser": self.optimiser.state_dict(),
            "examples": len(self.train),
            **{name: getattr(self, attribute) for name, attribute in _CHECKPOINT_KEYS.items()},
        }
        save_checkpoint(self.limits.checkpoints, self.step, state)

    def _resume(self) -> None:
        state = state_to_resume(self.limits.checkpoints, len(self.train), self.report)
        if state is None:
            return
        for name, attribute in _CHECKPOINT_KEYS.items():
            setattr(self, attribute, state[name])
        _load_weights(self.writer.language, state["weights"])
        if self.reinforces:
            self._take_reference()
            self.optimiser = self._new_optimiser(self.recipe.reinforce_rate)
        self.optimiser.load_state_dict(state["optimiser"])
        self.report(step=self.step, message=f"resumed from the checkpoint at step {self.step}")


# Names in checkpoints, which do not change, and the attributes.
_CHECKPOINT_KEYS = {
    **{
        name: name
        for name in ("losses", "curve", "step", "best", "taught", "reinforces", "elapsed", "micro_tokens")
    },
    "bad": "patience_count",
}


def _load_weights(language: nn.Module, weights: dict[str, Tensor]) -> None:
    there = dict(language.named_parameters())
    with torch.no_grad():
        for name, weight in weights.items():
            there[name].copy_(weight)
