"""How often a model prefers what people preferred, beside rules that need no model."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.evaluate.bootstrap import mean_interval
from workers.evaluate.calibration import (
    expected_calibration_error,
    fit_temperature,
    log_loss,
    reliability_curve,
)
from workers.evaluate.judged import Judged, as_pairs, own_length
from workers.schema import PreferenceRecord, RankingRecord
from workers.schema.records import record_trajectories

BASELINES = ("longer", "shorter", "fewer_steps")


@dataclass(frozen=True, slots=True)
class Prediction:
    """A comparison with what the model gave both. length: characters of the agent's own words; steps: agent steps."""

    record: PreferenceRecord
    raw: tuple[float, float]
    length: tuple[int, int]
    steps: tuple[int, int]

    @property
    def is_strict(self) -> bool:
        return self.record.choice in ("a", "b")

    @property
    def margin(self) -> float:
        """By how much the model prefers what was chosen; only for strict ones."""
        sign = 1 if self.record.choice == "a" else -1
        return sign * (self.raw[0] - self.raw[1])


def predictions(judged: Sequence[Judged], criteria: Collection[str | None]) -> list[Prediction]:
    """Of the comparisons by these criteria (None: overall) and the pairs of rankings; other records are left out."""
    wanted = [
        one
        for one in judged
        if isinstance(one.record, PreferenceRecord | RankingRecord) and one.record.criterion in criteria
    ]
    texts = {side.content_hash: side for one in wanted for side in record_trajectories(one.record)}
    length = {key: own_length(side) for key, side in texts.items()}
    found = []
    for one in as_pairs(wanted):
        sides = record_trajectories(one.record)
        first, second = sides
        if first.content_hash == second.content_hash:
            continue
        found.append(
            Prediction(
                one.record,
                (one.scores[0].raw, one.scores[1].raw),
                (length[first.content_hash], length[second.content_hash]),
                (len(first.agent_steps), len(second.agent_steps)),
            )
        )
    return found


def preference_report(found: Sequence[Prediction], validation: Sequence[Prediction]) -> dict[str, Any] | None:
    """`preference` and `calibration` of a report; None without a strict comparison.

    Accuracy is over strict comparisons (ties and both-bad have no winner to find; they are counted in `ties` and
    `both_bad`); two equal rewards are half right. The temperature is fitted on `validation`.
    """
    strict = [one for one in found if one.is_strict]
    if not strict:
        return None
    margins = np.array([one.margin for one in strict])
    temperature = fit_temperature([one.margin for one in validation if one.is_strict])
    preference = accuracy_report(strict) | {
        "log_loss": log_loss(margins / temperature),
        "ties": sum(one.record.choice == "tie" for one in found),
        "both_bad": sum(one.record.choice == "both_bad" for one in found),
        "subsets": subsets(strict),
        "by_length_difference": by_length_difference(strict),
    }
    calibration = {
        "ece": expected_calibration_error(list(margins), temperature),
        "temperature": temperature,
        "curve": [list(one) for one in reliability_curve(list(margins), temperature)],
    }
    return {"preference": preference, "calibration": calibration}


def accuracy_report(strict: Sequence[Prediction]) -> dict[str, Any]:
    """{accuracy, interval, n, baselines, verdict}, the interval by task."""
    tasks = [one.record.a.task.id for one in strict]
    right = [half(one.margin) for one in strict]
    accuracy, interval = mean_interval(right, tasks)
    baselines = {name: _baseline(name, strict, right, tasks) for name in BASELINES}
    return {
        "accuracy": accuracy,
        "interval": interval,
        "n": len(strict),
        "baselines": baselines,
        "verdict": verdict(baselines),
    }


def subsets(strict: Sequence[Prediction]) -> dict[str, dict[str, Any]]:
    """Accuracy by what the task's metadata calls its `subset`, where it does, and where there are several criteria by
    each: {name: {accuracy, interval, n}}."""
    names: dict[str, list[Prediction]] = {}
    several = len({one.record.criterion for one in strict}) > 1
    for one in strict:
        if several:
            by = one.record.criterion
            names.setdefault("overall" if by is None else f"by {by}", []).append(one)
        name = one.record.a.task.metadata.get("subset")
        if name is not None:
            names.setdefault(str(name), []).append(one)
    return {name: _accuracy(some) for name, some in sorted(names.items())}


def by_length_difference(strict: Sequence[Prediction]) -> list[dict[str, Any]]:
    """Accuracy by quarters of how much longer the chosen one is, from much shorter to much longer."""
    if len(strict) < 8:
        return []
    longer = np.array([_rule_margin("longer", one) for one in strict])
    edges = np.quantile(longer, [0.25, 0.5, 0.75])
    place = np.searchsorted(edges, longer, side="left")
    found = []
    for quarter in range(4):
        some = [one for one, at in zip(strict, place, strict=True) if at == quarter]
        if some:
            inside = longer[place == quarter]
            found.append(_accuracy(some) | {"from": int(inside.min()), "to": int(inside.max())})
    return found


def _accuracy(some: Sequence[Prediction]) -> dict[str, Any]:
    accuracy, interval = mean_interval(
        [half(one.margin) for one in some], [one.record.a.task.id for one in some]
    )
    return {"accuracy": accuracy, "interval": interval, "n": len(some)}


def verdict(baselines: dict[str, dict[str, Any]]) -> str:
    """In words: which trivial rules the model is not shown to beat."""
    words = {"longer": "longer-wins", "shorter": "shorter-wins", "fewer_steps": "fewer-steps-wins"}
    unbeaten = [words[name] for name, one in baselines.items() if one["interval"][0] <= 0]
    if not unbeaten:
        return "beats every trivial baseline"
    return f"does not beat {' and '.join(unbeaten)}"


def _baseline(
    name: str, strict: Sequence[Prediction], right: list[float], tasks: list[str]
) -> dict[str, Any]:
    rule = [half(_rule_margin(name, one)) for one in strict]
    difference, interval = mean_interval([a - b for a, b in zip(right, rule, strict=True)], tasks)
    return {"accuracy": float(np.mean(rule)), "difference": difference, "interval": interval}


def _rule_margin(name: str, one: Prediction) -> int:
    a, b = one.steps if name == "fewer_steps" else one.length
    sign = 1 if one.record.choice == "a" else -1
    return sign * (a - b) if name == "longer" else sign * (b - a)


def half(margin: float) -> float:
    return 1.0 if margin > 0 else 0.0 if margin < 0 else 0.5
