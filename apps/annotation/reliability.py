"""Who can be relied on, by models of the annotators themselves: no gold is needed, only several people per item.

The models are crowd-kit's; importing them takes seconds, so that is done when somebody asks.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.annotation.agreement import answers_of
from apps.annotation.answers import by_question
from apps.annotation.models import Campaign
from apps.core.errors import DomainError

MOST_ANSWERS = 50_000
_RESTARTS, _ITERATIONS = 3, 30
Said = tuple[str, str, str]  # question, annotator, answer


@dataclass(frozen=True, slots=True)
class Reliability:
    """answers: of hers that others answered too.

    accuracy: chance that she says what is right, by Dawid and Skene (1979), over how frequent the answers are.
    competence: chance that she answers rather than guesses, by MACE (Hovy et al. 2013).
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
            f"{len(said):,} answers take minutes; a page estimates from at most {MOST_ANSWERS:,}. "
            "Export the judgements and use crowd-kit on them."
        )
    accuracies, competences = _dawid_skene(said), _mace(said)
    counts = Counter(annotator for _, annotator, _ in said)
    found = [Reliability(name, counts[name], accuracies[name], competences[name]) for name in counts]
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


def _table(said: Sequence[Said]) -> Any:
    import pandas

    return pandas.DataFrame(said, columns=["task", "worker", "label"])


def _dawid_skene(said: Sequence[Said]) -> dict[str, float]:
    from crowdkit.aggregation import DawidSkene

    found = DawidSkene(n_iter=_ITERATIONS).fit(_table(said))
    priors: Any = found.priors_
    errors: Any = found.errors_  # [annotator, said][right]: of what is right, how often she says each
    chances: dict[str, float] = {worker: 0.0 for _, worker, _ in said}
    for worker, label in errors.index:
        chances[worker] += float(priors[label] * errors.loc[(worker, label), label])
    return chances


def _mace(said: Sequence[Said]) -> dict[str, float]:
    from crowdkit.aggregation import MACE

    found = MACE(n_restarts=_RESTARTS, n_iter=_ITERATIONS, random_state=0).fit(_table(said))
    workers = dict.fromkeys(worker for _, worker, _ in said)  # spamming_ is in the order they come in
    return {worker: float(knows) for worker, (_, knows) in zip(workers, found.spamming_, strict=True)}
