"""Problems of a model, by name: it learnt only length, it learnt nothing, it has seen the test data."""

from typing import Any

from workers.evaluate.bootstrap import MIN_TASKS

_LENGTH = 0.8  # a rank correlation above which rewards are little but length
# Part of a report, its subject, the result of random guessing.
_KINDS = (
    ("preference", "comparisons", 0.5),
    ("outcome", "outcomes", 0.5),
    ("scores", "ratings and scores", 0.0),
)
_POINTWISE = ("pointwise", "comparisons by single scores", 0.5)  # of a generative model
_WHY_CHANCE = (
    "there are too few of them, their labels are as inconsistent as shuffled ones, or the input of the model lacks the "
    "needed information."
)
_MIN_TRAJECTORIES = 20  # below, a correlation with length is no finding
_LEAKED = 0.02  # share of held-out trajectories, and of tasks, that may be near-copies of training ones


def findings(report: dict[str, Any]) -> list[dict[str, str]]:
    """[{name, sentence, kind?}], the most serious first. kind: the part of the report it is about, if any.

    What fewer than MIN_TASKS tasks or _MIN_TRAJECTORIES trajectories show is no finding.
    Names: leak, unchecked, chance, over_optimised, length, worse_than_chance, truncated.
    """
    return [
        finding
        for find in (_leak, _unchecked, _chance, _over_optimised, _length, _truncated)
        for finding in find(report)
    ]


def with_leaks(report: dict[str, Any], leaks: dict[str, Any] | None) -> dict[str, Any]:
    """The report of a training, where it is known what the model has seen."""
    report = report | {"leaks": leaks}
    return report | {"findings": findings(report)}


def _leak(report: dict[str, Any]) -> list[dict[str, str]]:
    leaks = report.get("leaks")
    if not leaks:
        return []
    near_tasks, of_tasks = leaks.get("near_tasks", 0), leaks.get("of_tasks", 0)  # not in older reports
    if "near_copies" not in leaks:  # nothing to compare with is known
        return []
    many_copies = leaks["near_copies"] > _LEAKED * leaks["of"]
    if not (leaks["tasks"] or many_copies or near_tasks > _LEAKED * of_tasks):
        return []
    leaks_found = []
    if leaks["tasks"]:
        leaks_found.append(f"{len(leaks['tasks'])} tasks are in both splits (such as {leaks['tasks'][0]})")
    if leaks["near_copies"]:
        leaks_found.append(
            f"{leaks['near_copies']} of {leaks['of']} held-out trajectories are near-copies of training ones"
        )
    if near_tasks:
        leaks_found.append(
            f"the prompts of {near_tasks} of {of_tasks} held-out tasks are near-copies of training ones"
        )
    return [
        _named(
            "leak",
            f"The test split leaks: {', and '.join(leaks_found)}. The results are partly memorised.",
        )
    ]


def _unchecked(report: dict[str, Any]) -> list[dict[str, str]]:
    models = (report.get("leaks") or {}).get("unknown")
    if not models:
        return []
    sentence = (
        f"The training data of {', '.join(models)} is unknown here: the model may have seen the test split."
    )
    return [_named("unchecked", sentence)]


def _chance(report: dict[str, Any]) -> list[dict[str, str]]:
    """For each type of feedback: no better than chance, or, for steps, than the most common label."""
    found = []
    for kind, what, chance in (*_KINDS, _POINTWISE):
        of = (report.get("generative") or {}) if kind == "pointwise" else report
        part = of.get(kind) or {}
        between = part.get("interval")
        if between is None or _has_few_tasks(part):
            continue
        if between[1] < chance:
            sentence = (
                f"On {what} the model is wrong more often than right. The labels of the training and test splits may "
                "contradict each other."
            )
            found.append(_named("worse_than_chance", sentence, kind=kind))
        elif between[0] <= chance:
            found.append(
                _named("chance", f"On {what} the model is no better than chance: {_WHY_CHANCE}", kind=kind)
            )
    steps = report.get("steps") or {}
    labels = steps.get("labels") or {}
    rules = [
        None if _has_few_tasks(part) else (part.get("baselines") or {}).get(name)
        for part, name in ((steps, "most_common"), (labels, "majority"))
    ]
    if any(rule is not None and rule["interval"][0] <= 0 for rule in rules):
        sentence = (
            f"On steps the model is no better than always predicting the most common label: {_WHY_CHANCE}"
        )
        found.append(_named("chance", sentence, kind="steps"))
    return found


def _has_few_tasks(part: dict[str, Any]) -> bool:
    """Reports from before tasks were counted have no number: what they found stays."""
    return bool(part.get("tasks", MIN_TASKS) < MIN_TASKS)


def _over_optimised(report: dict[str, Any]) -> list[dict[str, str]]:
    """The outcome is shown to fall when more trajectories are chosen from."""
    found = (report.get("outcome") or {}).get("over_optimisation") or {}
    between = found.get("interval")
    if between is None or found["tasks"] < MIN_TASKS or between[1] >= 0:
        return []
    sentence = (
        f"The reward is over-optimised: with the best of {found['n']} trajectories the outcome is "
        f"{-found['change']:.2f} lower than with the best of {found['peak']}. Add comparisons of trajectories with "
        "high rewards that failed, and choose among fewer."
    )
    return [_named("over_optimised", sentence, kind="outcome")]


def _length(report: dict[str, Any]) -> list[dict[str, str]]:
    """Correlated with length, and not shown to beat the baseline that uses only length."""
    correlation = report.get("length_correlation")
    if correlation is None or abs(correlation) < _LENGTH:
        return []
    if (report.get("truncated") or {}).get("of", _MIN_TRAJECTORIES) < _MIN_TRAJECTORIES:
        return []
    parts = [report.get(kind) or {} for kind, *_ in _KINDS]
    rules: dict[str, Any] = next((part["baselines"] for part in parts if "baselines" in part), {})
    rule = rules.get("longer" if correlation > 0 else "shorter")
    if rule is not None and rule["interval"] is not None and rule["interval"][0] > 0:
        return []
    word = "long" if correlation > 0 else "short"
    return [
        _named(
            "length",
            f"The model mainly rewards {word} answers: its rewards follow length (rank correlation {correlation:.2f}), "
            f"and it is not shown to beat the baseline “{word}er wins”.",
        )
    ]


def _truncated(report: dict[str, Any]) -> list[dict[str, str]]:
    truncated = report.get("truncated") or {"n": 0, "of": 0}
    if truncated["n"] <= 0.1 * truncated["of"]:
        return []
    return [
        _named(
            "truncated",
            f"{truncated['n']} of {truncated['of']} trajectories were too long and lost their middle; raise "
            "max_tokens.",
        )
    ]


def _named(name: str, sentence: str, **about: str) -> dict[str, str]:
    return {"name": name, "sentence": sentence} | about
