"""A report in words: what a person should take from the numbers first, then the numbers as rows of a table."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from apps.accounts.models import Project
from apps.trajectories.selectors import keys_by_content_hash

RULES = {
    "longer": "the longer one wins",
    "shorter": "the shorter one wins",
    "fewer_steps": "the one with fewer steps wins",
    "majority": "what was chosen most often wins",
    "no_error": "there is never an error",
    "first_step": "the first step is wrong",
    "last_step": "the last step is wrong",
    "most_common": "always the place that is wrong most often",
}
COMPARISONS = "Held-out comparisons"
_CLOSE = 0.02
_CAVEATS = ("chance", "unchecked")


@dataclass(frozen=True, slots=True)
class Verdict:
    """tone: whether the model is shown to have learnt (good), is not (bad), or nothing was measured (neutral)."""

    tone: Literal["good", "bad", "neutral"]
    sentence: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """A trivial rule. difference: what the model reaches minus what the rule does, paired, with its interval."""

    rule: str
    value: float
    difference: float | None
    interval: tuple[float, float] | None

    @property
    def is_beaten(self) -> bool:
        return self.interval is not None and self.interval[0] > 0


@dataclass(frozen=True, slots=True)
class Measure:
    """What a model reaches on one kind of feedback. chance: what guessing reaches; formula: what the number is.

    kind: the part of the report it is in.
    """

    kind: str
    title: str
    name: str
    formula: str
    value: float
    interval: tuple[float, float] | None
    n: int
    of: str
    chance: float | None
    baselines: list[Baseline]
    mistakes: list["Mistake"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One trajectory that was judged wrongly. key: of the trajectory, None where the project has it not."""

    task: str
    words: str
    key: int | None


@dataclass(frozen=True, slots=True)
class Subset:
    """Of a published benchmark. matrix: RM-Bench's, [style of the chosen answer][style of the rejected one]."""

    name: str
    value: float | None
    n: int | None
    matrix: list[list[float]] | None


def measures(report: dict[str, Any] | None) -> list[Measure]:
    """Those that apply, the one the verdict rests on first."""
    report = report or {}
    found = []
    if preference := measured(report):
        formula = "Share of comparisons in which the winner's reward is higher; equal rewards count one half"
        found.append(
            _measure("preference", COMPARISONS, "Right", formula, preference, "accuracy", "comparisons", 0.5)
        )
    if outcome := report.get("outcome"):
        formula = "AUC: the chance that a success has a higher reward than a failure"
        found.append(_measure("outcome", "Outcomes", "AUC", formula, outcome, "auc", "trajectories", 0.5))
    steps = report.get("steps") or {}
    if "first_error_accuracy" in steps:
        formula = "Share of trajectories whose first wrong step, or that there is none, is named exactly"
        found.append(
            _measure(
                "steps", "First errors", "Right", formula, steps, "first_error_accuracy", "trajectories", None
            )
        )
    if located := steps.get("located"):
        formula = "Share of trajectories with an error whose weakest step is the first wrong one"
        found.append(
            _measure("steps", "Place of the error", "Right", formula, located, "accuracy", "failures", None)
        )
    if labels := steps.get("labels"):
        formula = "Share of labelled steps whose label is the most probable one"
        found.append(_measure("steps", "Step labels", "Right", formula, labels, "accuracy", "steps", None))
    if (published := report.get("published")) and published["score"] is not None:
        formula = f"The score that {published['benchmark']} defines"
        part = {"interval": None} | published
        found.append(
            _measure("published", published["benchmark"], "Score", formula, part, "score", "rows", None)
        )
    if scores := report.get("scores"):
        formula = f"Spearman's rank correlation with what {_givers(scores)} gave, the mean over criteria"
        found.append(
            _measure(
                "scores", "Ratings and scores", "Correlation", formula, scores, "spearman", "scores", 0.0
            )
        )
    return found


def _givers(scores: dict[str, Any]) -> str:
    """Who scored what a model was measured on; judges are never called people."""
    judges = scores.get("by_judges", 0)  # reports from before judges could score
    if not judges:
        return "people"
    return "judges" if judges == scores["n"] else f"people, and of {judges} of {scores['n']} only judges,"


