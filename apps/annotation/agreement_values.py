"""Values of annotations that can be compared between annotators."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping

from django.db.models import QuerySet

from apps.annotation.feedback_types import FEEDBACK_TYPES, AgreementValue
from apps.annotation.models import Annotation

DISPUTED_DISTANCE = 0.25  # of a scale; values farther apart disagree
QuestionKey = tuple[int, str, str | None, Hashable]  # item, kind, question, unit


def collect_agreement_values(annotations: QuerySet[Annotation]) -> dict[str, list[AgreementValue]]:
    """By feedback type; types without values are omitted."""
    found = {
        kind.name: list(kind.agreement_values(kind.all_rows().filter(annotation__in=annotations)))
        for kind in FEEDBACK_TYPES.values()
    }
    return {kind: answers for kind, answers in found.items() if answers}


def group_by_question(
    answers: Mapping[str, Iterable[AgreementValue]],
) -> dict[QuestionKey, dict[str, AgreementValue]]:
    """{question: {annotator: value}}"""
    found: dict[QuestionKey, dict[str, AgreementValue]] = defaultdict(dict)
    for type_name, type_answers in answers.items():
        for answer in type_answers:
            found[answer.item, type_name, answer.question, answer.unit][answer.annotator] = answer
    return found


def is_disputed(said: Iterable[AgreementValue]) -> bool:
    """Whether the values of a question disagree."""
    answers = list(said)
    values = [answer.value for answer in answers]
    apart = max(values) - min(values)
    return apart > DISPUTED_DISTANCE if answers[0].level == "interval" else apart > 0
