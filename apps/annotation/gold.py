"""Expected answers (adjudications), and the accuracy of annotators on gold items."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.annotation.agreement_values import collect_agreement_values, group_by_question, is_disputed
from apps.annotation.feedback.records import BY_JUDGES
from apps.annotation.models import Annotation, Annotator, Assignment, Campaign, Item, Preference


@dataclass(frozen=True, slots=True)
class GoldAccuracy:
    """n of `of` questions answered as expected, on a number of items."""

    n: int
    of: int
    items: int


def expected_annotation(item: Item) -> Annotation | None:
    """The newest adjudication of an item."""
    rows = Annotation.objects.filter(assignment__item=item, assignment__is_adjudication=True)
    return rows.select_related("assignment__annotator").order_by("-created_at", "-pk").first()


def gold_accuracies(
    campaign: Campaign, *, annotator: Annotator | None = None, since: datetime | None = None
) -> dict[str, GoldAccuracy]:
    """By annotator. Unanswered questions do not count. since: ignores what was submitted before."""
    gold = Assignment.objects.filter(item__campaign=campaign, item__purpose=Item.Purpose.GOLD)
    theirs = gold.filter(is_adjudication=False, state=Assignment.State.SUBMITTED)
    if annotator is not None:
        theirs = theirs.filter(annotator=annotator)
    if since is not None:
        theirs = theirs.filter(finished_at__gte=since)
    expected = group_by_question(
        collect_agreement_values(_newest_annotations(gold.filter(is_adjudication=True), "item"))
    )
    is_correct: dict[str, list[bool]] = defaultdict(list)
    items: dict[str, set[int]] = defaultdict(set)
    for question, answers_by_annotator in group_by_question(
        collect_agreement_values(_newest_annotations(theirs, "assignment"))
    ).items():
        for name, answer in answers_by_annotator.items() if question in expected else ():
            is_correct[name].append(not is_disputed([answer, *expected[question].values()]))
            items[name].add(answer.item)
    return {
        name: GoldAccuracy(sum(found), len(found), len(items[name])) for name, found in is_correct.items()
    }


def strict_gold_answers(
    project: Project, campaigns: Collection[str] | None = None
) -> dict[str, tuple[int, int]]:
    """By annotator, (right, all) of the comparisons of gold items where the annotator and the adjudication both choose
    one trajectory over the other. campaigns: by name; None is all. Without the answers of judges.
    """
    gold = Assignment.objects.filter(item__campaign__project=project, item__purpose=Item.Purpose.GOLD)
    if campaigns:
        gold = gold.filter(item__campaign__name__in=campaigns)
    strict = Preference.objects.filter(choice__in=("a", "b"))
    question = ("annotation__assignment__item", "criterion")
    adjudicated = _newest_annotations(gold.filter(is_adjudication=True), "item")
    expected = {
        (item, criterion): choice
        for item, criterion, choice in strict.filter(annotation__in=adjudicated).values_list(
            *question, "choice"
        )
    }
    theirs = gold.filter(is_adjudication=False, state=Assignment.State.SUBMITTED)
    found: dict[str, tuple[int, int]] = {}
    for name, item, criterion, choice in strict.filter(
        annotation__in=_newest_annotations(theirs, "assignment").exclude(BY_JUDGES)
    ).values_list("annotation__assignment__annotator__name", *question, "choice"):
        if (item, criterion) in expected:
            right, of = found.get(name, (0, 0))
            found[name] = right + (choice == expected[item, criterion]), of + 1
    return found


def is_as_expected(annotation: Annotation, expected: Annotation) -> bool:
    """Whether all questions that both answer are answered alike."""
    expected_answers = group_by_question(collect_agreement_values(Annotation.objects.filter(pk=expected.pk)))
    given_answers = group_by_question(collect_agreement_values(Annotation.objects.filter(pk=annotation.pk)))
    return not any(
        is_disputed([*given_answers[question].values(), *expected_answers[question].values()])
        for question in given_answers.keys() & expected_answers.keys()
    )


def _newest_annotations(assignments: QuerySet[Assignment], of: str) -> QuerySet[Annotation]:
    """The newest annotation of each assignment, or of each item."""
    field = "assignment__item" if of == "item" else "assignment"
    rows = Annotation.objects.filter(assignment__in=assignments, is_surplus=False)
    newest = rows.order_by(field, "-created_at", "-revision").distinct(field).values("pk")
    return Annotation.objects.filter(pk__in=newest)
