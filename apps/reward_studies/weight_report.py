"""What a weight fit tells: weights with intervals, held-out accuracy, path of the penalty, trade-off curve. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from apps.core.errors import DomainError
from apps.reward_studies.component_weights import (
    FOLDS,
    FittedWeights,
    OrderedPairs,
    Penalty,
    WeightPath,
    held_out_fits,
    select_weights,
)
from apps.reward_studies.weight_likelihoods import FeedbackForm, Floats, Ints, Likelihood, likelihood_of
from workers.schema.task_folds import task_folds

MIN_ROWS, MIN_TASKS = 20, 5
MAX_PAIRS = 20_000
TRADE_OFF_POINTS = 11
_TOP = 4  # the best quarter is what a trade-off curve looks at


@dataclass(frozen=True)
class WeightFeedback:
    """values: [trajectories, components], before weights. tasks: [trajectories], numbered from 0. current: weights.

    comparisons: (first, second, preferred) by comparison, preferred being 1, 0 or 1/2; labels: (trajectory, label) by
    label, of the other forms.
    """

    names: Sequence[str]
    values: Floats
    tasks: Ints
    current: Floats
    form: FeedbackForm
    comparisons: Sequence[tuple[int, int, float]] = ()
    labels: Sequence[tuple[int, float]] = ()


def weight_report(
    feedback: WeightFeedback, *, penalty: Penalty = "l1", allow_negative: bool = False, seed: int = 0
) -> dict[str, Any]:
    """Plain values, as docs/reward-design.md describes them. Raises DomainError where there is too little feedback."""
    # A thousand fits of a few parameters: threads of a BLAS cost ten times what they compute.
    with threadpool_limits(1):
        return _weight_report(feedback, penalty=penalty, allow_negative=allow_negative, seed=seed)


def _weight_report(
    feedback: WeightFeedback, *, penalty: Penalty, allow_negative: bool, seed: int
) -> dict[str, Any]:
    spread = feedback.values.std(axis=0)
    varying = np.flatnonzero(spread > 1e-9)
    _check(feedback, varying)
    scale = spread[varying]
    standard = (feedback.values[:, varying] - feedback.values[:, varying].mean(axis=0)) / scale
    likelihood = _likelihood(feedback, standard)
    by_task = np.array(task_folds([str(task) for task in range(int(feedback.tasks.max()) + 1)], FOLDS))
    folds = by_task[likelihood.tasks]
    selected = select_weights(likelihood, folds, penalty=penalty, allow_negative=allow_negative, seed=seed)
    fit, draws = selected.fit, selected.draws
    # In the unit of the present reward, so that transforms keep their meaning.
    fitted = standard @ fit.weights
    unit = _unit(feedback.values @ feedback.current, fitted)
    held_out = held_out_fits(likelihood, folds, penalty=penalty, allow_negative=allow_negative)
    pairs = _ordered_pairs(feedback, by_task, seed)
    shares = _shares(standard, fit.weights)
    components = []
    for place, name in enumerate(feedback.names):
        known = np.flatnonzero(varying == place)
        if len(known) == 0:
            components.append(_constant(name, feedback.current[place]))
            continue
        column = int(known[0])
        factor = unit / scale[column]
        low, high = np.percentile(draws[:, column], [2.5, 97.5])
        components.append(
            {
                "name": name,
                "weight": float(fit.weights[column] * factor),
                "low": float(low * factor),
                "high": float(high * factor),
                "current": float(feedback.current[place]),
                "share": float(shares[column]),
                "left_out": float((draws[:, column] == 0).mean()),
                "is_constant": False,
            }
        )
    return {
        "form": feedback.form,
        "rows": len(likelihood.target),
        "trajectories": len(feedback.values),
        "tasks": len(np.unique(likelihood.tasks)),
        "pairs": len(pairs.first),
        "penalty": penalty,
        "allow_negative": allow_negative,
        "strength": fit.strength,
        "components": components,
        "accuracy": _accuracies(feedback, standard, varying, by_task, held_out, pairs),
        "path": _path(feedback, standard, varying, selected.path, pairs),
        "trade_off": _trade_off(feedback, standard, varying, fit, pairs),
    }


def _check(feedback: WeightFeedback, varying: Ints) -> None:
    rows = len(feedback.comparisons) or len(feedback.labels)
    tasks = len(np.unique(feedback.tasks)) if len(feedback.tasks) else 0
    if rows < MIN_ROWS or tasks < MIN_TASKS:
        raise DomainError(
            f"{rows} {feedback.form} of {tasks} tasks are too few to fit weights; at least {MIN_ROWS} of {MIN_TASKS} "
            "tasks are needed. Choose a larger dataset version or campaign, or another kind of feedback."
        )
    if len(varying) == 0:
        raise DomainError(
            "Every component gives all of these trajectories the same value, so there is nothing to weigh. Choose "
            "other components, or more varied trajectories."
        )
    if feedback.labels and len({label for _, label in feedback.labels}) < 2:
        raise DomainError(
            f"All {feedback.form} are equal, so they tell nothing about weights. Choose feedback with good and bad "
            "trajectories."
        )


def _likelihood(feedback: WeightFeedback, standard: Floats) -> Likelihood:
    if feedback.form == "comparisons":
        first, second = (np.array([row[side] for row in feedback.comparisons]) for side in (0, 1))
        target = np.array([row[2] for row in feedback.comparisons])
        return likelihood_of("comparisons", standard[first] - standard[second], target, feedback.tasks[first])
    places = np.array([row[0] for row in feedback.labels])
    target = np.array([row[1] for row in feedback.labels])
    return likelihood_of(feedback.form, standard[places], target, feedback.tasks[places])


def _unit(current: Floats, fitted: Floats) -> float:
    """The factor that gives the fitted reward the standard deviation of the present one."""
    before, after = float(current.std()), float(fitted.std())
    return before / after if before > 1e-9 and after > 1e-9 else 1.0


def _shares(standard: Floats, weights: Floats) -> Floats:
    """Of the variance of the reward, by covariance: they add up to 1."""
    added = standard * weights
    total = added.sum(axis=1)
    if total.std() < 1e-9:
        return np.zeros(len(weights))
    shares: Floats = ((added - added.mean(axis=0)) * (total - total.mean())[:, None]).mean(
        axis=0
    ) / total.var()
    return shares


def _constant(name: str, current: float) -> dict[str, Any]:
    zeros = dict.fromkeys(("weight", "low", "high", "share"), 0.0)
    return {"name": name, "current": float(current), "left_out": 1.0, "is_constant": True} | zeros


def _ordered_pairs(feedback: WeightFeedback, by_task: Ints, seed: int) -> OrderedPairs:
    """Of comparisons, those with a choice; else pairs of trajectories of one fold with different labels, at most
    MAX_PAIRS of them drawn at random, pairs of one task first."""
    if feedback.form == "comparisons":
        found = [
            (first, second) if preferred > 0.5 else (second, first)
            for first, second, preferred in feedback.comparisons
            if preferred != 0.5
        ]
    else:
        by_fold: dict[int, list[tuple[int, float]]] = {}
        for place, label in feedback.labels:
            by_fold.setdefault(int(by_task[feedback.tasks[place]]), []).append((place, label))
        found = [
            (a, b) if label_a > label_b else (b, a)
            for rows in by_fold.values()
            for (a, label_a), (b, label_b) in combinations(rows, 2)
            if label_a != label_b and a != b
        ]
    if not found:
        raise DomainError(
            "All comparisons are ties, so they tell nothing about weights. Choose other feedback."
        )
    pairs = np.array(found)
    if len(pairs) > MAX_PAIRS:
        order = np.random.default_rng(seed).permutation(len(pairs))
        is_within = feedback.tasks[pairs[order, 0]] == feedback.tasks[pairs[order, 1]]
        pairs = pairs[order[np.argsort(~is_within, kind="stable")[:MAX_PAIRS]]]
    first, second = pairs[:, 0], pairs[:, 1]
    task = feedback.tasks[first]
    return OrderedPairs(first, second, task, feedback.tasks[second], by_task[task])


def _accuracies(
    feedback: WeightFeedback,
    standard: Floats,
    varying: Ints,
    by_task: Ints,
    held_out: dict[int, FittedWeights],
    pairs: OrderedPairs,
) -> dict[str, Any]:
    """Held-out: fitted weights and the best single component are chosen on the other folds."""
    singles = _singles(standard, pairs, by_task)
    folds = range(FOLDS)
    nothing = np.zeros(standard.shape[1])
    fitted = [standard @ (held_out[fold].weights if fold in held_out else nothing) for fold in folds]
    by_name: dict[str, Sequence[Floats] | Floats] = {
        "fitted": fitted,
        "current": feedback.values @ feedback.current,
        "equal": feedback.values @ np.ones(feedback.values.shape[1]),
        "single": [standard[:, singles[fold]] for fold in folds],
    }
    result: dict[str, Any] = {}
    for name, scores in by_name.items():
        low, high = pairs.interval(scores)
        result[name] = {"value": pairs.accuracy(scores), "low": low, "high": high}
    counts = np.bincount([singles[fold] for fold in folds], minlength=standard.shape[1])
    result["single"]["component"] = feedback.names[int(varying[int(counts.argmax())])]
    return result


def _singles(standard: Floats, pairs: OrderedPairs, by_task: Ints) -> list[int]:
    """By fold, the component that alone orders the pairs of the other folds best."""
    chosen = []
    for fold in range(FOLDS):
        others = pairs.fold != fold
        trained = pairs.subset(others) if others.any() else pairs
        chosen.append(int(np.argmax([trained.accuracy(column) for column in standard.T])))
    return chosen


def _path(
    feedback: WeightFeedback, standard: Floats, varying: Ints, path: WeightPath, pairs: OrderedPairs
) -> list[dict[str, Any]]:
    """accuracy: on the feedback that was fitted to. weights: of standardised components."""
    return [
        {
            "strength": fit.strength,
            "loss": path.held_out_loss[place],
            "error": path.error[place],
            "accuracy": pairs.accuracy(standard @ fit.weights),
            "weights": {
                feedback.names[int(varying[column])]: float(weight)
                for column, weight in enumerate(fit.weights)
            },
            "is_chosen": place == path.chosen,
        }
        for place, fit in enumerate(path.fits)
    ]


def _trade_off(
    feedback: WeightFeedback, standard: Floats, varying: Ints, fit: FittedWeights, pairs: OrderedPairs
) -> dict[str, Any] | None:
    """Between the two components that the fitted reward is made of most, as weight moves from one to the other and the
    rest stays. Of each point: accuracy, and the mean of both (standardised) among the best quarter by that reward."""
    if len(fit.weights) < 2:
        return None
    size = np.abs(fit.weights)
    order = np.argsort(-size, kind="stable")
    first, second = int(order[0]), int(order[1])
    total = size[first] + size[second] or 1.0
    signs = np.where(fit.weights < 0, -1.0, 1.0)
    points = []
    for share in np.linspace(0, 1, TRADE_OFF_POINTS):
        weights = fit.weights.copy()
        weights[first], weights[second] = signs[first] * total * share, signs[second] * total * (1 - share)
        scores = standard @ weights
        top = np.argsort(-scores, kind="stable")[: max(1, len(scores) // _TOP)]
        points.append(
            {
                "share": float(share),
                "accuracy": pairs.accuracy(scores),
                "first": float(standard[top, first].mean()),
                "second": float(standard[top, second].mean()),
            }
        )
    return {
        "first": feedback.names[int(varying[first])],
        "second": feedback.names[int(varying[second])],
        "fitted_share": float(size[first] / total),
        "points": points,
    }
