"""k-fold cross-validation by task: each record is scored by a model that has not seen its task."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from workers.evaluate.ngram_baseline import NgramRewards, ngram_rewards
from workers.evaluate.predictions import ScoredRecord, on_reward_scale, score_records
from workers.evaluate.steps import fits_threshold
from workers.models import LoadedModel, ModelScore, RewardModel, renderer_of
from workers.models.artifact import objective_of
from workers.objectives import Examples, collect, collect_training
from workers.schema import FeedbackRecord
from workers.schema.conditions import training_records
from workers.schema.recipe import CONVEX, Recipe
from workers.schema.records import record_trajectories
from workers.text import Renderer
from workers.train.events import Report, no_report
from workers.train.learnt_reliability import estimate_reliabilities, needs_estimate, recipe_of_folds
from workers.train.limits import TrainingLimits, TrainingStopped
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.reward_statistics import reward_statistics, score_rendered
from workers.train.spread_calibration import calibrate_spread
from workers.train.synthetic_pairs import generate
from workers.train.trainers import Trainer, trainer_class

_VALIDATION = 10  # one in ten of the other folds' tasks is for early stopping


@dataclass(frozen=True)
class CrossValidationResult:
    """scored_records: every record once. validation: what each fold had for early stopping, to fit thresholds on."""

    scored_records: list[ScoredRecord] = field(default_factory=list)
    validation: list[ScoredRecord] = field(default_factory=list)

    def add(self, other: "CrossValidationResult") -> None:
        self.scored_records.extend(other.scored_records)
        self.validation.extend(other.validation)


@dataclass(frozen=True)
class CrossValidation:
    """What the trainings of all folds share. like: a model whose frozen encoder they may share.

    folder: where finished folds are kept, so that a resumed run does not train them again. renderer: of all
    trajectories; that of the recipe for None.
    """

    recipe: Recipe
    seed: int
    device: torch.device
    report: Report
    limits: TrainingLimits = field(default_factory=TrainingLimits)
    cache: Any = None
    like: RewardModel | None = None
    folder: Path | None = None
    renderer: Renderer | None = None

    def score_held_out(self, records: Sequence[FeedbackRecord]) -> CrossValidationResult:
        """Every record once, on the reward scale of the model of the fold that does not hold its task."""
        self._fill_cache(records)
        result = CrossValidationResult()
        for fold in range(self.recipe.folds):
            held_out = [record for record in records if self.fold_of(record, self.recipe.folds, 0) == fold]
            rest = [record for record in records if self.fold_of(record, self.recipe.folds, 0) != fold]
            if held_out:
                self.report(message=f"fold {fold + 1} of {self.recipe.folds}")
                result.add(self._score_fold(fold, rest, held_out))
        return result

    def fold_of(self, record: FeedbackRecord, folds: int, salt: int) -> int:
        """By a hash of the task: a task's fold does not change when other tasks are added."""
        text = f"{self.seed}/{salt}/{record_trajectories(record)[0].task.id}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % folds

    def ngram_rewards(self, records: Sequence[FeedbackRecord], check: Callable[[], None]) -> NgramRewards:
        """Of every trajectory, by a regression that has not seen its task."""
        rewards: NgramRewards = {}
        for fold in range(self.recipe.folds):
            held_out = [record for record in records if self.fold_of(record, self.recipe.folds, 0) == fold]
            rest = [record for record in records if self.fold_of(record, self.recipe.folds, 0) != fold]
            rewards |= ngram_rewards(rest, held_out, {self.recipe.criterion}, check=check)
        return rewards

    def _fill_cache(self, records: Sequence[FeedbackRecord]) -> None:
        """For all folds together: how chunks are grouped must not depend on the folds still to be trained."""
        if self.cache is None or self.like is None:
            return
        renderer = self.like.backbone.renderer
        rendered = [
            renderer.render(trajectory) for record in records for trajectory in record_trajectories(record)
        ]
        for _ in self.like.backbone.encode_ahead(rendered, self.cache):
            if self.limits.stop():
                raise TrainingStopped

    def _score_fold(
        self, fold: int, rest: list[FeedbackRecord], held_out: list[FeedbackRecord]
    ) -> CrossValidationResult:
        training, validation = self.split(rest)
        splits = (held_out, validation)
        path = self.folder / f"fold-{fold}.json" if self.folder else None
        if path is not None and path.is_file():
            stored = json.loads(path.read_text())
            # An earlier version may have split them otherwise.
            if [len(split) for split in stored] == [len(split) for split in splits]:
                return CrossValidationResult(*map(_with_scores, splits, stored))
        _, model = self.train_on(training, validation)
        results = [
            [
                on_reward_scale(scored, **model.manifest["reward"])
                for scored in score_records(model, split, cache=self.cache)
            ]
            for split in splits
        ]
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part")
            scores = [[[asdict(score) for score in scored.scores] for scored in split] for split in results]
            part.write_text(json.dumps(scores))
            part.replace(path)
        return CrossValidationResult(*results)

    def split(self, records: Sequence[FeedbackRecord]) -> tuple[list[FeedbackRecord], list[FeedbackRecord]]:
        """Training records, and those of a tenth of the tasks for early stopping, or to fit thresholds on."""
        if self.recipe.backbone in CONVEX and not fits_threshold(records):
            return [*records], []
        parts: tuple[list[FeedbackRecord], list[FeedbackRecord]] = ([], [])
        for record in records:
            parts[self.fold_of(record, _VALIDATION, 1) == 0].append(record)
        return parts

    def train(self, records: Sequence[FeedbackRecord]) -> tuple[MultiObjectiveModule, LoadedModel]:
        """A model of these records alone, and the module that was trained."""
        return self.train_on(*self.split(records))

    def train_on(
        self, records: Sequence[FeedbackRecord], validation_records: Sequence[FeedbackRecord]
    ) -> tuple[MultiObjectiveModule, LoadedModel]:
        """A model of these records, and the module that was trained."""
        trainer, model = self.trainer_on(records, validation_records)
        return trainer.module, model

    def trainer_on(
        self, records: Sequence[FeedbackRecord], validation_records: Sequence[FeedbackRecord]
    ) -> tuple[Trainer, LoadedModel]:
        """A model of these records and of what the recipe's generators make of them, and the trainer after its run.
        Without hard negatives, which would take a training more."""
        first = record_trajectories([*records, *validation_records][0])
        renderer = self.renderer or renderer_of(self.recipe, first)
        learnt = training_records(
            records, negate=self.recipe.negate, hindsight=self.recipe.hindsight, seed=self.seed
        )
        made = generate(records, self.recipe, seed=self.seed)
        training = collect_training([*learnt, *made], renderer, self.recipe)
        validation = collect(validation_records, renderer, self.recipe)
        trainer = self._trained(self.recipe, training, validation, self._reliabilities(training, validation))
        # In the precision of training: a measurement of the recipe, not the model that will be served.
        reward = reward_statistics(
            score_rendered(trainer.model, training.own_rendered, cache=trainer.end_cache).raw,
            self.recipe.objective,
        )
        manifest = objective_of(self.recipe) | {"criteria": training.criteria, "reward": reward}
        if (line := trainer.module.rating_line()) is not None:
            manifest["rating_line"] = line
        model = LoadedModel(trainer.model, manifest)
        model.renderer = self.renderer or model.renderer
        return trainer, model

    def _reliabilities(self, training: Examples, validation: Examples) -> dict[str, float] | None:
        if not needs_estimate(self.recipe, training):
            return None
        recipe = recipe_of_folds(self.recipe)

        def train_and_score(
            examples: Examples, known: Mapping[str, float], name: str, indices: Sequence[int]
        ) -> Sequence[float]:
            trainer = self._trained(recipe, examples, validation, known, report=no_report)
            rendered = [examples.rendered[index] for index in indices]
            scores = score_rendered(trainer.model, rendered, cache=trainer.end_cache)
            rewards: list[float] = scores.raw.tolist()
            return rewards

        return estimate_reliabilities(training, recipe, train_and_score, seed=self.seed)

    def _trained(
        self,
        recipe: Recipe,
        training: Examples,
        validation: Examples,
        reliabilities: Mapping[str, float] | None,
        report: Report | None = None,
    ) -> Trainer:
        torch.manual_seed(self.seed)
        module = MultiObjectiveModule(
            recipe,
            training,
            seed=self.seed,
            device=str(self.device),
            like=self.like,
            reliabilities=reliabilities,
        )
        trainer = trainer_class(recipe)(
            module,
            recipe,
            validation,
            seed=self.seed,
            report=report or self.report,
            cache=self.cache,
            limits=self.limits,
        )
        trainer.run()
        calibrate_spread(module, validation, trainer.end_cache)
        return trainer


def _with_scores(records: Sequence[FeedbackRecord], scores: list[list[dict[str, Any]]]) -> list[ScoredRecord]:
    return [
        ScoredRecord(record, tuple(_model_score(score) for score in record_scores))
        for record, record_scores in zip(records, scores, strict=True)
    ]


def _model_score(fields: dict[str, Any]) -> ModelScore:
    """Files of earlier versions call the offset `baseline`."""
    known = {"offset" if name == "baseline" else name: value for name, value in fields.items()}
    quantiles = {float(level): value for level, value in known.get("quantiles", {}).items()}
    return ModelScore(**(known | {"quantiles": quantiles}))
