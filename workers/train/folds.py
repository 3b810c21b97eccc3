"""k-fold by task: everything is judged by a model that saw nothing of its task."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from workers.evaluate.judged import Judged, judge, on_reward_scale
from workers.models import LoadedModel, ModelScore, RewardModel, renderer_of
from workers.objectives import collect
from workers.schema import FeedbackRecord
from workers.schema.recipe import Recipe
from workers.schema.records import record_trajectories
from workers.train.events import Report
from workers.train.learner import Learner, require_usable
from workers.train.loop import Fit, Limits, Stopped
from workers.train.rewards import measured, reward_statistics

_VALIDATION = 10  # of the other folds' tasks, one in so many is for early stopping


@dataclass(frozen=True)
class Pooled:
    """judged: every record once. validation: what each fold's model had for early stopping, to fit thresholds on."""

    judged: list[Judged] = field(default_factory=list)
    validation: list[Judged] = field(default_factory=list)

    def add(self, other: "Pooled") -> None:
        self.judged.extend(other.judged)
        self.validation.extend(other.validation)


@dataclass(frozen=True)
class Folds:
    """What every fold's training has in common. like: a model whose frozen encoder all may share.

    folder: where finished folds are kept, so that a run that is taken up again does not train them twice.
    """

    recipe: Recipe
    seed: int
    device: torch.device
    report: Report
    limits: Limits = field(default_factory=Limits)
    cache: Any = None
    like: RewardModel | None = None
    folder: Path | None = None

    def judge(self, records: Sequence[FeedbackRecord]) -> Pooled:
        """Every record once, on the reward scale of the model of the fold that does not hold its task."""
        self._encode_ahead(records)
        found = Pooled()
        for fold in range(self.recipe.folds):
            here = [record for record in records if self.fold_of(record, self.recipe.folds, 0) == fold]
            rest = [record for record in records if self.fold_of(record, self.recipe.folds, 0) != fold]
            if here:
                self.report(message=f"fold {fold + 1} of {self.recipe.folds}")
                found.add(self._judge_fold(fold, rest, here))
        return found

    def fold_of(self, record: FeedbackRecord, folds: int, salt: int) -> int:
        """By a hash of the task, so that a task's fold does not change when others are added."""
        text = f"{self.seed}/{salt}/{record_trajectories(record)[0].task.id}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % folds

    def _encode_ahead(self, records: Sequence[FeedbackRecord]) -> None:
        """All at once: which folds are still to be trained must not change how chunks are grouped."""
        if self.cache is None or self.like is None:
            return
        rendered = [
            self.like.backbone.renderer.render(one)
            for record in records
            for one in record_trajectories(record)
        ]
        for _ in self.like.backbone.encode_ahead(rendered, self.cache):
            if self.limits.stop():
                raise Stopped

    def _judge_fold(self, fold: int, rest: list[FeedbackRecord], here: list[FeedbackRecord]) -> Pooled:
        wanted = (here, self.split(rest)[1])
        kept = self.folder / f"fold-{fold}.json" if self.folder else None
        if kept is not None and kept.is_file():
            return Pooled(*map(_with_scores, wanted, json.loads(kept.read_text())))
        _, model = self.train(rest)
        found = [
            [on_reward_scale(one, **model.manifest["reward"]) for one in judge(model, some, cache=self.cache)]
            for some in wanted
        ]
        if kept is not None:
            kept.parent.mkdir(exist_ok=True)
            part = kept.with_suffix(".part")
            scores = [[[asdict(score) for score in one.scores] for one in some] for some in found]
            part.write_text(json.dumps(scores))
            part.replace(kept)
        return Pooled(*found)

    def split(self, records: Sequence[FeedbackRecord]) -> tuple[list[FeedbackRecord], list[FeedbackRecord]]:
        """To train on, and a tenth of the tasks for early stopping."""
        parts: tuple[list[FeedbackRecord], list[FeedbackRecord]] = ([], [])
        for record in records:
            parts[self.fold_of(record, _VALIDATION, 1) == 0].append(record)
        return parts

    def train(self, records: Sequence[FeedbackRecord]) -> tuple[Learner, LoadedModel]:
        """A model of these records alone, and what trained it."""
        renderer = renderer_of(self.recipe, record_trajectories(records[0]))
        train, validation = (collect(part, renderer, self.recipe) for part in self.split(records))
        require_usable(train, self.recipe)
        torch.manual_seed(self.seed)
        learner = Learner(self.recipe, train, seed=self.seed, device=str(self.device), like=self.like)
        fit = Fit(
            learner,
            self.recipe,
            validation,
            seed=self.seed,
            report=self.report,
            cache=self.cache,
            limits=self.limits,
        )
        fit.run()
        # In the precision of training: a measurement of the recipe, not the model that will be served.
        reward = reward_statistics(measured(learner.model, train.rendered, cache=self.cache).raw)
        manifest = {"criterion": self.recipe.criterion, "criteria": train.criteria, "reward": reward}
        return learner, LoadedModel(learner.model, manifest)


def _with_scores(records: Sequence[FeedbackRecord], scores: list[list[dict[str, Any]]]) -> list[Judged]:
    return [
        Judged(record, tuple(_model_score(score) for score in item))
        for record, item in zip(records, scores, strict=True)
    ]


def _model_score(fields: dict[str, Any]) -> ModelScore:
    """As an earlier version wrote it, the offset is `baseline`."""
    return ModelScore(**{"offset" if name == "baseline" else name: value for name, value in fields.items()})
