"""Linear models of the same feedback and training data: what a model of another backbone is to beat."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from workers.errors import RewardError
from workers.evaluate.learned_baselines import BaselineScores, ModelScores
from workers.evaluate.predictions import RecordScorer, ScoredRecord
from workers.evaluate.steps import fits_threshold
from workers.models import LoadedModel, ModelScore
from workers.models.backbones.design_matrix import DesignMatrix, new_design_matrix
from workers.schema import FeedbackRecord
from workers.schema.builtin_recipes import searched_recipe
from workers.schema.recipe import IMPLICIT, SINGLE, Recipe
from workers.schema.recipe_help import Channel
from workers.schema.records import record_trajectories
from workers.text import RememberingRenderer, StepTextRenderer
from workers.train.convex import ConvexTrainer
from workers.train.cross_validation import CrossValidation
from workers.train.events import no_report
from workers.train.limits import TrainingLimits
from workers.train.penalty_choice import spread

MAX_RECORDS = 5_000
STRUCTURE: tuple[Channel, ...] = ("structure", "overlap")  # the hand-made features


@dataclass(frozen=True)
class LinearReading:
    """What several linear models of the same trajectories have read of them. renderer: of a linear or hybrid model."""

    renderer: RememberingRenderer
    matrix: DesignMatrix

    @classmethod
    def through(cls, renderer: RememberingRenderer) -> "LinearReading":
        return cls(renderer, new_design_matrix(renderer.conditioned))

    @classmethod
    def of(cls, recipe: Recipe) -> "LinearReading":
        return cls.through(RememberingRenderer(StepTextRenderer(conditioned=recipe.conditioned)))


def linear_scores(
    recipe: Recipe,
    training: Sequence[FeedbackRecord],
    validation: Sequence[FeedbackRecord],
    test: Sequence[FeedbackRecord],
    *,
    seed: int,
    channels: tuple[Channel, ...] = (),
    prefixes: bool = True,
    reading: LinearReading | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> BaselineScores:
    """The linear model's score of each trajectory of the test and the validation records, and of those it learnt from.

    It learns from `known_records`. channels: what it reads of a step; all for none. prefixes: of violations, whether it
    learns from them. Empty where a linear model cannot
    learn from these records.
    """
    reading = reading or LinearReading.of(recipe)
    linear = dataclasses.replace(
        searched_recipe(_with_linear_objective(recipe), "linear"),
        ensemble=1,
        folds=0,
        generators=(),
        annotators="equal" if recipe.annotators == "equal" else "given",  # learning them takes more trainings
        channels=channels,
        prefixes=prefixes,
    )
    training_run = CrossValidation(
        linear,
        seed,
        torch.device("cpu"),
        no_report,
        limits=TrainingLimits(stop),
        cache=reading.matrix,
        renderer=reading.renderer,
    )
    known = known_records(training, validation)
    try:
        trainer, model = training_run.trainer_on(known, [])
        assert isinstance(trainer, ConvexTrainer)
        held_out = _by_content(RecordScorer(model, cache=reading.matrix)([*test, *validation]))
        folds = {
            trainer.examples.items[index].task: fold
            for fold, fit in enumerate(trainer.fold_fits)
            for index in fit.held_out
        }
        return BaselineScores(held_out, _training_scores(trainer, model, known), folds)
    except RewardError:
        return BaselineScores()


def _with_linear_objective(recipe: Recipe) -> Recipe:
    """The recipe, whose objective a linear model has too: of the same records where its own is for decoders alone."""
    if recipe.objective != IMPLICIT:
        return recipe
    kept = {name: float(name in ("bradley_terry", "outcome")) for name in SINGLE}
    return dataclasses.replace(
        recipe, objective="joint", joint_weights=kept, aggregation=Recipe().aggregation
    )


def known_records(
    training: Sequence[FeedbackRecord], validation: Sequence[FeedbackRecord]
) -> list[FeedbackRecord]:
    """What baselines learn from: at most MAX_RECORDS of the training and the validation records; of the training
    records alone where thresholds of step labels are fitted to the scores of the validation records."""
    known = [*training] if fits_threshold(validation) else [*training, *validation]
    return [known[place] for place in spread(range(len(known)), MAX_RECORDS)]


def is_linear(recipe: Recipe) -> bool:
    """Whether the linear baseline would be the model itself."""
    return recipe.backbone == "linear" and not recipe.channels


def _training_scores(
    trainer: ConvexTrainer, model: LoadedModel, known: Sequence[FeedbackRecord]
) -> ModelScores:
    """By the fits that the penalty was chosen by, each of the tasks it had not seen."""
    found: dict[str, ModelScore] = {}
    for fit in trainer.fold_fits:
        trainer.set_fit(fit)
        tasks = {trainer.examples.items[index].task for index in fit.held_out}
        records = [record for record in known if record_trajectories(record)[0].task.id in tasks]
        found |= _by_content(RecordScorer(model, cache=trainer.cache)(records))
    return found


def _by_content(scored: Iterable[ScoredRecord]) -> dict[str, ModelScore]:
    return {
        side.content_hash: score
        for each in scored
        for side, score in zip(record_trajectories(each.record), each.scores, strict=True)
    }
