"""An evaluation report for people: a summary in words, then the numbers as rows of tables."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from apps.accounts.models import Project
from apps.core.number_format import decimal, decimal_interval, percent, percent_interval
from apps.training.ablation_report import ablation_report
from apps.training.baselines import (
    BASELINES,
    LEARNED,
    BestBaseline,
    baseline_name,
    best_baseline,
    linear_advice,
)
from apps.training.report_charts import best_of_n_chart, calibration_chart, reinforcement_charts
from apps.training.search_report import search_report
from apps.trajectories.selectors import keys_by_content_hash

COMPARISONS = "Held-out comparisons"
SINGLE_SCORES = "Held-out comparisons, by single scores"
_CAVEATS = ("chance", "unchecked")
MIN_TASKS = 10  # below, no conclusion is drawn, as in `workers.evaluate.bootstrap`
_SHARES = ("preference", "pointwise", "steps")  # parts of a report whose results are shares, shown in percent


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """tone: whether the model is shown to have learnt (good), is not (bad), or nothing was measured (neutral)."""

    tone: Literal["good", "bad", "neutral"]
    sentence: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """A rule or a regression. difference: the model's result minus the baseline's, paired, with its interval.

    is_best: of all, in cross-validation within the training data.
    """

    name: str
    value: float
    difference: float | None
    interval: tuple[float, float] | None
    is_share: bool
    is_best: bool = False

    @property
    def is_beaten(self) -> bool:
        """Shown by the interval, or, where there is none because every draw gives the same, by the difference.

        A bound that is shown as 0 counts as 0, so that no reader sees [0.0, 8.0] called a proof.
        """
        if self.interval is None:
            return self.difference is not None and self.difference > 0
        return self._rounded(self.interval[0]) > 0

    @property
    def is_better(self) -> bool:
        """Whether the baseline is shown to be better; where it is not beaten either, nothing is shown."""
        return self.interval is not None and self._rounded(self.interval[1]) < 0

    def _rounded(self, value: float) -> float:
        return round(value, 3 if self.is_share else 2)

    @property
    def shown_value(self) -> str:
        return _shown(self.value, is_share=self.is_share)

    @property
    def shown_difference(self) -> str:
        return "" if self.difference is None else _shown(self.difference, is_share=self.is_share)

    @property
    def shown_interval(self) -> str:
        return _shown_interval(self.interval, is_share=self.is_share)


@dataclass(frozen=True, slots=True)
class Measure:
    """The result of a model on one type of feedback. chance: that of random guessing; formula: what the number is.

    kind: the part of the report it is in. tasks: None in reports of older versions.
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
    tasks: int | None = None
    best: BestBaseline | None = None
    mistakes: list["Mistake"] = field(default_factory=list)

    @property
    def is_share(self) -> bool:
        return self.kind in _SHARES

    @property
    def has_few_tasks(self) -> bool:
        """Too few for any conclusion."""
        return self.tasks is not None and self.tasks < MIN_TASKS

    @property
    def shown_value(self) -> str:
        return _shown(self.value, is_share=self.is_share)

    @property
    def shown_interval(self) -> str:
        return _shown_interval(self.interval, is_share=self.is_share)


def _shown(value: float, *, is_share: bool) -> str:
    return percent(value) if is_share else decimal(value)


def _shown_interval(interval: tuple[float, float] | None, *, is_share: bool) -> str:
    if interval is None:
        return ""
    return percent_interval(interval) if is_share else decimal_interval(interval)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A trajectory that the model got wrong. key: of the trajectory, None where it is not in the project."""

    task: str
    words: str
    key: int | None


@dataclass(frozen=True, slots=True)
class Subset:
    """A part of a published benchmark. matrix: RM-Bench's, [style of the chosen answer][style of the rejected one]."""

    name: str
    value: float | None
    n: int | None
    matrix: list[list[float]] | None


