"""What annotations say, as answers to questions that can be compared across people."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping

from django.db.models import QuerySet

from apps.annotation.feedback_types import KINDS, Answer
from apps.annotation.models import Annotation

APART = 0.25  # of a scale: answers farther apart than this disagree
Question = tuple[int, str, str | None, Hashable]  # item, kind, question, unit


def answers_to(annotations: QuerySet[Annotation]) -> dict[str, list[Answer]]:
    """By kind; without the kinds nobody answered."""
    found = {
        kind.name: list(kind.agreement_values(kind.all_rows().filter(annotation__in=annotations)))
        for kind in KINDS.values()
    }
    return {kind: answers for kind, answers in found.items() if answers}


def by_question(answers: Mapping[str, Iterable[Answer]]) -> dict[Question, dict[str, Answer]]:
    """{question: {annotator: answer}}"""
    found: dict[Question, dict[str, Answer]] = defaultdict(dict)
    for kind, said in answers.items():
        for one in said:
            found[one.item, kind, one.question, one.unit][one.annotator] = one
    return found


def part(said: Iterable[Answer]) -> bool:
    """Whether people part on a question."""
    answers = list(said)
    values = [one.value for one in answers]
    apart = max(values) - min(values)
    return apart > APART if answers[0].level == "interval" else apart > 0
