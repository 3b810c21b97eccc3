"""`annotators = "learnt"`: how reliable annotators are, measured on comparisons that a model was not trained on.

A model that is trained on an annotator's choices soon reproduces them, right or wrong, and then takes the annotator for
reliable. So models are trained on some of the tasks, and each annotator is judged on the others.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workers.objectives import Example, Examples
from workers.objectives.bradley_terry import PRIOR_WEIGHT
from workers.schema import PreferenceRecord
from workers.schema.recipe import CONVEX, Recipe

FOLDS, ROUNDS = 3, 2
TRAININGS = FOLDS * ROUNDS
# Of an annotator of whom nothing is known: careful, Beta(20, 1), with a mean of 0.95; or anything, Beta(1, 1).
_CAREFUL_SHARE, _CAREFUL_RIGHT = 0.8, 20.0
_GRID = (np.arange(100) + 0.5) / 100  # of q
CHOICES_USED = 200  # of each annotator, at most: enough for a standard error below 0.1
_ITERATIONS = 50
_SCALE_PRIOR = 1e-3  # keeps the scale finite where all choices are predicted
Numbers = NDArray[np.float64]
# (records to train on, reliability by annotator, name of the training) -> the rewards of trajectories given by their
# indices in `Examples.rendered`
TrainAndScore = Callable[[Examples, Mapping[str, float], str, Sequence[int]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class HeldOutChoices:
    """margins: [n], reward of the chosen trajectory less that of the other. annotators: [n], names."""

    margins: Numbers
    annotators: Sequence[str]


def recipe_of_folds(recipe: Recipe) -> Recipe:
    """Comparisons alone, from pretrained weights: a parent may have been trained on what is held out.

    Heads of a convex model are drawn around the fit, whose rewards are all that is used.
    """
    ensemble = 1 if recipe.backbone in CONVEX else recipe.ensemble
    return replace(
        recipe, objective="bradley_terry", heads_only=False, folds=0, generators=(), ensemble=ensemble
    )


def needs_estimate(recipe: Recipe, examples: Examples) -> bool:
    """Whether reliabilities are to be learnt, there is someone without an estimate from gold items or overlap, and
    there are tasks and annotators to compare."""
    used = _strict_examples(recipe, examples)
    return (
        recipe.annotators == "learnt"
        and len({example.task for example in used}) >= FOLDS
        and len({example.annotator for example in used}) > 1
        and any(_record(example).strict_reliability is None for example in used)
    )


def estimate_reliabilities(
    examples: Examples, recipe: Recipe, train_and_score: TrainAndScore, *, seed: int
) -> dict[str, float]:
    """q of Crowd-BT (`preference_loss`) by annotator, from `ROUNDS` times `FOLDS` trainings.

    The first round trusts everyone; the second trains with the reliabilities that the first found.
    """
    used = _sample(_strict_examples(recipe, examples), seed)
    tasks = sorted({example.task for example in used})
    random.Random(f"reliability {seed}").shuffle(tasks)  # noqa: S311 (not for secrets)
    fold_by_task = {task: place % FOLDS for place, task in enumerate(tasks)}
    known = {example.annotator: _record(example).strict_reliability for example in used}
    found = dict.fromkeys(known, 1.0)
    for number in range(ROUNDS):
        margins, annotators = [], []
        for fold in range(FOLDS):
            held_out = [example for example in used if fold_by_task[example.task] == fold]
            rest = [example for example in used if fold_by_task[example.task] != fold]
            indices = sorted({index for example in held_out for index in example.trajectory_indices})
            rewards = dict(
                zip(
                    indices,
                    train_and_score(
                        replace(examples, items=rest, criteria={}), found, f"{number}-{fold}", indices
                    ),
                    strict=True,
                )
            )
            for example in held_out:
                a, b = (rewards[index] for index in example.trajectory_indices)
                margins.append(a - b if _record(example).choice == "a" else b - a)
                annotators.append(example.annotator)
        found = fit_reliabilities(HeldOutChoices(np.array(margins), annotators), known)
    return found


def fit_reliabilities(choices: HeldOutChoices, known: Mapping[str, float | None]) -> dict[str, float]:
    """The posterior mean of q by annotator, with P(choice) = q s(c m) + (1 - q) s(-c m), on a grid of q.

    m: the margin; c: how much a difference of held-out rewards means, one number for all annotators, fitted by EM.
    known: by annotator, what gold items and overlap say, which counts as in `reliability_prior_loss`; None: nothing.
    """
    names = sorted(known)
    place = {name: number for number, name in enumerate(names)}
    who = np.array([place[name] for name in choices.annotators])
    log_prior = np.stack([_log_prior(known[name], int((who == place[name]).sum())) for name in names])
    margins = choices.margins / max(float(choices.margins.std()), 1e-9)
    q, scale = _GRID[:, None], 1.0
    for _ in range(_ITERATIONS):
        agrees = _logistic(scale * margins)
        probability = q * agrees + (1 - q) * (1 - agrees)  # [grid, n], of each choice
        log_likelihood = np.zeros((len(names), len(_GRID)))
        np.add.at(log_likelihood, who, np.log(probability).T)
        posterior = _normalised(log_prior + log_likelihood)
        right = (posterior[who].T * (q * agrees / probability)).sum(0)
        slope = float(((right - agrees) * margins).sum()) - _SCALE_PRIOR * scale
        curvature = float((agrees * (1 - agrees) * margins**2).sum()) + _SCALE_PRIOR
        scale = float(np.clip(scale + slope / curvature, 0.01, 2 * scale))
    return {name: float(posterior[place[name]] @ _GRID) for name in names}


def _log_prior(known: float | None, choices: int) -> Numbers:
    """[grid]. Where nothing is known of an annotator: a mixture of careful ones, most of all, and any other."""
    if known is not None:
        counts = PRIOR_WEIGHT * choices
        found: Numbers = counts * (known * np.log(_GRID) + (1 - known) * np.log(1 - _GRID))
        return found
    careful = _CAREFUL_RIGHT * _GRID ** (_CAREFUL_RIGHT - 1)
    mixed: Numbers = np.log(_CAREFUL_SHARE * careful + 1 - _CAREFUL_SHARE)
    return mixed


def _normalised(logs: Numbers) -> Numbers:
    """[annotators, grid], each row with the sum 1."""
    values = np.exp(logs - logs.max(1, keepdims=True))
    result: Numbers = values / values.sum(1, keepdims=True)
    return result


def _strict_examples(recipe: Recipe, examples: Examples) -> list[Example]:
    """Of the criterion that the reward is of, with a winner."""
    return [
        example
        for example in examples.by_objective("bradley_terry")
        if example.criterion == recipe.criterion and _record(example).choice in ("a", "b")
    ]


def _sample(examples: Sequence[Example], seed: int) -> list[Example]:
    """At most `CHOICES_USED` of each annotator, in their order."""
    generator, by_annotator = random.Random(seed), dict[str, list[int]]()  # noqa: S311 (not for secrets)
    for place, example in enumerate(examples):
        by_annotator.setdefault(example.annotator, []).append(place)
    kept = {
        place
        for places in by_annotator.values()
        for place in generator.sample(places, min(len(places), CHOICES_USED))
    }
    return [example for place, example in enumerate(examples) if place in kept]


def _record(example: Example) -> PreferenceRecord:
    assert isinstance(example.record, PreferenceRecord)
    return example.record


def _logistic(x: Numbers) -> Numbers:
    result: Numbers = 1 / (1 + np.exp(-x.clip(-50, 50)))
    return result
