"""Agreement of annotators: Krippendorff's alpha and Cohen's kappa of the current annotations."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
from numpy.typing import NDArray

from apps.accounts.models import Project
from apps.annotation.agreement_values import collect_agreement_values
from apps.annotation.feedback.records import work_annotations
from apps.annotation.feedback_types import AgreementValue
from apps.annotation.feedback_types.base import Level

RESAMPLES = 300
# Of an interval scale: beyond it the bootstrap takes too much memory, and there is no interval.
MAX_VALUES = 200
Table = NDArray[np.float64]
Metric = Any  # as `krippendorff.alpha` takes it: the name of a level, or a function


def agreement(*, project: Project, campaign: str | None = None) -> dict[str, Any]:
    """{"kinds": {KIND: {"alpha", "interval", "level", "items", "once", "annotators", "pairs", "criteria"}}}.

    alpha: Krippendorff (2011), "Computing Krippendorff's alpha-reliability", at the `level` of the kind,
    over the `items` units with at least two of the `annotators`; null if there are none. once: units with one, which
    say nothing about agreement. interval: 95 %, items resampled. pairs: Cohen's
    kappa of two annotators over the n items in common, weighted by the squared distance where the scale has one;
    null where both always gave one and the same value. criteria: the same for each named criterion, and for each other
    question of the kind. A kind that only asks by criteria has its own figures over all of them together.
    categories: of a question that is answered by categories, the same for each category, as chosen or not. Sets of
    categories are compared by MASI (Passonneau 2006), "Measuring agreement on set-valued items".
    """
    return {"kinds": agreement_by_type(current_agreement_values(project, campaign))}


def agreement_by_type(answers: dict[str, list[AgreementValue]]) -> dict[str, Any]:
    return {kind: type_agreement(said) for kind, said in answers.items()}


def current_agreement_values(
    project: Project, campaign: str | None = None
) -> dict[str, list[AgreementValue]]:
    """Values of the current annotations, by feedback type; types without values are omitted."""
    return collect_agreement_values(work_annotations(project, campaign))


def type_agreement(answers: Sequence[AgreementValue]) -> dict[str, Any]:
    group_by_question: dict[str | None, list[AgreementValue]] = defaultdict(list)
    for answer in answers:
        group_by_question[answer.question].append(answer)
    criteria = {
        name: question_agreement(group_by_question[name]) for name in sorted(filter(None, group_by_question))
    }
    own = group_by_question.get(None) or _together(answers)
    return question_agreement(own) | {"criteria": criteria}


def _together(answers: Sequence[AgreementValue]) -> list[AgreementValue]:
    """Several questions of one level as one: the unit is the question and its unit.

    One category is a set of one: the distance of two such sets is nominal.
    """
    level = "set" if any(answer.level == "set" for answer in answers) else answers[0].level
    return [
        replace(answer, unit=(answer.question, answer.unit), level=level, question=None)
        for answer in answers
        if answer.level == level or (level == "set" and answer.categories is not None)
    ]


def question_agreement(answers: Sequence[AgreementValue]) -> dict[str, Any]:
    """Alpha and kappas of one question's answers; of each category too, where it is answered by categories."""
    found = _agreement_of_values(answers)
    if any(answer.categories is not None for answer in answers):
        found["categories"] = {
            name: _agreement_of_values(_as_chosen(answers, name)) for name in _category_names(answers)
        }
    return found


def _category_names(answers: Sequence[AgreementValue]) -> list[str]:
    return sorted({name for answer in answers for name in answer.categories or ()})


def _as_chosen(answers: Sequence[AgreementValue], name: str) -> list[AgreementValue]:
    """1 where the category was chosen, 0 where another was."""
    return [
        replace(answer, value=float(name in (answer.categories or ())), level="nominal", categories=None)
        for answer in answers
    ]


def masi_distance(a: frozenset[str], b: frozenset[str]) -> float:
    """1 minus Jaccard times 1 (equal), 2/3 (one holds the other), 1/3 (they overlap) or 0 (Passonneau 2006)."""
    if a == b:
        return 0.0
    common = len(a & b)
    monotonicity = 2 / 3 if a <= b or b <= a else 1 / 3 if common else 0.0
    return 1 - common / len(a | b) * monotonicity


def _set_metric(answers: Sequence[AgreementValue]) -> tuple[Metric, Mapping[float, frozenset[str]]]:
    """The metric of `krippendorff.alpha` for the values of these answers, and the set of each value."""
    sets = {answer.value: answer.categories or frozenset() for answer in answers}
    codes = np.array(sorted(sets))
    distances = _masi_distances([sets[code] for code in codes])

    def distance(v1: NDArray[Any], v2: NDArray[Any], **_: Any) -> NDArray[Any]:
        return distances[np.searchsorted(codes, v1), np.searchsorted(codes, v2)]

    return distance, sets