def _measure(
    kind: str,
    title: str,
    name: str,
    formula: str,
    part: dict[str, Any],
    key: str,
    of: str,
    chance: float | None,
) -> Measure:
    rules = []
    for rule, one in (part.get("baselines") or {}).items():
        interval = one.get("interval")
        words = RULES.get(rule, rule.replace("_", " "))
        rules.append(
            Baseline(words, one[key if key in one else "accuracy"], one.get("difference"), _pair(interval))
        )
    rules.sort(key=lambda each: -each.value)
    return Measure(
        kind, title, name, formula, part[key], _pair(part.get("interval")), part["n"], of, chance, rules
    )


def measured(report: dict[str, Any] | None) -> dict[str, Any] | None:
    """The comparisons a report rests on: those of the test split, else those pooled over folds."""
    preference = (report or {}).get("preference") or {}
    if "accuracy" in preference:
        return dict(preference)
    return ((report or {}).get("pooled") or {}).get("preference")


def verdict(report: dict[str, Any]) -> Verdict:
    """About what was measured first; then whatever is wrong with the model.

    That another kind of feedback taught it nothing, or what is not known, is said too, but does not make it a bad one.
    """
    found = measures(report)
    if not found:
        return Verdict(
            "neutral",
            "Nothing was held out that the model could be measured on; freeze feedback on more tasks.",
        )
    first = _of_measure(found[0], report)
    others = [
        one
        for one in report.get("findings") or []
        if one["name"] != "chance" or one.get("kind", "preference") != found[0].kind
    ]
    is_bad = any(one["name"] not in _CAVEATS for one in others)
    return Verdict(
        "bad" if is_bad else first.tone, " ".join([first.sentence, *(one["sentence"] for one in others)])
    )


def _of_measure(one: Measure, report: dict[str, Any]) -> Verdict:
    said = _said(one)
    low = one.interval[0] if one.interval else one.value
    if one.chance is not None and low <= one.chance:
        return Verdict("bad", f"{said}, which cannot be told from guessing.")
    unbeaten = [each for each in one.baselines if each.interval is not None and not each.is_beaten]
    if unbeaten:
        rule = unbeaten[0]
        reached = f"“{rule.rule}” reaches {_number(one, rule.value)}."
        return Verdict("bad", f"{said}. It is not shown to beat a rule that needs no model: {reached}")
    beats = " and beats every rule that needs no model" if one.baselines else ""
    people = _people(report, one.value) if one.title == COMPARISONS else ""
    return Verdict("good", f"{said}{beats}.{people}")


def _said(one: Measure) -> str:
    low, high = one.interval or (one.value, one.value)
    within = f"(95% interval {_number(one, low)} to {_number(one, high)})"
    if one.name == "Right":
        return f"It is right on {one.value:.1%} of {one.n} held-out {one.of} {within}"
    return f"On {one.n} held-out {one.of} it reaches {one.formula.partition(':')[0]} {_number(one, one.value)} {within}"


def _number(one: Measure, value: float) -> str:
    return f"{value:.1%}" if one.name == "Right" else f"{value:.2f}"


def _pair(interval: Any) -> tuple[float, float] | None:
    return (interval[0], interval[1]) if interval else None


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


def best_of_n_drawing(report: dict[str, Any] | None) -> dict[str, Any] | None:
    """For charts.js: success when the run with the highest reward of n is taken, beside any and the best."""
    curve = ((report or {}).get("outcome") or {}).get("best_of_n") or []
    if len(curve) < 2:
        return None
    names = {"chosen": "chosen by reward", "random": "any", "best": "the best there is"}
    return {
        "kind": "line",
        "x": {"name": "runs to choose from"},
        "y": {"name": "success", "min": 0, "max": 1},
        "series": [
            {"name": words, "points": [[one["n"], one[name]] for one in curve], "dashed": name != "chosen"}
            for name, words in names.items()
        ],
    }


_REINFORCED = {  # by drawing: its y axis, and the series by their names in the report
    "rights": (
        {"name": "share of verdicts", "min": 0, "max": 1},
        {"right": "right", "agrees": "the other order agrees", "formed": "given by itself"},
    ),
    "lengths": ({"name": "tokens of a critique", "min": 0}, {"length": "tokens"}),
    "entropies": ({"name": "nats", "min": 0}, {"entropy": "entropy of a word", "divergence": "divergence"}),
}


