"""What adjudications say is right, and how others' answers compare."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from apps.annotation.answers import answers_to, by_question, part
from apps.annotation.models import Annotation, Annotator, Assignment, Campaign, Item


@dataclass(frozen=True, slots=True)
class GoldShare:
    """n of the `of` questions answered as expected, on so many items."""

    n: int
    of: int
    items: int


def expected_of(item: Item) -> Annotation | None:
    """The newest adjudication of an item."""
    rows = Annotation.objects.filter(assignment__item=item, assignment__is_adjudication=True)
    return rows.select_related("assignment__annotator").order_by("-created_at", "-pk").first()


def gold_shares(
    campaign: Campaign, *, annotator: Annotator | None = None, since: datetime | None = None
) -> dict[str, GoldShare]:
    """By annotator. A question left open is not held against anybody. since: leaves out what was submitted before."""
    gold = Assignment.objects.filter(item__campaign=campaign, item__purpose=Item.Purpose.GOLD)
    theirs = gold.filter(is_adjudication=False, state=Assignment.State.SUBMITTED)
    if annotator is not None:
        theirs = theirs.filter(annotator=annotator)
    if since is not None:
        theirs = theirs.filter(finished_at__gte=since)
    known = by_question(answers_to(_newest(gold.filter(is_adjudication=True), "item")))
    right: dict[str, list[bool]] = defaultdict(list)
    items: dict[str, set[int]] = defaultdict(set)
    for question, said in by_question(answers_to(_newest(theirs, "assignment"))).items():
        for name, one in said.items() if question in known else ():
            right[name].append(not part([one, *known[question].values()]))
            items[name].add(one.item)
    return {name: GoldShare(sum(found), len(found), len(items[name])) for name, found in right.items()}


def is_as_expected(said: Annotation, right: Annotation) -> bool:
    """Whether every question that both answer is answered alike."""
    known = by_question(answers_to(Annotation.objects.filter(pk=right.pk)))
    mine = by_question(answers_to(Annotation.objects.filter(pk=said.pk)))
    return not any(part([*mine[one].values(), *known[one].values()]) for one in mine.keys() & known.keys())


def _newest(assignments: QuerySet[Assignment], of: str) -> QuerySet[Annotation]:
    """The newest annotation of each assignment, or of each item."""
    field = "assignment__item" if of == "item" else "assignment"
    rows = Annotation.objects.filter(assignment__in=assignments, is_surplus=False)
    newest = rows.order_by(field, "-created_at", "-revision").distinct(field).values("pk")
    return Annotation.objects.filter(pk__in=newest)