def measures(report: dict[str, Any] | None) -> list[Measure]:
    """Those that apply; the first is the one that the summary is about."""
    report = report or {}
    found = []
    if preference := measured(report):
        formula = "Share of comparisons in which the winner's reward is higher; equal rewards count one half"
        if report.get("generative"):
            formula = (
                "Both trajectories judged together, in both orders, as /compare does: share of comparisons in which "
                "the winner's mean probability is higher; equal ones count one half"
            )
        found.append(
            _measure(
                "preference", COMPARISONS, "Accuracy", formula, preference, "accuracy", "comparisons", 0.5
            )
        )
    if generative := report.get("generative"):
        formula = (
            "Each trajectory scored on its own, as /score does for trainers: share of the same comparisons in which "
            "the winner's score is higher; equal scores count one half"
        )
        part = generative["pointwise"]
        found.append(
            _measure("pointwise", SINGLE_SCORES, "Accuracy", formula, part, "accuracy", "comparisons", 0.5)
        )
    if outcome := report.get("outcome"):
        formula = "AUC: the probability that a success has a higher reward than a failure"
        found.append(_measure("outcome", "Outcomes", "AUC", formula, outcome, "auc", "trajectories", 0.5))
    steps = report.get("steps") or {}
    if "first_error_accuracy" in steps:
        formula = "Share of trajectories whose first wrong step (or that there is none) is identified"
        found.append(
            _measure(
                "steps",
                "First errors",
                "Accuracy",
                formula,
                steps,
                "first_error_accuracy",
                "trajectories",
                None,
            )
        )
    if located := steps.get("located"):
        formula = "Share of trajectories with an error in which the step with the lowest score is the first wrong one"
        found.append(
            _measure(
                "steps", "Error localisation", "Accuracy", formula, located, "accuracy", "failures", None
            )
        )
    if labels := steps.get("labels"):
        formula = "Share of labelled steps whose annotated label is the most probable one"
        found.append(_measure("steps", "Step labels", "Accuracy", formula, labels, "accuracy", "steps", None))
    if (published := report.get("published")) and published["score"] is not None:
        formula = f"The score that {published['benchmark']} defines"
        part = {"interval": None} | published
        found.append(
            _measure("published", published["benchmark"], "Score", formula, part, "score", "rows", None)
        )
    if scores := report.get("scores"):
        formula = (
            f"Spearman's rank correlation with the scores of {_scored_by(scores)}, the mean over criteria"
        )
        found.append(
            _measure(
                "scores", "Ratings and scores", "Correlation", formula, scores, "spearman", "scores", 0.0
            )
        )
    return found


def _scored_by(scores: dict[str, Any]) -> str:
    """Judges are never called annotators."""
    by_judges = scores.get("by_judges", 0)  # missing in reports from before judges could score
    if not by_judges:
        return "annotators"
    return (
        "judges" if by_judges == scores["n"] else f"annotators ({by_judges} of {scores['n']} only of judges)"
    )


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
    best = best_baseline(part)
    baselines = [
        Baseline(
            baseline_name(baseline),
            found[key if key in found else "accuracy"],
            found.get("difference"),
            _pair(found.get("interval")),
            kind in _SHARES,
            best is not None and best.key == baseline,
        )
        for baseline, found in (part.get("baselines") or {}).items()
    ]
    baselines.sort(key=lambda baseline: -baseline.value)
    return Measure(
        kind,
        title,
        name,
        formula,
        part[key],
        _pair(part.get("interval")),
        part["n"],
        of,
        chance,
        baselines,
        part.get("tasks"),
        best,
    )


def measured(report: dict[str, Any] | None) -> dict[str, Any] | None:
    """The comparisons of a report: those of the test split, else those pooled over the folds."""
    preference = (report or {}).get("preference") or {}
    if "accuracy" in preference:
        return dict(preference)
    return ((report or {}).get("pooled") or {}).get("preference")


def summarize(report: dict[str, Any]) -> ReportSummary:
    """The first measure, then the findings about the model.

    A finding about another type of feedback, or about what is unknown, does not make the tone bad.
    """
    found = measures(report)
    if not found:
        return ReportSummary(
            "neutral",
            "No held-out data to evaluate the model on; annotate more tasks and freeze again.",
        )
    first = _summarize_measure(found[0], report)
    others = [
        finding
        for finding in report.get("findings") or []
        if finding["name"] != "chance" or finding.get("kind", "preference") != found[0].kind
    ]
    is_bad = any(finding["name"] not in _CAVEATS for finding in others)
    sentences = [
        first.sentence,
        *(_single_scores(measure) for measure in found if measure.kind == "pointwise"),
        *(finding["sentence"] for finding in others),
    ]
    return ReportSummary("bad" if is_bad else first.tone, " ".join(sentences))