def reinforcement_drawings(report: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """For charts.js, by name: what became of a judge's own verdicts, critiques and words while it was reinforced."""
    curve = ((report or {}).get("train") or {}).get("reinforced") or []
    if len(curve) < 2:
        return {}
    return {
        name: {
            "kind": "line",
            "x": {"name": "step"},
            "y": axis,
            "series": [
                {"name": words, "points": [[one["step"], one[key]] for one in curve]}
                for key, words in series.items()
            ],
        }
        for name, (axis, series) in _REINFORCED.items()
    }


def published_subsets(report: dict[str, Any] | None) -> list[Subset]:
    """In the benchmark's own measure, whatever it calls it."""
    subsets = ((report or {}).get("published") or {}).get("subsets") or {}
    names = ("score", "accuracy", "average", "f1")
    return [
        Subset(name, next((one[key] for key in names if key in one), None), one.get("n"), one.get("matrix"))
        for name, one in subsets.items()
    ]


def shown(report: dict[str, Any] | None, project: Project) -> dict[str, Any]:
    """What the template of a report takes."""
    return {
        "report": report,
        "measured": measured(report),
        "verdict": verdict(report) if report is not None else None,
        "measures": _with_mistakes(report, project),
        "calibration": calibration_drawing(report),
        "best_of_n": best_of_n_drawing(report),
        "reinforced": reinforcement_drawings(report),
        "published": published_subsets(report),
        "mistakes": _with_places(project, (report or {}).get("mistakes") or []),
    }


def against(report: dict[str, Any], project: Project) -> dict[str, Any] | None:
    """What `compare` found, in words too, its flips with the trajectories they are about; None in other reports."""
    found = report.get("against")
    if not found or found["difference"] is None:
        return None
    low, high = found["interval"]
    flips = found["flips"]
    return found | {
        "tone": "good" if low > 0 else "bad" if high < 0 else "neutral",
        "sentence": beside(found),
        "flips": flips | {"examples": _with_places(project, flips["examples"])},
    }


def beside(found: dict[str, Any]) -> str:
    """`against` of a report in words."""
    if found["difference"] is None:
        return "There is no comparison with a winner, so nothing tells it from the other."
    if not found["flips"]["won"] and not found["flips"]["lost"]:
        return f"It decides all {found['n']} comparisons as {found['model']} does."
    low, high = found["interval"]
    often = f"{abs(found['difference']):.1%} {'more' if found['difference'] >= 0 else 'less'} often"
    sure = "" if low > 0 or high < 0 else " That may be chance."
    return (
        f"It is right {often} than {found['model']} on the same {found['n']} comparisons "
        f"(95% interval {low:+.1%} to {high:+.1%}).{sure}"
    )


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


def _with_mistakes(report: dict[str, Any] | None, project: Project) -> list[Measure]:
    """Measures of single trajectories with those that are most wrong, at the first of their kind."""
    wrong = _single_mistakes(report or {})
    places = keys_by_content_hash(
        project, (one["trajectory"]["hash"] for some in wrong.values() for one in some)
    )
    found = []
    for measure in measures(report):
        mistakes = [
            Mistake(
                one["task"],
                _in_words(measure.kind, one),
                places.get(one["trajectory"]["hash"]),
            )
            for one in wrong.pop(measure.kind, [])
        ]
        found.append(replace(measure, mistakes=mistakes))
    return found


def _single_mistakes(report: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """By part of the report; those of older versions have none."""
    scores = (report.get("scores") or {}).get("criteria") or {}
    return {
        "outcome": (report.get("outcome") or {}).get("mistakes") or [],
        "steps": (report.get("steps") or {}).get("mistakes") or [],
        "scores": [one for each in scores.values() for one in each.get("mistakes") or []],
    }


def _in_words(kind: str, one: dict[str, Any]) -> str:
    said, given = one["said"], one["given"]
    if kind == "outcome":
        return f"{'succeeded' if said else 'failed'}, reward {given:.2f}"
    if kind == "steps":
        true = "no error" if said is None else f"the first error is in agent step {said}"
        return f"{true}, it says {'none' if given is None else given}"
    return f"{one['about']} {said:.2f}, it gives {given:.2f}"


def _with_places(project: Project, mistakes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each side with the trajectory of this project that has its contents, None where it is not (or no more) here."""
    places = keys_by_content_hash(
        project, (one[side]["hash"] for one in mistakes for side in ("chosen", "rejected"))
    )
    return [
        one
        | {side: one[side] | {"trajectory": places.get(one[side]["hash"])} for side in ("chosen", "rejected")}
        for one in mistakes
    ]
