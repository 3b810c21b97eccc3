"""Who gets what by someone's will: given items, taken back ones, pilots, orders by a score, archives."""

from typing import Any

import pytest

from apps.accounts.models import Project, User
from apps.accounts.services import remove_member
from apps.annotation import own_progress, services
from apps.annotation.models import Assignment, Campaign, Item
from apps.annotation.quality import pilot_statistics
from apps.core.errors import Conflict, DomainError
from tests.annotation import rows


def give(item: Item, user: User) -> int:
    return services.assign_items(annotator=rows.annotator(item.campaign, user), items=[item])


def test_what_is_given_comes_first_and_nobody_else_gets_it(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    items = [rows.pair(campaign, name) for name in ("one", "two", "three")]
    assert give(items[2], annotator) == 1
    assert give(items[2], annotator) == give(items[2], other_annotator) == 0
    his = {rows.leased(campaign, other_annotator).item_id}
    assert items[2].pk not in his
    assert own_progress.my_campaign(campaign, rows.annotator(campaign, annotator)).left == 2
    assert rows.leased(campaign, annotator).item == items[2]
    rows.assert_counts_are_right(campaign)


def test_what_is_given_stays_hers_when_her_lease_runs_out(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    item = rows.pair(campaign, "one")
    give(item, annotator)
    hers = rows.leased(campaign, annotator)
    rows.let_expire(hers)
    assert services.expire_locks(campaign=campaign) == 1
    assert rows.lease(campaign, other_annotator) is None
    assert rows.leased(campaign, annotator) == hers
    rows.submit(hers, annotator)
    item.refresh_from_db()
    assert (item.claimed_count, item.completed_count) == (1, 1)


@pytest.mark.parametrize("begun", [False, True])
def test_what_is_taken_back_goes_to_others(
    campaign: Campaign, annotator: User, other_annotator: User, begun: bool
) -> None:
    item = rows.pair(campaign, "one")
    give(item, annotator)
    if begun:
        rows.leased(campaign, annotator)
    hers = Assignment.objects.get()
    services.release_assignment(assignment=hers)
    with pytest.raises(Conflict, match="cannot be released"):
        services.release_assignment(assignment=hers)
    assert rows.leased(campaign, other_annotator).item == item
    assert rows.submit(hers, annotator).is_surplus  # too late, and kept
    rows.assert_counts_are_right(campaign)


def test_a_pilot_hands_out_only_its_items_and_tells_what_the_rest_takes(
    project: Project, annotator: User, other_annotator: User
) -> None:
    campaign = services.create_campaign(
        project=project, name="Dear", feedback_types=["pairwise"], overlap=2, hourly_pay=36
    )
    with pytest.raises(Conflict, match="no items"):
        services.start_pilot(campaign=campaign, items=2)
    for number in range(5):
        rows.pair(campaign, str(number))
    assert services.start_pilot(campaign=campaign, items=2) == 2
    campaign.refresh_from_db()
    for user, choices in ((annotator, "ab"), (other_annotator, "ab")):
        assert own_progress.my_campaign(campaign, rows.annotator(campaign, user)).left == 2
        for choice in choices:
            assignment = rows.leased(campaign, user)
            Assignment.objects.update(created_at="2026-01-01T00:00Z")
            rows.submit(assignment, user, choice, active_seconds=100)
        assert rows.lease(campaign, user) is None
    pilot = pilot_statistics(campaign)
    assert (pilot.items, pilot.wanted, pilot.done, pilot.left, pilot.is_done) == (2, 4, 4, 6, True)
    assert pilot.seconds == (100, 100, 100)
    assert pilot.cost is not None and pilot.cost[1] == pytest.approx(6 * 100 / 3600 * 36)
    assert [label for label, _ in pilot.alphas] == ["Comparison"]
    services.end_pilot(campaign=campaign)
    campaign.refresh_from_db()
    assert rows.lease(campaign, annotator) is not None


def test_the_most_informative_goes_first(project: Project, annotator: User) -> None:
    campaign = services.create_campaign(
        project=project, name="Active", feedback_types=["pairwise"], ordering="active"
    )
    items = {name: rows.pair(campaign, name) for name in ("unscored", "low", "high")}
    scores = {items["low"].pk: -1.5, items["high"].pk: 2.0}
    assert services.set_acquisition_scores(campaign=campaign, scores=scores) == 2
    order = []
    for _ in items:
        assignment = rows.leased(campaign, annotator)
        order.append(assignment.item.key)
        rows.submit(assignment, annotator)
    assert order == [items[name].key for name in ("high", "low", "unscored")]
    with pytest.raises(DomainError, match="finite"):
        services.set_acquisition_scores(campaign=campaign, scores={items["low"].pk: float("nan")})


def test_what_is_archived_is_out_of_the_lists(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    rows.submit(rows.leased(campaign, annotator), annotator)
    services.archive_campaign(campaign=campaign)
    campaign.refresh_from_db()
    hers = rows.annotator(campaign, annotator)
    assert own_progress.my_campaigns(campaign.project, hers) == []
    with pytest.raises(Conflict, match="archived"):
        rows.lease(campaign, annotator)
    services.open_campaign(campaign=campaign)
    assert len(own_progress.my_campaigns(campaign.project, hers)) == 1


def test_who_leaves_the_project_holds_nothing(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    items = [rows.pair(campaign, name) for name in ("one", "two", "three")]
    rows.submit(rows.leased(campaign, annotator), annotator)
    rows.leased(campaign, annotator)
    give(next(item for item in items if not item.assignments.exists()), annotator)
    remove_member(membership=campaign.project.memberships.get(user=annotator), by=None)
    rows.assert_counts_are_right(campaign)
    assert sum(campaign.items.values_list("claimed_count", flat=True)) == 1
    for _ in range(2):
        rows.submit(rows.leased(campaign, other_annotator), other_annotator)


def test_what_is_given_to_one_alone_goes_to_no_one_else(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    campaign.overlap = 2
    campaign.save()
    item = rows.pair(campaign, "one")
    hers, his = rows.annotator(campaign, annotator), rows.annotator(campaign, other_annotator)
    assert services.assign_items(annotator=hers, items=[item], only=True) == 1
    assert rows.lease(campaign, other_annotator) is None
    services.update_campaign(campaign=campaign, overlap=3)  # of the other items
    assert rows.lease(campaign, other_annotator) is None
    assignment = rows.leased(campaign, annotator)
    assert services.assign_items(annotator=his, items=[item], only=True) == 1  # two, by name
    rows.submit(assignment, annotator)
    rows.submit(rows.leased(campaign, other_annotator), other_annotator)
    rows.assert_counts_are_right(campaign)


@pytest.mark.parametrize("leave", [services.skip_assignment, services.flag_assignment])
def test_an_item_of_one_alone_that_is_left_goes_to_others(
    campaign: Campaign, annotator: User, other_annotator: User, leave: Any
) -> None:
    campaign.overlap = 2
    campaign.save()
    item = rows.pair(campaign, "one")
    services.assign_items(annotator=rows.annotator(campaign, annotator), items=[item], only=True)
    leave(assignment=rows.leased(campaign, annotator), reason="Too long", by=annotator)
    item.refresh_from_db()
    assert (item.is_exclusive, item.overlap, item.claimed_count) == (False, 2, 0)
    assert rows.leased(campaign, other_annotator).item == item
    rows.assert_counts_are_right(campaign)


def test_an_item_of_one_alone_that_is_released_is_open_to_everyone(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    item = rows.pair(campaign, "one")
    services.assign_items(annotator=rows.annotator(campaign, annotator), items=[item], only=True)
    services.release_assignment(assignment=Assignment.objects.get(item=item))
    item.refresh_from_db()
    assert (item.is_exclusive, item.overlap, item.claimed_count) == (False, campaign.overlap, 0)
    assert rows.leased(campaign, other_annotator).item == item