def _summarize_measure(measure: Measure, report: dict[str, Any]) -> ReportSummary:
    result = result_in_words(measure)
    if measure.has_few_tasks:
        return ReportSummary(
            "neutral",
            f"{result}. These are too few tasks for a conclusion ({measure.tasks}; at least {MIN_TASKS} are needed).",
        )
    low = measure.interval[0] if measure.interval else measure.value
    if measure.chance is not None and low <= measure.chance:
        return ReportSummary("bad", f"{result}, which is no better than chance.")
    unbeaten = [baseline for baseline in measure.baselines if not baseline.is_beaten]
    if unbeaten:
        return _summarize_unbeaten(measure, result, unbeaten, was_searched=bool(report.get("search")))
    has_learned = any(baseline.name in LEARNED for baseline in measure.baselines)
    beats = f" and beats every {'' if has_learned else 'trivial '}baseline" if measure.baselines else ""
    annotators = _annotators(report) if measure.title == COMPARISONS else ""
    return ReportSummary("good", f"{result}{beats}.{annotators}")


def _summarize_unbeaten(
    measure: Measure, result: str, unbeaten: list[Baseline], *, was_searched: bool
) -> ReportSummary:
    """By the baseline that was chosen within the training data; of reports without a choice by the highest one."""
    best = next((baseline for baseline in measure.baselines if baseline.is_best), None)
    if measure.best is not None and best is not None:
        how = f"“{best.name}”, chosen by cross-validation within the training data, has {best.shown_value}."
        if best in unbeaten:
            advice = measure.best.advice(was_searched=was_searched)
            return ReportSummary("bad", f"{result}. It is not shown to beat the best baseline: {how}{advice}")
        other = f"“{unbeaten[0].name}” has {unbeaten[0].shown_value}."
        return ReportSummary(
            "neutral", f"{result}. It beats the best baseline: {how} It is not shown to beat another: {other}"
        )
    baseline = unbeaten[0]
    reached = f"“{baseline.name}” has {baseline.shown_value}."
    kind = "" if baseline.name in LEARNED else "trivial "
    advice = linear_advice(was_searched=was_searched) if baseline.name == BASELINES["linear"] else ""
    return ReportSummary("bad", f"{result}. It is not shown to beat a {kind}baseline: {reached}{advice}")


def _single_scores(measure: Measure) -> str:
    """Of a generative model, next to what it reaches where two trajectories are judged together."""
    interval = f" (95 % interval {measure.shown_interval})" if measure.interval else ""
    return (
        f"That is with both trajectories judged together; by single scores, which trainers get, it is correct on "
        f"{measure.shown_value} of {measure.n}{interval}."
    )


def result_in_words(measure: Measure) -> str:
    interval = f" (95 % interval {measure.shown_interval})" if measure.interval else ""
    if measure.name == "Accuracy":
        return f"The model is correct on {measure.shown_value} of {measure.n} held-out {measure.of}{interval}"
    name = measure.formula.partition(":")[0]
    return f"On {measure.n} held-out {measure.of} the model has {name} {measure.shown_value}{interval}"


def _pair(interval: Any) -> tuple[float, float] | None:
    return (interval[0], interval[1]) if interval else None


def published_subsets(report: dict[str, Any] | None) -> list[Subset]:
    """In the benchmark's own measure, under any of its names."""
    subsets = ((report or {}).get("published") or {}).get("subsets") or {}
    names = ("score", "accuracy", "average", "f1")
    return [
        Subset(
            name, next((part[key] for key in names if key in part), None), part.get("n"), part.get("matrix")
        )
        for name, part in subsets.items()
    ]


def report_context(report: dict[str, Any] | None, project: Project) -> dict[str, Any]:
    """The context of `training/_report.html`."""
    return {
        "report": report,
        "measured": measured(report),
        "verdict": summarize(report) if report is not None else None,
        "measures": _with_mistakes(report, project),
        "calibration": calibration_chart(report),
        "best_of_n": best_of_n_chart(report),
        "reinforced": reinforcement_charts(report),
        "search": search_report(report),
        "ablation": ablation_report(report),
        "published": published_subsets(report),
        "mistakes": _with_trajectories(project, (report or {}).get("mistakes") or []),
    }