def _masi_distances(sets: Sequence[frozenset[str]]) -> Table:
    return np.array([[masi_distance(a, b) for b in sets] for a in sets])


def _agreement_of_values(answers: Sequence[AgreementValue]) -> dict[str, Any]:
    level = answers[0].level
    metric, sets = _set_metric(answers) if level == "set" else (level, {})
    values: dict[str, dict[Hashable, float]] = defaultdict(dict)
    for answer in answers:
        values[answer.annotator][answer.unit] = answer.value
    annotators = sorted(values)
    units = list(dict.fromkeys(answer.unit for answer in answers))
    table = _table(values, annotators, units)
    return {
        "alpha": _alpha(table, metric),
        "interval": _interval(table, metric),
        "level": level,
        "items": table.shape[1],
        "once": len(units) - table.shape[1],
        "annotators": int((~np.isnan(table)).any(axis=1).sum()),
        "pairs": [
            pair for a, b in combinations(annotators, 2) if (pair := _kappa(values, a, b, level, sets))
        ],
    }


def _table(values: dict[str, dict[Hashable, float]], annotators: list[str], units: list[Hashable]) -> Table:
    """[annotators, units], NaN where one did not judge the other; only units that two judged."""
    table = np.full((len(annotators), len(units)), np.nan)
    column = {unit: index for index, unit in enumerate(units)}
    for row, annotator in enumerate(annotators):
        for unit, value in values[annotator].items():
            table[row, column[unit]] = value
    return table[:, (~np.isnan(table)).sum(axis=0) >= 2]


def _alpha(table: Table, metric: Metric) -> float | None:
    if table.size == 0:
        return None
    if len(np.unique(table[~np.isnan(table)])) == 1:
        return 1.0  # all values are equal: no disagreement, and none expected by chance
    return float(krippendorff.alpha(reliability_data=table, level_of_measurement=metric))


def _interval(table: Table, metric: Metric) -> list[float] | None:
    """95 %, by resampling units; null where there are too few of them, or values, to say."""
    domain = np.unique(table[~np.isnan(table)])
    if table.shape[1] < 10 or not 2 <= len(domain) <= MAX_VALUES:
        return None
    counts = np.stack([(table == value).sum(axis=0) for value in domain], axis=1)  # [units, values]
    draw = np.random.default_rng(0)
    found = []
    for _ in range(RESAMPLES):
        chosen = counts[draw.integers(0, len(counts), len(counts))]
        if (chosen.sum(axis=0) > 0).sum() > 1:
            found.append(
                krippendorff.alpha(value_counts=chosen, value_domain=domain, level_of_measurement=metric)
            )
    low, high = np.percentile(found, [2.5, 97.5])
    return [float(low), float(high)]


def _kappa(
    values: dict[str, dict[Hashable, float]],
    a: str,
    b: str,
    level: Level,
    sets: Mapping[float, frozenset[str]],
) -> dict[str, Any] | None:
    both = values[a].keys() & values[b].keys()
    if not both:
        return None
    said = [values[a][unit] for unit in both], [values[b][unit] for unit in both]
    return {"a": a, "b": b, "kappa": _cohen(*said, level, sets), "n": len(both)}


def _cohen(
    a: list[float], b: list[float], level: Level, sets: Mapping[float, frozenset[str]]
) -> float | None:
    """Cohen (1960); with the squared distance as weight (Cohen 1968) where the values have one, or MASI for sets."""
    known = sorted({*a, *b})
    if len(known) == 1:
        return None
    if level in ("interval", "set"):
        distance = (
            np.subtract.outer(known, known) ** 2
            if level == "interval"
            else _masi_distances([sets[code] for code in known])
        )
        index = {value: place for place, value in enumerate(known)}
        joint = np.zeros_like(distance)
        for value, other_value in zip(a, b, strict=True):
            joint[index[value], index[other_value]] += 1 / len(a)
        expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        chance = float((distance * expected).sum())
        return None if chance == 0 else 1 - float((distance * joint).sum()) / chance
    codes = {value: code for code, value in enumerate(known)}
    from sklearn.metrics import cohen_kappa_score  # a second and a half, which no other page should cost

    weights = "quadratic" if level == "ordinal" else None
    return float(cohen_kappa_score([codes[v] for v in a], [codes[v] for v in b], weights=weights))
