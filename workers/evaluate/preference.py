"""How often a model prefers what people preferred, beside rules that need no model."""

from collections.abc import Sequence
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
from workers.schema import PreferenceRecord
from workers.text import SOURCES, Rendered
from workers.text.pairs import Pairs

_OWN = (SOURCES.index("agent"), SOURCES.index("reasoning"))
BASELINES = ("longer", "shorter", "fewer_steps")


@dataclass(frozen=True, slots=True)
class Prediction:
    """A comparison with what the model gave both. length: tokens of the agent's own words; steps: agent steps."""

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


def own_length(one: Rendered) -> int:
    return sum(len(chunk.ids) for chunk in one.chunks if chunk.source in _OWN)


def predictions(pairs: Pairs, raw: Sequence[float]) -> list[Prediction]:
    """raw: of every rendered trajectory of `pairs`."""
    length = [own_length(one) for one in pairs.rendered]
    steps = [len(one.reads) for one in pairs.rendered]
    return [
        Prediction(
            pair.record,
            (raw[pair.a], raw[pair.b]),
            (length[pair.a], length[pair.b]),
            (steps[pair.a], steps[pair.b]),
        )
        for pair in pairs.pairs
    ]


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
    right = [_half(one.margin) for one in strict]
    accuracy, interval = mean_interval(right, tasks)
    baselines = {name: _baseline(name, strict, right, tasks) for name in BASELINES}
    return {
        "accuracy": accuracy,
        "interval": interval,
        "n": len(strict),
        "baselines": baselines,
        "verdict": verdict(baselines),
    }


def verdict(baselines: dict[str, dict[str, Any]]) -> str:
    """In words: which trivial rules the model is not shown to beat."""
    words = {"longer": "longer-wins", "shorter": "shorter-wins", "fewer_steps": "fewer-steps-wins"}
    unbeaten = [words[name] for name, one in baselines.items() if one["interval"][0] <= 0]
    if not unbeaten:
        return "beats every trivial baseline"
    return f"does not beat {' and '.join(unbeaten)}"


def compare_predictions(ours: Sequence[Prediction], theirs: Sequence[Prediction]) -> dict[str, Any]:
    """{difference, interval, n} in accuracy of two models on the same comparisons, in the same order."""
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.is_strict]
    difference, interval = mean_interval(
        [_half(a.margin) - _half(b.margin) for a, b in pairs], [a.record.a.task.id for a, _ in pairs]
    )
    return {"difference": difference, "interval": interval, "n": len(pairs)}


def _baseline(
    name: str, strict: Sequence[Prediction], right: list[float], tasks: list[str]
) -> dict[str, Any]:
    rule = [_half(_rule_margin(name, one)) for one in strict]
    difference, interval = mean_interval([a - b for a, b in zip(right, rule, strict=True)], tasks)
    return {"accuracy": float(np.mean(rule)), "difference": difference, "interval": interval}


def _rule_margin(name: str, one: Prediction) -> int:
    a, b = one.steps if name == "fewer_steps" else one.length
    sign = 1 if one.record.choice == "a" else -1
    return sign * (a - b) if name == "longer" else sign * (b - a)


def _half(margin: float) -> float:
    return 1.0 if margin > 0 else 0.0 if margin < 0 else 0.5
