"""k-fold by task: everything is judged by a model that saw nothing of its task."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from workers.evaluate.judged import Judged, judge, on_reward_scale
from workers.models import LoadedModel, RawScore, RewardModel, renderer_of
from workers.objectives import collect
from workers.schema import FeedbackRecord
from workers.schema.recipe import Recipe
from workers.schema.records import trajectories_of
from workers.train.events import Report
from workers.train.learner import Learner, require_usable
from workers.train.loop import Fit, Limits, Stopped
from workers.train.rewards import reward_statistics

_VALIDATION = 10  # of the other folds' tasks, one in so many is for early stopping


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

    def judge(self, records: Sequence[FeedbackRecord]) -> list[Judged]:
        """Every record once, on the reward scale of the model of the fold that does not hold its task."""
        self._encode_ahead(records)
        found: list[Judged] = []
        for fold in range(self.recipe.folds):
            here = [record for record in records if self.fold_of(record, self.recipe.folds, 0) == fold]
            rest = [record for record in records if self.fold_of(record, self.recipe.folds, 0) != fold]
            if here:
                self.report(message=f"fold {fold + 1} of {self.recipe.folds}")
                found += self._judge_fold(fold, rest, here)
        return found

    def fold_of(self, record: FeedbackRecord, folds: int, salt: int) -> int:
        """By a hash of the task, so that a task's fold does not change when others are added."""
        text = f"{self.seed}/{salt}/{trajectories_of(record)[0].task.id}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % folds

    def _encode_ahead(self, records: Sequence[FeedbackRecord]) -> None:
        """All at once: which folds are still to be trained must not change how chunks are grouped."""
        if self.cache is None or self.like is None:
            return
        rendered = [
            self.like.backbone.renderer.render(one) for record in records for one in trajectories_of(record)
        ]
        for _ in self.like.backbone.encode_ahead(rendered, self.cache):
            if self.limits.stop():
                raise Stopped

    def _judge_fold(self, fold: int, rest: list[FeedbackRecord], here: list[FeedbackRecord]) -> list[Judged]:
        kept = self.folder / f"fold-{fold}.json" if self.folder else None
        if kept is not None and kept.is_file():
            scores = [[RawScore(**one) for one in some] for some in json.loads(kept.read_text())]
            return [Judged(record, tuple(some)) for record, some in zip(here, scores, strict=True)]
        judged = self._train_and_judge(rest, here)
        if kept is not None:
            kept.parent.mkdir(exist_ok=True)
            part = kept.with_suffix(".part")
            part.write_text(json.dumps([[asdict(score) for score in one.scores] for one in judged]))
            part.replace(kept)
        return judged

    def _train_and_judge(self, rest: list[FeedbackRecord], here: list[FeedbackRecord]) -> list[Judged]:
        first = trajectories_of(rest[0])
        renderer = renderer_of(self.recipe, first)
        for_validation = [self.fold_of(record, _VALIDATION, 1) == 0 for record in rest]
        train, validation = (
            collect(
                [record for record, is_it in zip(rest, for_validation, strict=True) if is_it is wanted],
                renderer,
                self.recipe,
            )
            for wanted in (False, True)
        )
        require_usable(train)
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
        reward = reward_statistics(learner.model, train.rendered, cache=self.cache)
        manifest = {"criterion": self.recipe.criterion, "criteria": train.criteria, "reward": reward}
        judged = judge(LoadedModel(learner.model, manifest), here, cache=self.cache)
        return [on_reward_scale(one, **reward) for one in judged]
