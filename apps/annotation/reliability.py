"""Annotator reliability, estimated from items with several annotations, without gold items."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apps.annotation.agreement import current_agreement_values
from apps.annotation.agreement_values import group_by_question
from apps.annotation.annotator_models import AnswerTable, dawid_skene_accuracy, mace_competence
from apps.annotation.models import Campaign
from apps.core.errors import DomainError
from apps.core.share_interval import wilson_interval

MAX_ANSWERS = 50_000
AssignmentHistory = tuple[str, str, str]  # question, annotator, answer


@dataclass(frozen=True, slots=True)
class AnnotatorReliability:
    """answers: number of answers to questions that others answered too.

    accuracy: chance that they give the right answer, by Dawid and Skene (1979), over how frequent the answers are.
    competence: chance that they answer rather than guess, by MACE (Hovy et al. 2013).
    """

    name: str
    answers: int
    accuracy: float
    competence: float

    @property
    def accuracy_interval(self) -> tuple[float, float]:
        """95 %, taking the estimated right answers as known: at least as wide in truth."""
        return wilson_interval(self.accuracy * self.answers, self.answers)

    @property
    def competence_interval(self) -> tuple[float, float]:
        return wilson_interval(self.competence * self.answers, self.answers)


def estimate_reliability(campaign: Campaign) -> list[AnnotatorReliability]:
    """Most reliable annotators first. Raises DomainError without common items, or with too many answers."""
    responses = _assignment_histories(campaign)
    if not responses:
        raise DomainError(
            "No item has two annotations yet. Reliability is estimated from items with two or more annotators."
        )
    if len(responses) > MAX_ANSWERS:
        raise DomainError(
            f"The campaign has {len(responses):,} answers; the estimate supports at most {MAX_ANSWERS:,}. "
            "Export the annotations and analyze them with crowd-kit."
        )
    names, table = _table(responses)
    counts = Counter(annotator for _, annotator, _ in responses)
    found = [
        AnnotatorReliability(name, counts[name], float(accuracy), float(competence))
        for name, accuracy, competence in zip(
            names, dawid_skene_accuracy(table), mace_competence(table), strict=True
        )
    ]
    return sorted(found, key=lambda reliability: (-reliability.accuracy, reliability.name))


def _assignment_histories(campaign: Campaign) -> list[AssignmentHistory]:
    """Categorical answers to questions that several annotators answered."""
    answers = current_agreement_values(campaign.project, campaign.name)
    categorical = {
        kind: [answer for answer in type_answers if answer.level != "interval"]
        for kind, type_answers in answers.items()
    }
    return [
        (repr(question), name, f"{question[1]} {answer.value:g}")
        for question, people in group_by_question(categorical).items()
        if len(people) > 1
        for name, answer in sorted(people.items())
    ]


def _table(responses: Sequence[AssignmentHistory]) -> tuple[list[str], AnswerTable]:
    """The annotators' names by index, and the answers as indices."""
    items, annotators, labels = (
        np.unique(column, return_inverse=True) for column in zip(*responses, strict=True)
    )
    return annotators[0].tolist(), AnswerTable(items[1], annotators[1], labels[1])
