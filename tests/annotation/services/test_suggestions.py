"""Suggested answers: where they are offered, what is marked, and what the quality page compares."""

import uuid

import pytest

from apps.accounts.models import User
from apps.annotation import services
from apps.annotation.feedback.exports.jsonl_csv import provenance
from apps.annotation.feedback_types.category import CATEGORY
from apps.annotation.models import Annotation, Annotator, Assignment, Campaign, Item, Preference
from apps.annotation.presentation import present_item
from apps.annotation.services.judge_annotations import save_judge_annotation
from apps.annotation.services.suggestions import (
    ACCEPTED_FIELD,
    _is_drawn,
    suggested_annotation,
    suggested_fields,
)
from apps.annotation.suggestion_report import compare_suggestions
from apps.core.errors import DomainError
from tests.annotation import rows
from tests.annotation.feedback_types.test_category import FIELDS as CATEGORY_FIELDS
from tests.annotation.feedback_types.test_category import SHOWN


@pytest.fixture
def suggesting(campaign: Campaign) -> Campaign:
    """Every item drawn: the share is checked by the form, not by the draw."""
    campaign.suggester = Annotator.objects.create(project=campaign.project, name="judge:strict")
    campaign.save()
    return campaign


def suggest(campaign: Campaign, item: Item, choice: str = "a") -> None:
    save_judge_annotation(
        project=campaign.project,
        name="judge:strict",
        item=item.pk,
        rows=[Preference(choice=choice, strength=2)],
    )


@pytest.fixture
def person(campaign: Campaign, annotator: User) -> Annotator:
    return services.annotator_for(project=campaign.project, user=annotator)


def drawn(monkeypatch: pytest.MonkeyPatch, is_drawn: bool = True) -> None:
    monkeypatch.setattr(
        "apps.annotation.services.suggestions._is_drawn", lambda assignment, percent: is_drawn
    )


def submit(assignment: Assignment, user: User, **fields: str) -> Annotation:
    return services.submit_form(
        assignments=Assignment.objects.filter(pk=assignment.pk),
        fields=fields,
        idempotency_key=uuid.uuid4(),
        by=user,
    )


def test_accepted_changed_shown_and_none(
    suggesting: Campaign, annotator: User, person: Annotator, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = []
    for number, case in enumerate(("accepted", "changed", "shown", "free")):
        item = rows.pair(suggesting, f"task-{number}")
        suggest(suggesting, item)
        drawn(monkeypatch, case != "free")
        assignment = services.assign_next_item(campaign=suggesting, annotator=person)
        assert assignment is not None
        found = suggested_annotation(assignment)
        assert (found is None) == (case == "free")
        fields = suggested_fields(found, present_item(assignment), ["pairwise"]) if found else {}
        if case != "free":
            side = "right" if assignment.swapped else "left"
            assert fields == {"choice": f"{side}-2"}  # as the sides are shown
        choice = fields["choice"] if case == "accepted" else "tie"
        accepted: dict[str, str] = {ACCEPTED_FIELD: "1"} if case in ("accepted", "changed") else {}
        annotation = submit(assignment, annotator, choice=choice, **accepted)
        marks.append(annotation.suggestion)
        assert provenance(annotation)["suggestion"] == (annotation.suggestion or None)
    assert marks == ["accepted", "changed", "shown", ""]
    first = Annotation.objects.get(suggestion="accepted").assignment
    drawn(monkeypatch)
    edited = submit(first, annotator, choice="both_bad")
    assert (edited.revision, edited.suggestion) == (2, "changed")  # an edit cannot lose the mark
    figures = {
        found.mark: (found.annotations, found.same.n, found.same.of)
        for found in compare_suggestions(suggesting)
    }
    assert figures == {"changed": (2, 0, 2), "shown": (1, 0, 1), "": (1, 0, 1)}


def test_a_category_that_the_source_left_open_is_not_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    """`none` is what a form shows where there is no answer."""
    given = [row for row in CATEGORY.parse(CATEGORY_FIELDS, SHOWN) if row.criterion.name == "failure"]
    monkeypatch.setattr(CATEGORY, "load_records", lambda annotation: given)
    assert suggested_fields(Annotation(), SHOWN, ["category"]) == {
        name: value for name, value in CATEGORY_FIELDS.items() if "-9" in name
    }


@pytest.mark.parametrize("purpose", [Item.Purpose.GOLD, Item.Purpose.PRACTICE, Item.Purpose.EXAMPLE])
def test_never_for_items_with_an_answer(
    suggesting: Campaign, person: Annotator, purpose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn(monkeypatch)
    item = rows.pair(suggesting, "one")
    suggest(suggesting, item)
    assignment = services.assign_next_item(campaign=suggesting, annotator=person)
    assert assignment is not None and suggested_annotation(assignment) is not None
    assignment.item.purpose = purpose
    assert suggested_annotation(assignment) is None
    assignment.item.purpose = Item.Purpose.WORK
    assignment.is_adjudication = True
    assert suggested_annotation(assignment) is None


def test_items_without_a_suggestion_keep_gold_items_unknown(suggesting: Campaign) -> None:
    """Some work items have none whatever the share, so that the lack of one tells nothing."""
    item = Item(campaign=suggesting)
    drawn_share = []
    suggesting.suggestion_percent = 90
    for number in range(1, 400):
        assignment = Assignment(pk=number, item=item)
        drawn_share.append(_is_drawn(assignment, 90))
        assert _is_drawn(assignment, 90) == drawn_share[-1]  # the same each time the page is opened
    assert 0.8 < sum(drawn_share) / len(drawn_share) < 0.97
    for percent in (0, 91, 100):
        with pytest.raises(DomainError, match="between 1 and 90"):
            services.update_campaign(campaign=suggesting, suggestion_percent=percent)


def test_people_are_never_a_source(campaign: Campaign, person: Annotator) -> None:
    with pytest.raises(DomainError, match="is a person"):
        services.update_campaign(campaign=campaign, suggester=person)


def test_a_report_compares_with_free_answers_of_others(
    suggesting: Campaign,
    annotator: User,
    person: Annotator,
    monkeypatch: pytest.MonkeyPatch,
    researcher: User,
) -> None:
    services.update_campaign(campaign=suggesting, overlap=2)
    suggesting.refresh_from_db()
    item = rows.pair(suggesting, "one")
    suggest(suggesting, item)
    assert compare_suggestions(suggesting) == []
    drawn(monkeypatch)
    assignment = services.assign_next_item(campaign=suggesting, annotator=person)
    assert assignment is not None
    fields = suggested_fields(suggested_annotation(assignment), present_item(assignment), ["pairwise"])  # type: ignore[arg-type]
    submit(assignment, annotator, **fields, **{ACCEPTED_FIELD: "1"})
    drawn(monkeypatch, is_drawn=False)
    other = services.annotator_for(project=suggesting.project, user=researcher)
    free = services.assign_next_item(campaign=suggesting, annotator=other)
    assert free is not None
    submit(free, researcher, choice="right-1" if free.swapped else "left-1")
    found = {figures.mark: figures for figures in compare_suggestions(suggesting)}
    assert (found["accepted"].agreement.n, found["accepted"].agreement.of) == (1, 1)
    assert (found[""].same.n, found[""].same.of) == (1, 1)  # strength aside
    assert found[""].agreement.of == 0
