"""All baselines that are fitted to the training data of a model, and the best of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.evaluate.best_baseline import best_baselines
from workers.evaluate.learned_baselines import BaselineScores, LearnedBaselines, Part
from workers.evaluate.neighbour_baseline import Embeddings, neighbour_scores
from workers.evaluate.ngram_baseline import fit_ngrams
from workers.models import LoadedModel
from workers.schema import FeedbackRecord
from workers.schema.recipe import VIOLATION, Recipe
from workers.schema.recipe_help import Channel
from workers.schema.records import record_trajectories
from workers.text import RememberingRenderer, StepTextRenderer
from workers.train.limits import TrainingStopped
from workers.train.linear_baseline import STRUCTURE, LinearReading, is_linear, known_records, linear_scores
from workers.train.number_baseline import number_scores

_EMBEDDED_AT_ONCE = 256  # trajectories


def fit_baselines(
    recipe: Recipe,
    model: LoadedModel,
    splits: dict[str, list[FeedbackRecord]],
    *,
    seed: int,
    cache: Any = None,
    stop: Callable[[], bool] = lambda: False,
) -> LearnedBaselines:
    """What baselines of the same training data give the test and the validation records.

    model: the one that is reported; where its encoder is frozen, neighbours are found in what that makes of steps.
    cache: of embeddings of its chunks. Raises TrainingStopped.
    """

    def check() -> None:
        if stop():
            raise TrainingStopped

    training, validation, test = (splits[name] for name in ("train", "validation", "test"))
    ngrams = fit_ngrams([*training, *validation], test, model.compared_by, check=check)
    known = known_records(training, validation)
    models: dict[str, BaselineScores] = {}
    if recipe.backbone != "features":
        own = model.renderer
        is_own = isinstance(own, RememberingRenderer) and isinstance(own.renderer, StepTextRenderer)
        reading = LinearReading.through(own) if is_own else LinearReading.of(recipe)
        for name, channels, prefixes in _linear_models(recipe):
            if name != "linear" or not is_linear(recipe):
                models[name] = linear_scores(
                    recipe,
                    training,
                    validation,
                    test,
                    seed=seed,
                    channels=channels,
                    prefixes=prefixes,
                    reading=reading,
                    stop=stop,
                )
    else:
        models["numbers"] = number_scores(model, known, [*test, *validation], check=check)
    neighbours: dict[Part, BaselineScores] = {}
    embeddings = _embeddings(model, [*known, *validation, *test], cache, check)
    if embeddings:
        asked = [*test, *validation]
        neighbours = neighbour_scores(known, asked, embeddings, model.compared_by, check=check)
    within = LearnedBaselines(
        ngrams.training,
        {name: found.training for name, found in models.items()},
        {part: found.training for part, found in neighbours.items()},
    )
    return LearnedBaselines(
        ngrams.held_out,
        {name: found.held_out for name, found in models.items()},
        {part: found.held_out for part, found in neighbours.items()},
        best_baselines(known, within, model.compared_by, folds=_folds(models.values())),
    )


def _linear_models(recipe: Recipe) -> list[tuple[str, tuple[Channel, ...], bool]]:
    """Names, what they read of a step, and whether they learn from prefixes."""
    found: list[tuple[str, tuple[Channel, ...], bool]] = [
        ("linear", (), True),
        ("structure", STRUCTURE, True),
    ]
    if recipe.objective == VIOLATION:
        found += [("words", ("words",), True), ("whole", (), False)]
    return found


def _folds(models: Iterable[BaselineScores]) -> Mapping[str, int]:
    """Those of any: they are the same for all models of the same records."""
    return next((found.folds for found in models if found.folds), {})


def _embeddings(
    model: LoadedModel, records: Sequence[FeedbackRecord], cache: Any, check: Callable[[], None]
) -> Embeddings:
    """Empty where no frozen encoder reads steps."""
    backbone = model.model.backbone
    sides = {side.content_hash: side for record in records for side in record_trajectories(record)}
    found: dict[str, NDArray[np.float32]] = {}
    for start in range(0, len(sides), _EMBEDDED_AT_ONCE):
        check()
        names = [*sides][start : start + _EMBEDDED_AT_ONCE]
        embedded = backbone.step_embeddings([model.render(sides[name]) for name in names], cache=cache)
        if embedded is None:
            return {}
        found |= {name: steps.astype(np.float32) for name, steps in zip(names, embedded, strict=True)}
    return found
