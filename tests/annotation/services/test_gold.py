"""Known answers: who decides, what is gold and practice, who is paused; and what of it is data."""

import io
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from apps.accounts.models import AuditEvent, Project, User
from apps.accounts.pseudonyms import person_pseudonym
from apps.annotation import own_progress, selectors, services
from apps.annotation.agreement import agreement
from apps.annotation.feedback.exports import export_jsonl
from apps.annotation.feedback.records import feedback_records
from apps.annotation.feedback.services import import_feedback
from apps.annotation.gold import gold_accuracies, strict_gold_answers
from apps.annotation.models import Annotation, Assignment, Campaign, Item, Participation
from apps.annotation.quality import undecided_items
from apps.core.errors import Conflict, Forbidden
from tests.annotation import rows


@pytest.fixture
def campaign(project: Project) -> Campaign:
    return services.create_campaign(
        project=project, name="Which is better", feedback_types=["pairwise"], overlap=2
    )


def decide(item: Item, user: User, choice: str = "a") -> Annotation:
    assignment = services.start_adjudication(item=item, annotator=rows.annotator(item.campaign, user))
    return rows.submit(assignment, user, choice)


def known(campaign: Campaign, name: str, by: User, purpose: str = "gold") -> Item:
    item = rows.pair(campaign, name)
    decide(item, by)
    return services.set_item_purpose(item=item, purpose=purpose, explanation="It does what was asked.", by=by)


def always_gold(campaign: Campaign) -> None:
    Campaign.objects.filter(pk=campaign.pk).update(gold_percent=100)
    campaign.refresh_from_db()


def records(campaign: Campaign, **filters: Any) -> list[tuple[str, str]]:
    found = feedback_records(project=campaign.project, filters={"kinds": ["pairwise"], **filters})
    return sorted((record.annotator, record.choice) for record in found)  # type: ignore[union-attr]


def test_an_adjudication_stands_beside_what_was_said(
    campaign: Campaign, annotator: User, other_annotator: User, researcher: User
) -> None:
    item = rows.pair(campaign, "one")
    rows.submit(rows.leased(campaign, annotator), annotator, "a")
    rows.submit(rows.leased(campaign, other_annotator), other_annotator, "b")
    assert undecided_items(campaign) == [item.pk]
    before = agreement(project=campaign.project)
    decide(item, researcher, "a")
    assert undecided_items(campaign) == []
    assert agreement(project=campaign.project) == before
    rows.assert_counts_are_right(campaign)
    assert records(campaign) == [("rose@example.org", "a")]
    assert records(campaign, adjudication="not") == [("ann@example.org", "a"), ("ben@example.org", "b")]
    assert len(records(campaign, adjudication="also")) == 3
    exported = list(export_jsonl(project=campaign.project, filters={}))
    assert sum('"adjudication": true' in line for line in exported) == 1 and len(exported) == 3


def test_a_reviewer_may_judge_and_decide_the_same_item_and_only_she_writes_hers(
    campaign: Campaign, annotator: User, researcher: User
) -> None:
    item = rows.pair(campaign, "one")
    hers = rows.leased(campaign, researcher)
    deciding = services.start_adjudication(item=item, annotator=rows.annotator(campaign, researcher))
    assert services.start_adjudication(item=item, annotator=rows.annotator(campaign, researcher)) == deciding
    with pytest.raises(Forbidden):
        rows.submit(deciding, annotator)
    rows.submit(deciding, researcher)
    assert rows.submit(hers, researcher).revision == 1
    with pytest.raises(IntegrityError), transaction.atomic():
        Assignment.objects.create(item=item, annotator=hers.annotator, state="expired")
    with pytest.raises(Conflict):
        services.skip_assignment(
            assignment=services.start_adjudication(item=rows.pair(campaign, "two"), annotator=hers.annotator),
            reason="no",
            by=researcher,
        )


def test_an_item_nobody_decided_is_no_gold(campaign: Campaign) -> None:
    with pytest.raises(Conflict, match="adjudicate"):
        services.set_item_purpose(item=rows.pair(campaign, "one"), purpose="gold")


def test_gold_is_for_everybody_once_and_counts_nothing(
    campaign: Campaign, annotator: User, researcher: User
) -> None:
    gold = known(campaign, "known", researcher)
    rows.pair(campaign, "work")
    always_gold(campaign)
    first = rows.leased(campaign, annotator)
    assert first.item == gold
    rows.submit(first, annotator, "a")
    second = rows.leased(campaign, annotator)
    assert second.item != gold
    gold.refresh_from_db()
    assert (gold.claimed_count, gold.completed_count, gold.overlap) == (0, 0, 0)
    assert selectors.campaign_progress(campaign).items == 1
    assert own_progress.my_campaign(campaign, first.annotator).mine == 1  # she does not know which it was
    rows.submit(second, annotator, "b")
    assert rows.lease(campaign, annotator) is None
    assert records(campaign) == [("ann@example.org", "b"), ("rose@example.org", "a")]


def test_gold_alone_is_not_handed_out(campaign: Campaign, annotator: User, researcher: User) -> None:
    known(campaign, "known", researcher)
    always_gold(campaign)
    assert rows.lease(campaign, annotator) is None


def test_an_item_made_gold_and_work_again_counts_as_before(
    campaign: Campaign, annotator: User, other_annotator: User, researcher: User
) -> None:
    item = rows.pair(campaign, "one")
    rows.submit(rows.leased(campaign, annotator), annotator)
    held = rows.leased(campaign, other_annotator)
    decide(item, researcher)
    services.set_item_purpose(item=item, purpose="gold", by=researcher)
    rows.submit(held, other_annotator)
    item = services.set_item_purpose(item=item, purpose="work", by=researcher)
    assert (item.claimed_count, item.completed_count, item.overlap) == (2, 2, 2)


