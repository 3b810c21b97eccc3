"""Annotator reliability, estimated from items with several annotations, without gold items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from apps.annotation.agreement import current_agreement_values
from apps.annotation.agreement_values import group_by_question
from apps.annotation.annotator_models import AnswerTable, dawid_skene_accuracy, mace_competence
from apps.annotation.feedback_types import AgreementValue
from apps.annotation.models import Campaign
from apps.core.errors import DomainError
from apps.core.share_interval import wilson_interval

QuestionAnswers = tuple[str, Mapping[str, AgreementValue]]  # feedback type, values by annotator


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
    """Most reliable annotators first. Raises DomainError without common items."""
    questions = _questions_in_common(campaign)
    if not questions:
        raise DomainError(
            "No item has two annotations yet. Reliability is estimated from items with two or more annotators."
        )
    names, table = _table(questions)
    counts = np.bincount(table.annotators, minlength=len(names))
    found = [
        AnnotatorReliability(name, int(count), float(accuracy), float(competence))
        for name, count, accuracy, competence in zip(
            names, counts, dawid_skene_accuracy(table), mace_competence(table), strict=True
        )
    ]
    return sorted(found, key=lambda reliability: (-reliability.accuracy, reliability.name))


def _questions_in_common(campaign: Campaign) -> list[QuestionAnswers]:
    """Categorical answers to questions that several annotators answered."""
    answers = current_agreement_values(campaign.project, campaign.name)
    categorical = {
        kind: [answer for answer in type_answers if answer.level != "interval"]
        for kind, type_answers in answers.items()
    }
    return [
        (question[1], people)
        for question, people in group_by_question(categorical).items()
        if len(people) > 1
    ]


def _table(questions: Sequence[QuestionAnswers]) -> tuple[list[str], AnswerTable]:
    """The annotators' names by index, and the answers as indices."""
    names = sorted({name for _, people in questions for name in people})
    given = [(kind, answer.value) for kind, people in questions for answer in people.values()]
    place = {name: index for index, name in enumerate(names)}
    # In the order of their words, by which MACE draws where it starts.
    labels = sorted(set(given), key=lambda label: f"{label[0]} {label[1]:g}")
    code = {label: index for index, label in enumerate(labels)}
    return names, AnswerTable(
        np.repeat(np.arange(len(questions)), [len(people) for _, people in questions]),
        np.array([place[name] for _, people in questions for name in people]),
        np.array([code[label] for label in given]),
    )
