"""Figures are calculated again after each change that they depend on, and only then."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.annotation import kept_figures, services
from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.models import (
    Annotation,
    Annotator,
    Assignment,
    Campaign,
    Item,
    ItemTrajectory,
    Preference,
    Rating,
)
from apps.annotation.quality import disputed_items
from apps.annotation.views.quality import quality_figures
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory
from tests.annotation import rows


@pytest.fixture
def judged(campaign: Campaign, annotator: User, other_annotator: User) -> Campaign:
    """Two items by two people, who differ on the second. One of the answers is by a criterion."""
    services.update_campaign(campaign=campaign, overlap=3)
    for name in ("same", "apart"):
        rows.pair(campaign, name)
    for user, choices in (
        (annotator, {"same": "a", "apart": "a"}),
        (other_annotator, {"same": "a", "apart": "b"}),
    ):
        for _ in choices:
            held = rows.leased(campaign, user)
            rows.submit(held, user, choices[held.item.task.external_id])
    criterion = Criterion.objects.create(project=campaign.project, name="polite")
    Preference.objects.create(annotation=first(Annotation), choice="a", criterion=criterion)
    return Campaign.objects.get(pk=campaign.pk)


def first(model: Any) -> Any:
    return model.objects.order_by("pk")[0]


def change(model: Any, **fields: object) -> Callable[[Campaign], None]:
    def make(campaign: Campaign) -> None:
        model.objects.filter(pk=first(model).pk).update(**fields)

    return make


def submit_again(campaign: Campaign) -> None:
    assignment = Assignment.objects.select_related("annotator__user").order_by("pk")[0]
    assert assignment.annotator.user is not None
    rows.submit(assignment, assignment.annotator.user, "b")


def adjudicate(campaign: Campaign) -> None:
    item = Item.objects.get(task__external_id="apart")
    judge = Annotator.objects.order_by("pk")[0]
    assignment = services.start_adjudication(item=item, annotator=judge)
    assert judge.user is not None
    rows.submit(assignment, judge.user, "b")


def undo(campaign: Campaign) -> None:
    annotation = Annotation.objects.order_by("-pk")[0]
    annotation.withdrawn_at, annotation.is_surplus = timezone.now(), True
    annotation.save()


def rate(campaign: Campaign) -> None:
    trajectory = ItemTrajectory.objects.order_by("pk")[0].trajectory
    Rating.objects.create(annotation=first(Annotation), trajectory=trajectory, accept=True)


def swap_sides(campaign: Campaign) -> None:
    assignment = Assignment.objects.order_by("pk")[0]
    Assignment.objects.filter(pk=assignment.pk).update(swapped=not assignment.swapped)


def let_others_suggest(campaign: Campaign) -> None:
    Campaign.objects.update(suggester=first(Annotator))


CHANGES = {
    "a new revision": submit_again,
    "an adjudication": adjudicate,
    "a withdrawn annotation": undo,
    "a surplus annotation": change(Annotation, is_surplus=True),
    "active seconds": change(Annotation, active_seconds=41.5),
    "an origin": change(Annotation, origin="judge"),
    "an accepted suggestion": change(Annotation, suggestion="accepted"),
    "a deleted annotation": lambda campaign: first(Annotation).delete(),
    "a deleted item": lambda campaign: first(Item).delete(),
    "an answer": change(Preference, choice="tie"),
    "an answer of another type": rate,
    "an annotator's name": change(Annotator, name="renamed@example.org"),
    "sides": swap_sides,
    "a state": change(Assignment, state=Assignment.State.EXPIRED),
    "a time": change(Assignment, finished_at=timezone.now() - timedelta(days=1)),
    "a purpose": change(Item, purpose=Item.Purpose.GOLD),
    "a length": change(Trajectory, token_count=999),
    "a criterion's name": change(Criterion, name="kind"),
    "the campaign's name": change(Campaign, name="Renamed"),
    "who suggests": let_others_suggest,
    "feedback types": change(Campaign, feedback_types=["pairwise", "rating"]),
}


def counted(calls: list[int]) -> Callable[[Campaign], int]:
    def calculate(campaign: Campaign) -> int:
        calls.append(campaign.pk)
        return len(calls)

    return calculate


@pytest.mark.parametrize("name", CHANGES)
def test_after_a_change_they_are_calculated_again(judged: Campaign, name: str) -> None:
    calls: list[int] = []
    calculate = counted(calls)
    assert [kept_figures.kept_figures(judged, calculate) for _ in range(3)] == [1, 1, 1]
    CHANGES[name](judged)
    assert [kept_figures.kept_figures(judged, calculate) for _ in range(2)] == [2, 2], name


@pytest.mark.parametrize("name", CHANGES)
def test_the_page_shows_what_is_true_now(
    judged: Campaign, researcher: User, client: Client, name: str
) -> None:
    """What was kept before a change is never shown after it: the page equals that of an empty memory."""
    client.force_login(researcher)
    url = reverse("annotation:campaign-quality", args=["desk", judged.pk])
    client.get(url)
    CHANGES[name](judged)
    kept = client.get(url).context["quality"]
    kept_figures._kept.clear()
    assert kept == client.get(url).context["quality"]
    assert kept == quality_figures(Campaign.objects.get(pk=judged.pk))["quality"]


def test_what_figures_do_not_depend_on_calculates_nothing(judged: Campaign, annotator: User) -> None:
    calls: list[int] = []
    calculate = counted(calls)
    kept_figures.kept_figures(judged, calculate)
    rows.pair(judged, "new")
    rows.leased(judged, annotator)
    Item.objects.update(priority=3)
    assert kept_figures.kept_figures(judged, calculate) == 1
    other = services.create_campaign(project=judged.project, name="Other", feedback_types=["pairwise"])
    assert kept_figures.kept_figures(other, calculate) == 2


def test_a_change_while_it_calculates_is_not_missed(judged: Campaign) -> None:
    """What was calculated from rows of two moments is shown once, and not kept."""
    seen: list[int] = []

    def calculate(campaign: Campaign) -> int:
        seen.append(Annotation.objects.filter(is_surplus=False).count())
        if len(seen) == 1:
            Annotation.objects.order_by("pk")[:1].get().delete()
        return seen[-1]

    assert [kept_figures.kept_figures(judged, calculate) for _ in range(3)] == [4, 3, 3]
    assert len(seen) == 2


def test_the_second_visit_reads_the_fingerprint_alone(
    judged: Campaign, researcher: User, client: Client
) -> None:
    client.force_login(researcher)
    for name in ("campaign-quality", "campaign-reliability"):
        url = reverse(f"annotation:{name}", args=["desk", judged.pk])
        page = client.get(url)
        with CaptureQueriesContext(connection) as queries:
            again = client.get(url)
        tables = {kind.model._meta.db_table for kind in FEEDBACK_TYPES.values()}
        reading = [query["sql"] for query in queries if any(table in query["sql"] for table in tables)]
        assert len(reading) == 1 and "hash_record_extended" in reading[0]
        assert again.context["people"] == page.context["people"]


def test_the_memory_is_limited(judged: Campaign) -> None:
    for number in range(kept_figures.MAX_KEPT + 3):
        kept_figures.kept_figures(judged, counted([number]))
    assert len(kept_figures._kept) == kept_figures.MAX_KEPT


def test_callers_get_a_list_that_they_may_change(judged: Campaign) -> None:
    disputed = disputed_items(judged)
    assert len(disputed) == 1
    disputed.clear()
    assert len(disputed_items(judged)) == 1