def test_a_lease_of_gold_that_runs_out_is_found_again(
    campaign: Campaign, annotator: User, researcher: User
) -> None:
    gold = known(campaign, "known", researcher)
    rows.pair(campaign, "work")
    always_gold(campaign)
    first = rows.leased(campaign, annotator)
    rows.let_expire(first)
    assert services.expire_locks(campaign=campaign) == 1
    again = rows.leased(campaign, annotator)
    assert (again, again.item) == (first, gold)


def test_whoever_is_too_often_wrong_is_paused_until_let_go_on(
    campaign: Campaign, annotator: User, other_annotator: User, researcher: User
) -> None:
    for number in range(3):
        known(campaign, f"known {number}", researcher)
        rows.pair(campaign, f"work {number}")
    always_gold(campaign)
    for choice in ("a", "b", "b"):
        rows.submit(rows.leased(campaign, annotator), annotator, choice)
    assert (
        gold_accuracies(campaign)["ann@example.org"].n,
        gold_accuracies(campaign)["ann@example.org"].of,
    ) == (1, 3)
    with pytest.raises(Conflict, match="1 of 3 of your answers"):
        rows.lease(campaign, annotator)
    assert own_progress.my_campaign(campaign, rows.annotator(campaign, annotator)).is_workable is False
    told = AuditEvent.objects.get(verb="annotator.paused")
    # No one did it by hand.
    assert (told.actor, told.target) == ("gold check", person_pseudonym("ann@example.org"))
    rows.leased(campaign, other_annotator)  # others go on
    hers = rows.annotator(campaign, annotator)
    services.resume_annotator(campaign=campaign, annotator=hers, by=researcher)
    assert rows.lease(campaign, annotator) is not None
    assert Participation.objects.get().gold_counted_from is not None
    with pytest.raises(Conflict, match="not paused"):
        services.resume_annotator(campaign=campaign, annotator=hers, by=researcher)


def test_strict_answers_to_gold_are_those_of_people(
    campaign: Campaign, annotator: User, other_annotator: User, researcher: User
) -> None:
    for number in range(2):
        known(campaign, f"known {number}", researcher)
        rows.pair(campaign, f"work {number}")
    always_gold(campaign)
    for choice in ("a", "b"):
        rows.submit(rows.leased(campaign, annotator), annotator, choice)
    said = rows.submit(rows.leased(campaign, other_annotator), other_annotator, "a")
    assert strict_gold_answers(campaign.project) == {"ann@example.org": (1, 2), "ben@example.org": (1, 1)}
    Annotation.objects.filter(pk=said.pk).update(origin="judge")
    assert strict_gold_answers(campaign.project, ["Which is better"]) == {"ann@example.org": (1, 2)}
    assert strict_gold_answers(campaign.project, ["Another"]) == {}


def test_a_few_answers_say_nothing_of_anybody(campaign: Campaign, annotator: User, researcher: User) -> None:
    for number in range(6):
        known(campaign, f"known {number}", researcher)
        rows.pair(campaign, f"work {number}")
    always_gold(campaign)
    for _ in range(4):
        rows.submit(rows.leased(campaign, annotator), annotator, "b")
    rows.submit(rows.leased(campaign, annotator), annotator, "b")
    with pytest.raises(Conflict):
        rows.lease(campaign, annotator)


def test_practice_comes_first_and_is_no_data(campaign: Campaign, annotator: User, researcher: User) -> None:
    practice = known(campaign, "practice", researcher, "practice")
    rows.pair(campaign, "work")
    assert own_progress.my_campaign(campaign, rows.annotator(campaign, annotator)).practice == 1
    first = rows.leased(campaign, annotator)
    assert first.item == practice
    rows.submit(first, annotator, "b")
    mine = own_progress.my_campaign(campaign, first.annotator)
    assert (mine.practice, mine.mine, mine.left) == (0, 0, 1)
    assert rows.leased(campaign, annotator).item != practice
    assert records(campaign) == [("rose@example.org", "a")]
    assert agreement(project=campaign.project)["kinds"] == {}


def test_an_export_brings_adjudications_and_purposes_back(
    campaign: Campaign, annotator: User, researcher: User
) -> None:
    known(campaign, "known", researcher)
    rows.pair(campaign, "work")
    always_gold(campaign)
    for _ in range(2):
        rows.submit(rows.leased(campaign, annotator), annotator, "b")
    text = "".join(export_jsonl(project=campaign.project, filters={}))
    other = Project.objects.create(slug="copy", name="Copy")
    for _ in range(2):  # the second time nothing is new
        result = import_feedback(
            project=other, stream=io.BytesIO(text.encode()), format="pairs", by=None, campaign="Copied"
        )
    assert (result.created, result.duplicates, result.rejected) == (0, 3, [])
    copied = Item.objects.filter(campaign__project=other)
    assert sorted(copied.values_list("purpose", "overlap", "completed_count")) == [
        ("gold", 0, 0),
        ("work", 1, 1),
    ]
    assert copied.get(purpose="gold").explanation == "It does what was asked."
    found = feedback_records(project=other, filters={"kinds": ["pairwise"]})
    assert sorted((record.annotator, record.choice) for record in found) == [  # type: ignore[union-attr]
        ("ann@example.org", "b"),
        ("rose@example.org", "a"),
    ]
    bad = text.replace('"purpose": "gold"', '"purpose": "silver"').encode()
    refused = import_feedback(project=other, stream=io.BytesIO(bad), format="pairs", by=None).rejected
    assert {record["pointer"] for record in refused} == {"/made/purpose"} and "silver" in refused[0][
        "message"
    ]
