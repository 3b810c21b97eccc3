"""A linear model of the same feedback and training data: what a model of another backbone is to beat."""

import dataclasses
from collections.abc import Callable, Sequence

import torch

from workers.errors import RewardError
from workers.evaluate.learned_baselines import LinearScores
from workers.evaluate.predictions import RecordScorer
from workers.evaluate.steps import fits_threshold
from workers.schema import FeedbackRecord
from workers.schema.builtin_recipes import searched_recipe
from workers.schema.recipe import Recipe
from workers.schema.records import record_trajectories
from workers.train.convex import spread
from workers.train.cross_validation import CrossValidation
from workers.train.events import no_report
from workers.train.limits import TrainingLimits

MAX_RECORDS = 5_000


def linear_scores(
    recipe: Recipe,
    training: Sequence[FeedbackRecord],
    validation: Sequence[FeedbackRecord],
    test: Sequence[FeedbackRecord],
    *,
    seed: int,
    stop: Callable[[], bool] = lambda: False,
) -> LinearScores:
    """By content hash, the linear model's score of each trajectory of the test and the validation records.

    It learns from at most MAX_RECORDS of the training and the validation records, as the n-gram baseline does; from
    the training records alone where thresholds of step labels are fitted to its scores of the validation records.
    Empty for a recipe that is linear itself, and where a linear model cannot learn from these records.
    """
    if recipe.backbone in ("linear", "features"):
        return {}
    linear = dataclasses.replace(
        searched_recipe(recipe, "linear"),
        ensemble=1,
        folds=0,
        generators=(),
        annotators="equal" if recipe.annotators == "equal" else "given",  # learning them takes more trainings
    )
    known = [*training] if fits_threshold(validation) else [*training, *validation]
    folds = CrossValidation(linear, seed, torch.device("cpu"), no_report, limits=TrainingLimits(stop))
    try:
        _, model = folds.train_on([known[place] for place in spread(range(len(known)), MAX_RECORDS)], [])
        scored = RecordScorer(model)([*test, *validation])
    except RewardError:
        return {}
    return {
        side.content_hash: score
        for each in scored
        for side, score in zip(record_trajectories(each.record), each.scores, strict=True)
    }
