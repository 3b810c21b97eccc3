"""Annotations: saved once, append-only, and kept when the lock has expired."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from apps.accounts.models import User
from apps.annotation import services
from apps.annotation.models import Annotation, Assignment, Campaign, Comment, Preference
from apps.core.errors import Conflict, DomainError, Forbidden
from tests.annotation import rows


def test_an_annotation_holds_what_was_said(campaign: Campaign, annotator: User) -> None:
    item = rows.pair(campaign, "one")
    run = item.trajectories.first()
    assignment = rows.leased(campaign, annotator)
    annotation = services.submit_annotation(
        assignment=assignment,
        idempotency_key=uuid.uuid4(),
        records=[
            Preference(choice="b", strength=2),
            Comment(trajectory=run, text="Rude.", first_step=1, last_step=1, sign=-1),
            Comment(trajectory=run, text="Fast."),
        ],
        by=annotator,
        active_seconds=0.0,
    )
    said = annotation.preferences.get()
    assert (said.choice, said.strength) == ("b", 2)
    assert [c.text for c in annotation.comments.order_by("pk")] == ["Rude.", "Fast."]
    assignment.refresh_from_db()
    assert (assignment.state, assignment.lock_expires_at) == (Assignment.State.SUBMITTED, None)
    assert (annotation.revision, annotation.is_surplus, annotation.campaign_version) == (1, False, 1)
    rows.assert_counts_are_right(campaign)


def test_the_fields_of_a_form_are_saved_by_stored_position(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    assignment = rows.leased(campaign, annotator)
    fields = {"choice": "left-2", "comment-0-text": "Rude.", "comment-0-on": "right"}
    annotation = services.submit_form(
        assignments=Assignment.objects.filter(pk=assignment.pk),
        fields=fields,
        idempotency_key=uuid.uuid4(),
        by=annotator,
    )
    preference, comment = annotation.preferences.get(), annotation.comments.get()
    left, right = ("b", 0) if assignment.swapped else ("a", 1)
    assert (preference.choice, preference.strength) == (left, 2)
    assert comment.trajectory == assignment.item.trajectories.order_by("places__position")[right]
    with pytest.raises(DomainError, match="Choose an answer first"):
        services.submit_form(
            assignments=Assignment.objects.filter(pk=assignment.pk),
            fields={},
            idempotency_key=uuid.uuid4(),
            by=annotator,
        )


def test_the_same_key_again_is_the_same_annotation(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    assignment, key = rows.leased(campaign, annotator), uuid.uuid4()
    first = rows.submit(assignment, annotator, "a", key=key)
    assert rows.submit(assignment, annotator, "a", key=key) == first
    assert Preference.objects.get().choice == "a"


def test_the_same_key_with_other_answers_is_an_edit(campaign: Campaign, annotator: User) -> None:
    """She was told that nothing was saved, though it was; she changed her mind, and sent the form once more."""
    rows.pair(campaign, "one")
    assignment, key = rows.leased(campaign, annotator), uuid.uuid4()
    rows.submit(assignment, annotator, "a", key=key)
    second = rows.submit(assignment, annotator, "b", key=key)
    assert (second.revision, second.preferences.get().choice) == (2, "b")
    assert rows.submit(assignment, annotator, "b", key=key) == second  # and that twice
    third = rows.submit(assignment, annotator, "tie", key=key)
    assert (third.revision, third.is_surplus) == (3, False)
    rows.assert_counts_are_right(campaign)


def test_a_key_of_another_item_is_refused(campaign: Campaign, annotator: User) -> None:
    for name in ("one", "two"):
        rows.pair(campaign, name)
    key = uuid.uuid4()
    rows.submit(rows.leased(campaign, annotator), annotator, key=key)
    with pytest.raises(Conflict, match="another item"):
        rows.submit(rows.leased(campaign, annotator), annotator, key=key)


def test_an_edit_is_a_new_revision_and_counts_once(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    assignment = rows.leased(campaign, annotator)
    rows.submit(assignment, annotator, "a")
    second = rows.submit(assignment, annotator, "both_bad")
    assert second.revision == 2
    assert [p.choice for p in Preference.objects.order_by("pk")] == ["a", "both_bad"]
    rows.assert_counts_are_right(campaign)


def test_late_but_still_wanted_counts(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    assignment = rows.leased(campaign, annotator)
    rows.let_expire(assignment)
    services.expire_locks()
    assert not rows.submit(assignment, annotator).is_surplus
    rows.assert_counts_are_right(campaign)
    assert campaign.items.get().completed_count == 1


def test_late_and_no_more_wanted_is_kept_aside_and_so_are_its_edits(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    rows.pair(campaign, "one")
    hers = rows.leased(campaign, annotator)
    rows.let_expire(hers)
    rows.submit(rows.leased(campaign, other_annotator), other_annotator)
    late = rows.submit(hers, annotator, "b")
    assert late.is_surplus and late.preferences.get().choice == "b"
    assert rows.submit(hers, annotator, "a").is_surplus
    hers.refresh_from_db()
    assert hers.state == Assignment.State.EXPIRED
    assert (campaign.items.get().claimed_count, campaign.items.get().completed_count) == (1, 1)
    rows.assert_counts_are_right(campaign)


def test_what_was_kept_aside_counts_when_it_is_edited_and_wanted_again(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    rows.pair(campaign, "one")
    hers = rows.leased(campaign, annotator)
    rows.let_expire(hers)
    his = rows.leased(campaign, other_annotator)
    assert rows.submit(hers, annotator, "b").is_surplus
    rows.let_expire(his)
    services.expire_locks()
    assert rows.lease(campaign, annotator) is None  # she has said what she thinks of it
    assert not rows.submit(hers, annotator, "a").is_surplus
    rows.assert_counts_are_right(campaign)


def test_a_skipped_item_goes_to_others_and_can_still_be_judged(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    rows.pair(campaign, "one")
    hers = services.skip_assignment(
        assignment=rows.leased(campaign, annotator), reason="Too long.", by=annotator
    )
    assert (hers.state, hers.reason) == (Assignment.State.SKIPPED, "Too long.")
    rows.assert_counts_are_right(campaign)
    assert rows.lease(campaign, annotator) is None
    assert not rows.submit(hers, annotator).is_surplus
    rows.assert_counts_are_right(campaign)
    assert rows.lease(campaign, other_annotator) is None


def test_a_flag_needs_a_reason_and_is_kept(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    assignment = rows.leased(campaign, annotator)
    with pytest.raises(DomainError, match="Give a reason"):
        services.flag_assignment(assignment=assignment, reason=" ", by=annotator)
    flagged = services.flag_assignment(assignment=assignment, reason="Broken text.", by=annotator)
    assert flagged.state == Assignment.State.FLAGGED
    rows.assert_counts_are_right(campaign)


def test_what_is_judged_cannot_be_skipped(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    assignment = rows.leased(campaign, annotator)
    rows.submit(assignment, annotator)
    with pytest.raises(Conflict, match="already annotated"):
        services.skip_assignment(assignment=assignment, reason="no", by=annotator)


@pytest.mark.parametrize(
    ("judgements", "message"),
    [
        ([], "Choose an answer first"),
        ([Preference(choice="a"), Preference(choice="b")], "answered twice"),
    ],
)
def test_too_little_or_too_much_is_refused(
    campaign: Campaign, annotator: User, judgements: list[Preference], message: str
) -> None:
    rows.pair(campaign, "one")
    with pytest.raises(DomainError, match=message):
        services.submit_annotation(
            assignment=rows.leased(campaign, annotator),
            idempotency_key=uuid.uuid4(),
            records=judgements,
            by=annotator,
        )
    assert not Annotation.objects.exists()


def test_a_kind_the_campaign_does_not_ask_for_is_refused(campaign: Campaign, annotator: User) -> None:
    only = services.create_campaign(project=campaign.project, name="Only pairs", feedback_types=["pairwise"])
    item = rows.pair(only, "one")
    comment = Comment(trajectory=item.trajectories.first(), text="Hello")
    with pytest.raises(DomainError, match="has no feedback type for a comment"):
        services.submit_annotation(
            assignment=rows.leased(only, annotator),
            idempotency_key=uuid.uuid4(),
            records=[Preference(choice="a"), comment],
            by=annotator,
        )


def test_nobody_writes_for_somebody_else(campaign: Campaign, annotator: User, other_annotator: User) -> None:
    rows.pair(campaign, "one")
    hers = rows.leased(campaign, annotator)
    with pytest.raises(Forbidden):
        rows.submit(hers, other_annotator)
    with pytest.raises(Forbidden):
        services.skip_assignment(assignment=hers, reason="no", by=other_annotator)
    with pytest.raises(Forbidden):
        services.save_draft(assignment=hers, fields={}, idempotency_key=uuid.uuid4(), by=other_annotator)


def test_a_draft_is_kept_and_renews_the_lease(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    hers = rows.leased(campaign, annotator)
    rows.let_expire(hers)
    saved = services.save_draft(
        assignment=hers,
        fields={"choice": "left-1"},
        idempotency_key=uuid.uuid4(),
        by=annotator,
        active_seconds=1e6,
    )
    assert saved.draft == {"choice": "left-1"}
    assert services.expire_locks() == 0
    assert saved.active_seconds < 60


def test_a_draft_after_the_lease_takes_the_item_back_if_it_is_free(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    rows.pair(campaign, "one")
    hers = rows.leased(campaign, annotator)
    rows.let_expire(hers)
    services.expire_locks()
    saved = services.save_draft(
        assignment=hers, fields={"a": "1"}, idempotency_key=uuid.uuid4(), by=annotator
    )
    assert saved.state == Assignment.State.LOCKED
    rows.assert_counts_are_right(campaign)
    rows.let_expire(hers)
    rows.leased(campaign, other_annotator)
    saved = services.save_draft(
        assignment=hers, fields={"a": "2"}, idempotency_key=uuid.uuid4(), by=annotator
    )
    assert (saved.state, saved.draft) == (Assignment.State.EXPIRED, {"a": "2"})
    rows.assert_counts_are_right(campaign)


def test_a_draft_that_arrives_after_its_annotation_is_old_news(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    hers, key = rows.leased(campaign, annotator), uuid.uuid4()
    rows.submit(hers, annotator, key=key)
    services.save_draft(assignment=hers, fields={"choice": "tie"}, idempotency_key=key, by=annotator)
    hers.refresh_from_db()
    assert (hers.draft, hers.state) == ({}, Assignment.State.SUBMITTED)


def test_an_annotation_opened_again_and_not_changed_is_no_draft(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    hers = rows.leased(campaign, annotator)
    fields = {"choice": "left-1"}
    services.submit_form(
        assignments=Assignment.objects.filter(pk=hers.pk),
        fields=fields,
        idempotency_key=uuid.uuid4(),
        by=annotator,
    )
    again: dict[str, Any] = {"assignment": hers, "by": annotator}
    other = {"choice": "right-1"}
    assert services.save_draft(fields=other, idempotency_key=uuid.uuid4(), **again).draft == other
    assert services.save_draft(fields={}, idempotency_key=uuid.uuid4(), **again).draft == {}
    saved = services.save_draft(fields=fields, idempotency_key=uuid.uuid4(), **again)
    assert (saved.draft, saved.draft_saved_at) == ({}, None)


@pytest.mark.django_db(transaction=True)
def test_a_double_click_makes_one_annotation(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    assignment, key = rows.leased(campaign, annotator), uuid.uuid4()
    start = Barrier(4, timeout=30)

    def click(_: int) -> int:
        start.wait()
        try:
            return rows.submit(assignment, annotator, key=key).pk
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(click, range(4)))) == 1
    assert Annotation.objects.count() == 1
    rows.assert_counts_are_right(campaign)


@pytest.mark.django_db(transaction=True)
def test_expiry_and_annotation_at_once_keep_the_counts(campaign: Campaign, annotator: User) -> None:
    for number in range(10):
        rows.pair(campaign, str(number))
        assignment = rows.leased(campaign, annotator)
        rows.let_expire(assignment)
        start = Barrier(2, timeout=30)

        def release_assignment(start: Barrier = start) -> None:
            start.wait()
            try:
                services.expire_locks()
            finally:
                connections.close_all()

        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(release_assignment)
            start.wait()
            rows.submit(assignment, annotator)
            other.result(timeout=30)
    rows.assert_counts_are_right(campaign)
    assert sum(campaign.items.values_list("completed_count", flat=True)) == 10
