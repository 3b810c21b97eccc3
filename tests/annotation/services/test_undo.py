"""Undo: the last annotation, skip or flag is taken back, and the counts follow."""

import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.annotation import own_progress, services
from apps.annotation.feedback.records import current_annotations
from apps.annotation.models import Annotation, Assignment, Campaign, Item
from apps.core.errors import Conflict, Forbidden
from tests.annotation import rows


@pytest.fixture
def done(campaign: Campaign, annotator: User) -> Assignment:
    """The first of three items, annotated; the annotator holds the second."""
    for name in ("one", "two", "three"):
        rows.pair(campaign, name)
    assignment = rows.leased(campaign, annotator)
    rows.submit(assignment, annotator, "b", strength=2)
    rows.leased(campaign, annotator)
    return assignment


def undo(client: Client, assignment: Assignment, **headers: str) -> str:
    url = reverse("annotation:assignment-undo", args=["desk", assignment.pk])
    return client.post(url, headers=headers, follow=True).content.decode()


def is_checked(page: str, choice: str) -> bool:
    return re.search(rf'<input[^>]*value="{choice}"[^>]* checked', page) is not None


def test_the_item_is_back_with_its_answers_and_the_annotation_counts_no_longer(
    client: Client, campaign: Campaign, annotator: User, done: Assignment
) -> None:
    client.force_login(annotator)
    held = Assignment.objects.get(state="locked")
    Assignment.objects.filter(pk=held.pk).update(draft={"choice": "tie"})
    page = undo(client, done)
    assert "Taken back. Your answers are here again." in page
    assert is_checked(page, "left-2" if done.swapped else "right-2")
    withdrawn = Annotation.objects.get()
    assert withdrawn.is_surplus and withdrawn.withdrawn_at is not None
    assert current_annotations(campaign.project, {}).count() == 0
    mine = own_progress.my_campaign(campaign, rows.annotator(campaign, annotator))
    assert (mine.mine, mine.left) == (0, 3)
    rows.assert_counts_are_right(campaign)
    # Submitted again it counts; then comes what was held, with its draft.
    rows.submit(Assignment.objects.get(pk=done.pk), annotator, "a")
    assert current_annotations(campaign.project, {}).get().revision == 2
    after = rows.leased(campaign, annotator)
    assert after.pk == held.pk and after.draft == {"choice": "tie"}
    rows.assert_counts_are_right(campaign)


def test_a_skip_is_undone_unless_someone_else_has_the_item(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    rows.pair(campaign, "one")
    assignment = rows.leased(campaign, annotator)
    services.skip_assignment(assignment=assignment, reason="Too long", by=annotator)
    again = services.undo_assignment(assignment=assignment, by=annotator)
    assert (again.state, again.reason) == ("locked", "")
    rows.assert_counts_are_right(campaign)
    services.flag_assignment(assignment=again, reason="Broken", by=annotator)
    rows.leased(campaign, other_annotator)
    with pytest.raises(Conflict, match="Someone else has got this item"):
        services.undo_assignment(assignment=again, by=annotator)
    rows.assert_counts_are_right(campaign)


def test_what_cannot_be_undone(
    campaign: Campaign, annotator: User, other_annotator: User, done: Assignment
) -> None:
    with pytest.raises(Forbidden):
        services.undo_assignment(assignment=done, by=other_annotator)
    edited = rows.submit(done, annotator, "a")
    assert edited.revision == 2
    with pytest.raises(Conflict, match="has been edited"):
        services.undo_assignment(assignment=done, by=annotator)
    second = Assignment.objects.get(state="locked")
    with pytest.raises(Conflict, match="Only what you did last"):
        services.undo_assignment(assignment=second, by=annotator)
    rows.submit(second, annotator)
    with pytest.raises(Conflict, match="Only what you did last"):
        services.undo_assignment(assignment=done, by=annotator)
    Item.objects.filter(pk=second.item_id).update(purpose="practice", overlap=0)
    with pytest.raises(Conflict, match="Practice items"):
        services.undo_assignment(assignment=second, by=annotator)
    services.pause_campaign(campaign=campaign)
    with pytest.raises(Conflict, match="paused"):
        services.undo_assignment(assignment=Assignment.objects.get(pk=second.pk), by=annotator)


def test_the_message_and_the_page_offer_it(
    client: Client, campaign: Campaign, annotator: User, done: Assignment
) -> None:
    client.force_login(annotator)
    held = Assignment.objects.get(state="locked")
    url = reverse("annotation:assignment-submit", args=["desk", held.pk])
    form = {"idempotency_key": str(uuid.uuid4()), "choice": "left-1"}
    response = client.post(url, form, headers={"HX-Request": "true"})
    assert '"press": "#undo-last"' in response.headers["HX-Trigger"]
    assert reverse("annotation:assignment-undo", args=["desk", held.pk]) in response.content.decode()
    page = undo(client, held, **{"HX-Request": "true"})
    assert "Item 2 of 3" in page and is_checked(page, "left-1")
