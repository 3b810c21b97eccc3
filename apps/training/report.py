"""A report in words: what a person should take from the numbers first, then the numbers as rows of a table."""

from dataclasses import dataclass
from typing import Any, Literal

RULES = {
    "longer": "the longer one wins",
    "shorter": "the shorter one wins",
    "fewer_steps": "the one with fewer steps wins",
    "majority": "what was chosen most often wins",
}
_CLOSE = 0.02


@dataclass(frozen=True, slots=True)
class Verdict:
    """tone: whether the model is shown to have learnt (good), is not (bad), or nothing was measured (neutral)."""

    tone: Literal["good", "bad", "neutral"]
    sentence: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """A trivial rule. difference: accuracy of the model minus that of the rule, paired, with its interval."""

    rule: str
    accuracy: float
    difference: float | None
    interval: tuple[float, float] | None

    @property
    def is_beaten(self) -> bool:
        return self.interval is not None and self.interval[0] > 0


def baselines(report: dict[str, Any]) -> list[Baseline]:
    """The strongest rule first."""
    found = []
    for name, one in ((measured(report) or {}).get("baselines") or {}).items():
        rule = RULES.get(name, name.replace("_", " "))
        interval = one.get("interval")
        found.append(
            Baseline(rule, one["accuracy"], one.get("difference"), tuple(interval) if interval else None)
        )
    return sorted(found, key=lambda each: -each.accuracy)


def measured(report: dict[str, Any] | None) -> dict[str, Any] | None:
    """The comparisons a report rests on: those of the test split, else those pooled over folds."""
    preference = (report or {}).get("preference") or {}
    if "accuracy" in preference:
        return dict(preference)
    return ((report or {}).get("pooled") or {}).get("preference")


def verdict(report: dict[str, Any]) -> Verdict:
    preference = measured(report)
    if not preference:
        return Verdict(
            "neutral",
            "Nothing was held out that the model could be measured on; freeze feedback on more tasks.",
        )
    low, high = preference["interval"]
    said = (
        f"It is right on {preference['accuracy']:.1%} of {preference['n']} held-out comparisons "
        f"(95% interval {low:.1%} to {high:.1%})"
    )
    if low <= 0.5:
        return Verdict("bad", f"{said}, which cannot be told from guessing.")
    unbeaten = [each for each in baselines(report) if not each.is_beaten]
    if unbeaten:
        rule = unbeaten[0]
        return Verdict(
            "bad",
            f"{said}. It is not shown to beat a rule that needs no model: “{rule.rule}” reaches {rule.accuracy:.1%}.",
        )
    ours = " and beats every rule that needs no model" if baselines(report) else ""
    return Verdict("good", f"{said}{ours}.{_people(report, preference['accuracy'])}")


def calibration_drawing(report: dict[str, Any] | None) -> dict[str, Any] | None:
    """For charts.js: how often it is right by how sure it is, beside the diagonal of a calibrated model."""
    curve = ((report or {}).get("calibration") or {}).get("curve")
    if not curve:
        return None
    return {
        "kind": "line",
        "x": {"name": "confidence", "min": 0.5, "max": 1},
        "y": {"name": "share right", "min": 0, "max": 1},
        "series": [
            {"name": "model", "points": [[confidence, right] for confidence, right, _ in curve]},
            {"name": "calibrated", "points": [[0.5, 0.5], [1, 1]], "dashed": True},
        ],
    }


def shown(report: dict[str, Any] | None) -> dict[str, Any]:
    """What the template of a report takes."""
    return {
        "report": report,
        "measured": measured(report),
        "verdict": verdict(report) if report is not None else None,
        "baselines": baselines(report or {}),
        "calibration": calibration_drawing(report),
    }


def _people(report: dict[str, Any], accuracy: float) -> str:
    person = (report.get("annotators") or {}).get("leave_one_out")
    if person is None:
        return ""
    how = (
        "as often as"
        if abs(person - accuracy) < _CLOSE
        else "less often than"
        if accuracy < person
        else "more often than"
    )
    return f" That is {how} one annotator agrees with the majority of the others ({person:.1%})."
