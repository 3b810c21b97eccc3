"""What is wrong with a model, by name: it learnt length, it learnt nothing, it has seen the answers."""

from typing import Any

_LENGTH = 0.8  # a rank correlation above which rewards are little but length
# Part of a report, what it is about, what guessing reaches in it.
_KINDS = (
    ("preference", "comparisons", 0.5),
    ("outcome", "outcomes", 0.5),
    ("scores", "ratings and scores", 0.0),
)
_WHY_CHANCE = (
    "there are too few of them, they contradict each other as shuffled labels do, or the answer is not in what the "
    "model reads."
)
_LEAKED = 0.02  # share of held-out trajectories that may be near-copies of training ones


def findings(report: dict[str, Any]) -> list[dict[str, str]]:
    """[{name, sentence, kind?}], the gravest first. kind: the part of the report it is about, where it is about one.

    Names: leak, unchecked, chance, length, worse_than_chance, truncated.
    """
    return [one for find in (_leak, _unchecked, _chance, _length, _truncated) for one in find(report)]


def with_leaks(report: dict[str, Any], leaks: dict[str, Any] | None) -> dict[str, Any]:
    """The report of a training, which knows what the model has seen."""
    whole = report | {"leaks": leaks}
    return whole | {"findings": findings(whole)}


def _leak(report: dict[str, Any]) -> list[dict[str, str]]:
    leaks = report.get("leaks")
    if not leaks or not (leaks["tasks"] or leaks["near_copies"] > _LEAKED * leaks["of"]):
        return []
    told = []
    if leaks["tasks"]:
        told.append(
            f"{len(leaks['tasks'])} tasks are on both sides of the split (such as {leaks['tasks'][0]})"
        )
    if leaks["near_copies"]:
        told.append(
            f"{leaks['near_copies']} of {leaks['of']} held-out trajectories are near-copies of training ones"
        )
    return [_named("leak", f"The test leaks: {', and '.join(told)}. What is measured here is partly memory.")]


def _unchecked(report: dict[str, Any]) -> list[dict[str, str]]:
    models = (report.get("leaks") or {}).get("unknown")
    if not models:
        return []
    sentence = (
        f"It went on from {', '.join(models)}, of which it is not known here what it was trained on: it may have seen "
        "the test split."
    )
    return [_named("unchecked", sentence)]


def _chance(report: dict[str, Any]) -> list[dict[str, str]]:
    """For each kind of feedback: no better than guessing, or, for steps, than saying the most common thing."""
    found = []
    for kind, what, chance in _KINDS:
        between = (report.get(kind) or {}).get("interval")
        if between is None:
            continue
        if between[1] < chance:
            sentence = (
                f"On {what} it is wrong more often than right: the labels of training and test contradict "
                "each other."
            )
            found.append(_named("worse_than_chance", sentence, kind=kind))
        elif between[0] <= chance:
            found.append(
                _named("chance", f"On {what} it cannot be told from guessing: {_WHY_CHANCE}", kind=kind)
            )
    steps = report.get("steps") or {}
    rules = [
        (steps.get("baselines") or {}).get("most_common"),
        ((steps.get("labels") or {}).get("baselines") or {}).get("majority"),
    ]
    if any(rule is not None and rule["interval"][0] <= 0 for rule in rules):
        sentence = f"On steps it cannot be told from always saying what is most common: {_WHY_CHANCE}"
        found.append(_named("chance", sentence, kind="steps"))
    return found


def _length(report: dict[str, Any]) -> list[dict[str, str]]:
    """Correlated with length, and not shown to be better than the rule that looks at nothing else."""
    correlation = report.get("length_correlation")
    if correlation is None or abs(correlation) < _LENGTH:
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
            f"It rewards little but {word} answers: its rewards follow length (rank correlation {correlation:.2f}), "
            f"and it is not shown to beat the rule that the {word}er one wins.",
        )
    ]


def _truncated(report: dict[str, Any]) -> list[dict[str, str]]:
    truncated = report.get("truncated") or {"n": 0, "of": 0}
    if truncated["n"] <= 0.1 * truncated["of"]:
        return []
    return [
        _named(
            "truncated",
            f"{truncated['n']} of {truncated['of']} trajectories did not fit and lost their middle; raise max_tokens.",
        )
    ]


def _named(name: str, sentence: str, **about: str) -> dict[str, str]:
    return {"name": name, "sentence": sentence} | about
