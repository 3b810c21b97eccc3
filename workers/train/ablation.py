"""What each channel of a linear or hybrid model brings: held-out results of models fitted without it, and of it alone.

Everything is fitted to the training split again, convexly, and measured on the test split. That is one split: the
interval of a difference is about the tasks of the test split, and not about what was trained on.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workers.errors import RewardError
from workers.evaluate.bootstrap import MIN_TASKS, task_count
from workers.evaluate.learned_baselines import LearnedBaselines
from workers.evaluate.predictions import RecordScorer, ScoredRecord
from workers.evaluate.report import report_of
from workers.models import LoadedModel, ModelScore, RewardModel
from workers.models.backbones.channels import is_in_channels
from workers.objectives import Examples
from workers.schema import FeedbackRecord
from workers.schema.recipe_help import CHANNELS, Channel
from workers.schema.records import record_trajectories
from workers.train.convex import ConvexTrainer
from workers.train.events import no_report
from workers.train.limits import TrainingLimits, TrainingStopped
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.penalty_choice import ChosenPenalty, spread

MAX_EXAMPLES = 5_000
_WITHOUT, _ALONE = "without", "alone"
_WITHOUT_PARENT = "without the parent"
# The value of each part of a report; the last two are within `steps`.
_VALUES = {
    "preference": "accuracy",
    "outcome": "auc",
    "scores": "spearman",
    "steps": "first_error_accuracy",
    "located": "accuracy",
    "labels": "accuracy",
}


@dataclass(frozen=True, slots=True)
class _Variant:
    """What is fitted, by its name in the report. penalty: None has it chosen."""

    name: str
    channels: Sequence[Channel]
    penalty: ChosenPenalty | None
    parent: RewardModel | None


@dataclass(frozen=True)
class Ablation:
    """trainer: of the model, after its run. scorer: of the saved model. seconds: that all fits may take. parent: whose
    weights are the mean of the model's prior."""

    trainer: ConvexTrainer
    scorer: RecordScorer
    test: Sequence[FeedbackRecord]
    validation: Sequence[FeedbackRecord]
    seconds: float
    stop: Callable[[], bool] = lambda: False
    parent: RewardModel | None = None

    def run(self) -> dict[str, Any] | None:
        """{seconds, examples, missing, parts: {part: {value, interval, n, tasks, parent, channels: {name: {without,
        alone}}}}}; None for fewer than two channels, or a test split of fewer than MIN_TASKS tasks.

        value: of all channels, fitted to the same examples, of which there are at most MAX_EXAMPLES. without, alone,
        parent (without the parent, where it is used): {value, difference, interval}, the difference being all less
        this; null where it was not fitted. missing: what was not, since time was over or nothing could be learnt.
        Raises TrainingStopped.
        """
        started = time.monotonic()
        columns = self.trainer.backbone.columns.numpy()
        channels = [name for name in CHANNELS if is_in_channels(columns, [name]).any()]
        if len(channels) < 2 or self._test_tasks() < MIN_TASKS:
            return None
        every = self._scored(started, _Variant("all", channels, self.trainer.penalty, self.parent))
        if every is None:
            return None
        models: dict[str, dict[str, ModelScore]] = {}
        missing: list[str] = []
        for variant in self._variants(channels):
            scored = self._scored(started, variant)
            if scored is None:
                missing.append(variant.name)
            else:
                models[variant.name] = _by_content([*scored[0], *scored[1]])
        report = report_of(
            *every, criteria=self.scorer.model.compared_by, learned=LearnedBaselines(models=models)
        )
        return {
            "seconds": time.monotonic() - started,
            "examples": len(self._examples()),
            "missing": missing,
            "parts": _parts(report, channels),
        }

    def _test_tasks(self) -> int:
        return task_count([record_trajectories(record)[0].task.id for record in self.test])

    def _variants(self, channels: Sequence[Channel]) -> Iterator[_Variant]:
        """What is quicker, and tells more, comes first."""
        penalty, parent = self.trainer.penalty, self.parent
        if penalty is not None and penalty.factor:
            yield _Variant(_WITHOUT_PARENT, channels, None, None)
        for name in channels:
            others = [other for other in channels if other != name]
            yield _Variant(f"{_WITHOUT} {name}", others, penalty, parent)
        for name in channels:
            yield _Variant(f"{_ALONE} {name}", [name], None, parent)

    def _examples(self) -> Examples:
        examples = self.trainer.examples
        if len(examples) <= MAX_EXAMPLES:
            return examples
        some = spread(range(len(examples)), MAX_EXAMPLES)
        return dataclasses.replace(examples, items=[examples.items[index] for index in some])

    def _scored(
        self, started: float, variant: _Variant
    ) -> tuple[list[ScoredRecord], list[ScoredRecord]] | None:
        """The test and the validation records by a model of these channels; None where it could not be fitted in
        time."""

        def is_over() -> bool:
            return self.stop() or time.monotonic() - started > self.seconds

        try:
            scorer = self._fitted(variant, is_over)
        except TrainingStopped:
            if self.stop():
                raise
            return None
        except RewardError:
            return None
        return scorer(self.test), scorer(self.validation)

    def _fitted(self, variant: _Variant, is_over: Callable[[], bool]) -> RecordScorer:
        if is_over():
            raise TrainingStopped
        own, examples = self.trainer, self._examples()
        recipe = dataclasses.replace(own.recipe, ensemble=1, channels=tuple(variant.channels))
        module = MultiObjectiveModule(
            recipe,
            examples,
            seed=own.seed,
            like=own.model,
            parent=variant.parent,
            reliabilities=own.module.reliabilities(),
        )
        ConvexTrainer(
            module,
            recipe,
            Examples(),
            seed=own.seed,
            report=no_report,
            cache=own.cache,
            limits=TrainingLimits(is_over),
            penalty=variant.penalty,
            seen_tasks=own.seen_tasks,
        ).run()
        known = {
            "criterion": recipe.criterion,
            "criteria": examples.criteria,
            "reward": {"median": 0.0, "std": 1.0},
        }
        model = LoadedModel(module.model, known)
        model.renderer = self.scorer.model.renderer
        return RecordScorer(model, cache=own.cache)


def _by_content(scored: Sequence[ScoredRecord]) -> dict[str, ModelScore]:
    return {
        side.content_hash: score
        for each in scored
        for side, score in zip(record_trajectories(each.record), each.scores, strict=True)
    }


def _parts(report: Mapping[str, Any], channels: Sequence[Channel]) -> dict[str, Any]:
    steps = report["steps"] or {}
    parts = {**report, "located": steps.get("located"), "labels": steps.get("labels")}
    return {
        part: {
            "value": parts[part][key],
            "interval": parts[part]["interval"],
            "n": parts[part]["n"],
            "tasks": parts[part]["tasks"],
            "parent": _variant(parts[part]["baselines"].get(_WITHOUT_PARENT), key),
            "channels": {
                name: {
                    how: _variant(parts[part]["baselines"].get(f"{how} {name}"), key)
                    for how in (_WITHOUT, _ALONE)
                }
                for name in channels
            },
        }
        for part, key in _VALUES.items()
        if parts[part] and key in parts[part]
    }


def _variant(found: Mapping[str, Any] | None, key: str) -> dict[str, Any] | None:
    if found is None:
        return None
    value = found[key if key in found else "accuracy"]
    return {"value": value, "difference": found["difference"], "interval": found["interval"]}
