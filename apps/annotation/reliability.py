"""Reliability of annotators by models of the annotators: no gold items are needed, only several people per item."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apps.annotation.agreement import answers_of
from apps.annotation.annotator_models import AnswerTable, dawid_skene_accuracy, mace_competence
from apps.annotation.answers import by_question
from apps.annotation.models import Campaign
from apps.core.errors import DomainError

MOST_ANSWERS = 50_000
Said = tuple[str, str, str]  # question, annotator, answer


@dataclass(frozen=True, slots=True)
class Reliability:
    """answers: of theirs that others answered too.

    accuracy: chance that they give the right answer, by Dawid and Skene (1979), over how frequent the answers are.
    competence: chance that they answer rather than guess, by MACE (Hovy et al. 2013).
    """

    name: str
    answers: int
    accuracy: float
    competence: float


def reliability_of(campaign: Campaign) -> list[Reliability]:
    """The most reliable first. Raises DomainError where there is nothing to compare, or too much for a page."""
    said = _said(campaign)
    if not said:
        raise DomainError(
            "Nothing was judged by two people yet; reliability is what people say beside each other."
        )
    if len(said) > MOST_ANSWERS:
        raise DomainError(
            f"{len(said):,} answers are too many; a page estimates from at most {MOST_ANSWERS:,}. "
            "Export the annotations and use crowd-kit on them."
        )
    names, table = _table(said)
    counts = Counter(annotator for _, annotator, _ in said)
    found = [
        Reliability(name, counts[name], float(accuracy), float(competence))
        for name, accuracy, competence in zip(
            names, dawid_skene_accuracy(table), mace_competence(table), strict=True
        )
    ]
    return sorted(found, key=lambda one: (-one.accuracy, one.name))


def _said(campaign: Campaign) -> list[Said]:
    """Answers that are one of a few, to questions that several people answered."""
    answers = answers_of(campaign.project, campaign.name)
    few = {kind: [one for one in said if one.level != "interval"] for kind, said in answers.items()}
    return [
        (repr(question), name, f"{question[1]} {one.value:g}")
        for question, people in by_question(few).items()
        if len(people) > 1
        for name, one in sorted(people.items())
    ]


def _table(said: Sequence[Said]) -> tuple[list[str], AnswerTable]:
    """The annotators' names by index, and the answers as indices."""
    items, annotators, labels = (np.unique(column, return_inverse=True) for column in zip(*said, strict=True))
    return annotators[0].tolist(), AnswerTable(items[1], annotators[1], labels[1])
