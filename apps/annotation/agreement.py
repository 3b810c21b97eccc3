"""Agreement of annotators: Krippendorff's alpha and Cohen's kappa of the current annotations."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from apps.accounts.models import Project
from apps.annotation.agreement_measures import Distances, Table, ValueTable
from apps.annotation.agreement_values import collect_agreement_values
from apps.annotation.feedback.records import work_annotations
from apps.annotation.feedback_types import AgreementValue


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


def _set_distances(answers: Sequence[AgreementValue]) -> Distances:
    """Distances of the values that stand for the sets of these answers."""
    sets = {answer.value: answer.categories or frozenset() for answer in answers}
    return lambda values: _masi_distances([sets[value] for value in values.tolist()])


def _masi_distances(sets: Sequence[frozenset[str]]) -> Table:
    return np.array([[masi_distance(a, b) for b in sets] for a in sets])


def _agreement_of_values(answers: Sequence[AgreementValue]) -> dict[str, Any]:
    level = answers[0].level
    annotators = sorted({answer.annotator for answer in answers})
    values, units = _values(answers, annotators)
    table = ValueTable(values, level, _set_distances(answers) if level == "set" else None)
    return {
        "alpha": table.alpha,
        "interval": table.interval,
        "level": level,
        "items": values.shape[1],
        "once": units - values.shape[1],
        "annotators": int(table.judged.any(axis=1).sum()),
        "pairs": [
            {"a": annotators[pair.first], "b": annotators[pair.second], "kappa": pair.kappa, "n": pair.n}
            for pair in table.pairs()
        ],
    }


def _values(answers: Sequence[AgreementValue], annotators: list[str]) -> tuple[Table, int]:
    """[annotators, units], NaN where one did not judge the other; only units that two judged. How many there are."""
    row = {annotator: index for index, annotator in enumerate(annotators)}
    column: dict[Hashable, int] = {}
    columns = [column.setdefault(answer.unit, len(column)) for answer in answers]
    table = np.full((len(annotators), len(column)), np.nan)
    table[[row[answer.annotator] for answer in answers], columns] = [answer.value for answer in answers]
    return table[:, (~np.isnan(table)).sum(axis=0) >= 2], len(column)
