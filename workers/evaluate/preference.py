"""How often a model prefers what people preferred, next to rules that need no model."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.evaluate.bootstrap import (
    MIN_TASKS,
    difference_interval,
    mean_interval,
    task_count,
    weighted_interval,
)
from workers.evaluate.calibration import (
    expected_calibration_error,
    fit_temperature,
    log_loss,
    reliability_curve,
)
from workers.evaluate.learned_baselines import LearnedBaselines, ModelScores
from workers.evaluate.ngram_baseline import NgramRewards
from workers.evaluate.predictions import ScoredRecord, expand_rankings
from workers.evaluate.ranks import Numbers, spearman, spearman_draws
from workers.objectives.length_effect import agent_text_length
from workers.schema import PreferenceRecord, RankingRecord
from workers.schema.records import record_trajectories

if TYPE_CHECKING:  # it takes seconds to import
    from workers.models.generative.model import PairComparison

BASELINES = ("longer", "shorter", "fewer_steps")
_WORDS = {
    "longer": "longer-wins",
    "shorter": "shorter-wins",
    "fewer_steps": "fewer-steps-wins",
    "ngrams": "an n-gram regression",
    "linear": "a linear model",
    "structure": "a linear model of hand-made features",
    "numbers": "a regression on numbers",
    "neighbours": "nearest neighbours",
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """A comparison with what the model gave both. length: characters of the agent's own words; steps: agent steps; std:
    the spread of the ensemble's heads.

    compared: of a generative model, which judged both together; `raw` is then half of its log-odds either way, and
    `single` what it gave each on its own.
    """

    record: PreferenceRecord
    raw: tuple[float, float]
    length: tuple[int, int]
    steps: tuple[int, int]
    std: tuple[float | None, float | None] = (None, None)
    compared: "PairComparison | None" = None
    single: tuple[float, float] = (0.0, 0.0)

    @property
    def pointwise(self) -> "Prediction":
        """The same comparison by the scores of each trajectory on its own."""
        return replace(self, raw=self.single) if self.compared is not None else self

    @property
    def is_strict(self) -> bool:
        return self.record.choice in ("a", "b")

    @property
    def margin(self) -> float:
        """By how much the model prefers what was chosen; only for strict ones."""
        sign = 1 if self.record.choice == "a" else -1
        return sign * (self.raw[0] - self.raw[1])


def predictions(scored_records: Sequence[ScoredRecord], criteria: Collection[str | None]) -> list[Prediction]:
    """Of the comparisons by these criteria (None: overall) and the pairs of rankings; other records are left out."""
    wanted = [
        scored
        for scored in scored_records
        if isinstance(scored.record, PreferenceRecord | RankingRecord) and scored.record.criterion in criteria
    ]
    texts = {side.content_hash: side for scored in wanted for side in record_trajectories(scored.record)}
    length = {key: agent_text_length(side) for key, side in texts.items()}
    found = []
    for expand_ranking in expand_rankings(wanted):
        sides = record_trajectories(expand_ranking.record)
        first, second = sides
        if first.content_hash == second.content_hash:
            continue
        single = expand_ranking.scores[0].raw, expand_ranking.scores[1].raw
        compared = expand_ranking.compared
        found.append(
            Prediction(
                expand_ranking.record,
                single if compared is None else (compared.log_odds / 2, -compared.log_odds / 2),
                (length[first.content_hash], length[second.content_hash]),
                (len(first.agent_steps), len(second.agent_steps)),
                (expand_ranking.scores[0].std, expand_ranking.scores[1].std),
                compared,
                single,
            )
        )
    return found


def preference_report(
    found: Sequence[Prediction], validation: Sequence[Prediction], *, learned: LearnedBaselines | None = None
) -> dict[str, Any] | None:
    """`preference` and `calibration` of a report; None without a strict comparison. learned: see `accuracy_report`.

    Accuracy is over strict comparisons (ties and both-bad have no winner to find; they are counted in `ties` and
    `both_bad`); two equal rewards are half right. The temperature is fitted on `validation`.
    """
    strict = [prediction for prediction in found if prediction.is_strict]
    if not strict:
        return None
    margins = np.array([prediction.margin for prediction in strict])
    temperature = fit_temperature([prediction.margin for prediction in validation if prediction.is_strict])
    preference = accuracy_report(strict, learned) | {
        "log_loss": log_loss(margins / temperature),
        "ties": sum(prediction.record.choice == "tie" for prediction in found),
        "both_bad": sum(prediction.record.choice == "both_bad" for prediction in found),
        "subsets": subsets(strict),
        "by_length_difference": by_length_difference(strict),
        "length_controlled": length_controlled(strict),
        "uncertainty": uncertainty_report(strict),
    }
    calibration = {
        "ece": expected_calibration_error(list(margins), temperature),
        "temperature": temperature,
        "curve": [list(point) for point in reliability_curve(list(margins), temperature)],
    }
    return {"preference": preference, "calibration": calibration}


def accuracy_report(strict: Sequence[Prediction], learned: LearnedBaselines | None = None) -> dict[str, Any]:
    """{accuracy, interval, n, tasks, baselines, best_baseline, verdict}, the interval by task.

    learned: fitted to the model's training data; each is a baseline where it has a reward for both sides of every
    comparison. best_baseline: see `best_baselines`.
    """
    learned = learned or LearnedBaselines()
    tasks = [prediction.record.a.task.id for prediction in strict]
    right = [correctness(prediction.margin) for prediction in strict]
    accuracy, interval = mean_interval(right, tasks)
    margins = _baseline_margins(strict, learned)
    baselines = {name: _baseline(values, right, tasks) for name, values in margins.items()}
    best = learned.best_of("preference", baselines)
    return {
        "accuracy": accuracy,
        "interval": interval,
        "n": len(strict),
        "tasks": task_count(tasks),
        "baselines": baselines,
        "best_baseline": best,
        "verdict": verdict(baselines, task_count(tasks), None if best is None else best["name"]),
    }


def accuracy_baselines(strict: Sequence[Prediction], learned: LearnedBaselines) -> dict[str, float]:
    """By name, the accuracy of each baseline; none for no comparison."""
    margins = _baseline_margins(strict, learned) if strict else {}
    return {name: float(np.mean([correctness(value) for value in found])) for name, found in margins.items()}


def _baseline_margins(strict: Sequence[Prediction], learned: LearnedBaselines) -> dict[str, Sequence[float]]:
    """By name, of the right one over the wrong one."""
    margins: dict[str, Sequence[float]] = {
        name: [_rule_margin(name, prediction) for prediction in strict] for name in BASELINES
    }
    if by_ngrams := _ngram_margins(strict, learned.ngrams):
        margins["ngrams"] = by_ngrams
    known = learned.scores_of_all("preference", (prediction.record for prediction in strict))
    return margins | {name: _model_margins(strict, scores) for name, scores in known.items()}


def uncertainty_report(strict: Sequence[Prediction]) -> dict[str, Any] | None:
    """{spearman, interval, n, tasks}: the rank correlation of the spread of the heads on a comparison, the root of the
    summed variances of both sides, with the error (1 wrong, 1/2 equal, 0 right). Above 0, `std` tells where the model
    errs. None without an ensemble, or where either does not vary."""
    known = [
        (math.hypot(first, second), 1 - correctness(prediction.margin), prediction.record.a.task.id)
        for prediction in strict
        for first, second in [prediction.std]
        if first is not None and second is not None
    ]
    spread, error = np.array([row[0] for row in known]), np.array([row[1] for row in known])
    found = spearman(spread, error)
    if found is None:
        return None
    tasks = [row[2] for row in known]
    between = weighted_interval(partial(spearman_draws, spread, error), tasks, draws=300)
    return {"spearman": found, "interval": between, "n": len(known), "tasks": task_count(tasks)}


def length_controlled(strict: Sequence[Prediction]) -> dict[str, Any] | None:
    """{accuracy, interval, n, longer, shorter}: the mean of the accuracy on comparisons whose winner has the longer
    agent text (`longer`) and on those whose winner has the shorter one. A rule by length alone gets one half.

    n: comparisons of sides of different lengths. None without both. Dubois et al. (2024, arXiv 2404.04475) regress
    length out of a win rate instead, which needs a model of it.
    """
    sign = np.array([np.sign(_rule_margin("longer", prediction)) for prediction in strict])
    right = np.array([correctness(prediction.margin) for prediction in strict])
    if not ((sign > 0).any() and (sign < 0).any()):
        return None

    def by_side(weights: Numbers) -> Numbers:
        """[2, draws]"""
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Numbers = np.stack(
                [(weights * right) @ side / (weights @ side) for side in (sign > 0, sign < 0)]
            )
        return found

    longer, shorter = by_side(np.ones((1, len(strict))))[:, 0].tolist()
    tasks = [prediction.record.a.task.id for prediction in strict]
    return {
        "accuracy": (longer + shorter) / 2,
        "interval": weighted_interval(lambda weights: by_side(weights).mean(0), tasks, draws=500),
        "n": int(np.count_nonzero(sign)),
        "longer": longer,
        "shorter": shorter,
    }


def subsets(strict: Sequence[Prediction]) -> dict[str, dict[str, Any]]:
    """Accuracy by what the task's metadata calls its `subset`, where it does, and where there are several criteria by
    each: {name: {accuracy, interval, n}}."""
    names: dict[str, list[Prediction]] = {}
    several = len({prediction.record.criterion for prediction in strict}) > 1
    for prediction in strict:
        if several:
            by = prediction.record.criterion
            names.setdefault("overall" if by is None else f"by {by}", []).append(prediction)
        name = prediction.record.a.task.metadata.get("subset")
        if name is not None:
            names.setdefault(str(name), []).append(prediction)
    return {name: _accuracy(some) for name, some in sorted(names.items())}


def by_length_difference(strict: Sequence[Prediction]) -> list[dict[str, Any]]:
    """Accuracy by quarters of how much longer the chosen one is, from much shorter to much longer."""
    if len(strict) < 8:
        return []
    longer = np.array([_rule_margin("longer", prediction) for prediction in strict])
    edges = np.quantile(longer, [0.25, 0.5, 0.75])
    place = np.searchsorted(edges, longer, side="left")
    found = []
    for quarter in range(4):
        some = [prediction for prediction, at in zip(strict, place, strict=True) if at == quarter]
        if some:
            inside = longer[place == quarter]
            found.append(_accuracy(some) | {"from": int(inside.min()), "to": int(inside.max())})
    return found


def _accuracy(some: Sequence[Prediction]) -> dict[str, Any]:
    accuracy, interval = mean_interval(
        [correctness(prediction.margin) for prediction in some],
        [prediction.record.a.task.id for prediction in some],
    )
    return {"accuracy": accuracy, "interval": interval, "n": len(some)}


def verdict(baselines: dict[str, dict[str, Any]], tasks: int, best: str | None = None) -> str:
    """In words: which baselines the model is not shown to beat; of fewer than MIN_TASKS tasks nothing is shown.

    best: the name of the best baseline, where it is known."""
    if tasks < MIN_TASKS:
        return f"too few tasks ({tasks}; at least {MIN_TASKS})"
    unbeaten = [name for name, baseline in baselines.items() if baseline["interval"][0] <= 0]
    if not unbeaten:
        return f"beats every {'' if set(baselines) - set(BASELINES) else 'trivial '}baseline"
    others = " and ".join(_WORDS.get(name, name) for name in unbeaten if name != best)
    if best is None:
        return f"does not beat {others}"
    if best in unbeaten:
        return f"does not beat the best baseline, {_WORDS[best]}{others and f', nor {others}'}"
    return f"beats the best baseline, {_WORDS[best]}, but not {others}"


def _ngram_margins(strict: Sequence[Prediction], ngrams: NgramRewards) -> list[float]:
    """Of the right one over the wrong one; empty where one is not known."""
    margins = []
    for record in (prediction.record for prediction in strict):
        a, b = (ngrams.get((side.content_hash, record.criterion)) for side in (record.a, record.b))
        if a is None or b is None:
            return []
        margins.append(a - b if record.choice == "a" else b - a)
    return margins


def _model_margins(strict: Sequence[Prediction], scores: ModelScores) -> list[float]:
    margins = []
    for record in (prediction.record for prediction in strict):
        margin = scores[record.a.content_hash].raw - scores[record.b.content_hash].raw
        margins.append(margin if record.choice == "a" else -margin)
    return margins


def _baseline(margins: Sequence[float], right: list[float], tasks: list[str]) -> dict[str, Any]:
    rule = [correctness(margin) for margin in margins]
    difference, interval = difference_interval(right, rule, tasks)
    return {"accuracy": float(np.mean(rule)), "difference": difference, "interval": interval}


def _rule_margin(name: str, prediction: Prediction) -> int:
    a, b = prediction.steps if name == "fewer_steps" else prediction.length
    sign = 1 if prediction.record.choice == "a" else -1
    return sign * (a - b) if name == "longer" else sign * (b - a)


def correctness(margin: float) -> float:
    return 1.0 if margin > 0 else 0.0 if margin < 0 else 0.5