def against(report: dict[str, Any], project: Project) -> dict[str, Any] | None:
    """The result of `compare`, also in words, its disagreements with their trajectories; None in other reports."""
    found = report.get("against")
    if not found or found["difference"] is None:
        return None
    low, high = found["interval"]
    flips = found["flips"]
    has_few_tasks = found.get("tasks", MIN_TASKS) < MIN_TASKS
    return found | {
        "tone": "neutral" if has_few_tasks else "good" if low > 0 else "bad" if high < 0 else "neutral",
        "sentence": comparison_in_words(found),
        "flips": flips | {"examples": _with_trajectories(project, flips["examples"])},
    }


def comparison_in_words(found: dict[str, Any]) -> str:
    """`against` of a report in words."""
    if found["difference"] is None:
        return "The data has no comparison with a winner, so the two models cannot be compared."
    if not found["flips"]["won"] and not found["flips"]["lost"]:
        return f"It decides all {found['n']} comparisons as {found['model']} does."
    low, high = found["interval"]
    more = "more" if found["difference"] >= 0 else "less"
    caveat = "" if low > 0 or high < 0 else " The difference may be chance."
    if found.get("tasks", MIN_TASKS) < MIN_TASKS:
        caveat = (
            f" These are too few tasks for a conclusion ({found['tasks']}; at least {MIN_TASKS} are needed)."
        )
    return (
        f"It is correct {percent(abs(found['difference']))} {more} often than {found['model']} on the same "
        f"{found['n']} comparisons (95 % interval {percent_interval((low, high))}).{caveat}"
    )


def annotator_accuracy(report: dict[str, Any]) -> dict[str, Any] | None:
    """How often one annotator agrees with the majority of the others: {leave_one_out, interval, n, ...}."""
    found = report.get("annotators") or {}
    return found if found.get("leave_one_out") is not None else None


def _annotators(report: dict[str, Any]) -> str:
    """The model next to one annotator on the same choices; nothing of reports from before both were measured so."""
    found = report.get("annotators") or {}
    if "difference_interval" not in found or found.get("tasks", MIN_TASKS) < MIN_TASKS:
        return ""
    low, high = found["difference_interval"]
    relation = "more often than" if low > 0 else "less often than" if high < 0 else "about as often as"
    return (
        f" It agrees with the majority of the other annotators {relation} a single annotator does "
        f"({percent(found['model'])} and {percent(found['leave_one_out'])} of the same {found['n']} choices)."
    )


def _with_mistakes(report: dict[str, Any] | None, project: Project) -> list[Measure]:
    """The measures, the first of each part with the worst errors on single trajectories."""
    by_part = _single_mistakes(report or {})
    hashes = (mistake["trajectory"]["hash"] for mistakes in by_part.values() for mistake in mistakes)
    keys = keys_by_content_hash(project, hashes)
    return [
        replace(
            measure,
            mistakes=[
                Mistake(
                    mistake["task"],
                    _mistake_in_words(measure.kind, mistake),
                    keys.get(mistake["trajectory"]["hash"]),
                )
                for mistake in by_part.pop(measure.kind, [])
            ],
        )
        for measure in measures(report)
    ]


def _single_mistakes(report: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """By part of the report; reports of older versions have none."""
    scores = (report.get("scores") or {}).get("criteria") or {}
    return {
        "outcome": (report.get("outcome") or {}).get("mistakes") or [],
        "steps": (report.get("steps") or {}).get("mistakes") or [],
        "scores": [mistake for part in scores.values() for mistake in part.get("mistakes") or []],
    }


def _mistake_in_words(kind: str, mistake: dict[str, Any]) -> str:
    truth, prediction = mistake["said"], mistake["given"]
    if kind == "outcome":
        return f"{'succeeded' if truth else 'failed'}, reward {decimal(prediction)}"
    if kind == "steps":
        labelled = "no error" if truth is None else f"first error in agent step {truth}"
        return f"{labelled}, predicted: {'no error' if prediction is None else f'step {prediction}'}"
    return f"{mistake['about']} {decimal(truth)}, predicted {decimal(prediction)}"


def _with_trajectories(project: Project, mistakes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each side with the key of its trajectory in this project, None where it is not (or no longer) there."""
    sides = ("chosen", "rejected")
    keys = keys_by_content_hash(project, (mistake[side]["hash"] for mistake in mistakes for side in sides))
    return [
        mistake | {side: mistake[side] | {"trajectory": keys.get(mistake[side]["hash"])} for side in sides}
        for mistake in mistakes
    ]
