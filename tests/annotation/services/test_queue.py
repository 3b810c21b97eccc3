"""The queue: who gets what, and that no one gets what another holds."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, Event

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.annotation import own_progress, services
from apps.annotation.models import Assignment, Campaign, Item
from apps.core.errors import Conflict, DomainError
from tests.annotation import rows
from tests.factories import make_member


def test_a_lease_counts_as_taken_and_is_resumed(campaign: Campaign, annotator: User) -> None:
    item = rows.pair(campaign, "one")
    first = rows.leased(campaign, annotator)
    assert first.item == item
    again = rows.leased(campaign, annotator)
    assert again == first
    rows.assert_counts_are_right(campaign)


def test_overlap_one_gives_each_item_to_one_person(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    for name in ("one", "two"):
        rows.pair(campaign, name)
    hers, his = rows.leased(campaign, annotator), rows.leased(campaign, other_annotator)
    assert hers.item_id != his.item_id
    rows.submit(hers, annotator)
    rows.submit(his, other_annotator)
    assert rows.lease(campaign, annotator) is None
    rows.assert_counts_are_right(campaign)


def test_nobody_gets_an_item_twice(project: Project, annotator: User) -> None:
    campaign = services.create_campaign(
        project=project, name="Three each", feedback_types=["pairwise"], overlap=3
    )
    rows.pair(campaign, "one")
    rows.submit(rows.leased(campaign, annotator), annotator)
    assert rows.lease(campaign, annotator) is None


def test_overlap_is_filled_evenly(project: Project, annotator: User, other_annotator: User) -> None:
    campaign = services.create_campaign(
        project=project, name="Two each", feedback_types=["pairwise"], overlap=2
    )
    for name in ("one", "two", "three"):
        rows.pair(campaign, name)
    seen = set()
    for _ in range(3):
        assignment = rows.leased(campaign, annotator)
        seen.add(assignment.item_id)
        rows.submit(assignment, annotator)
        assert max(campaign.items.values_list("claimed_count", flat=True)) == 1
    assert len(seen) == 3
    rows.submit(rows.leased(campaign, other_annotator), other_annotator)
    assert sorted(campaign.items.values_list("completed_count", flat=True)) == [1, 1, 2]


def test_priority_goes_first(project: Project, annotator: User) -> None:
    campaign = services.create_campaign(
        project=project, name="Urgent", feedback_types=["pairwise"], ordering="priority"
    )
    for name in ("one", "two", "three"):
        rows.pair(campaign, name)
    urgent = campaign.items.get(task__external_id="two")
    Item.objects.filter(pk=urgent.pk).update(priority=5)
    assert rows.leased(campaign, annotator).item == urgent


def test_an_expired_lease_goes_to_the_next_person(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    rows.pair(campaign, "one")
    hers = rows.leased(campaign, annotator)
    assert rows.lease(campaign, other_annotator) is None
    rows.let_expire(hers)
    his = rows.leased(campaign, other_annotator)
    hers.refresh_from_db()
    assert (his.item_id, hers.state) == (hers.item_id, Assignment.State.EXPIRED)
    rows.assert_counts_are_right(campaign)


def test_her_own_expired_lease_comes_back_with_coin_and_draft(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    hers = rows.leased(campaign, annotator)
    Assignment.objects.filter(pk=hers.pk).update(draft={"choice": "left-2"})
    rows.let_expire(hers)
    assert services.expire_locks() == 1
    again = rows.leased(campaign, annotator)
    assert (again.pk, again.draft, again.swapped) == (hers.pk, {"choice": "left-2"}, hers.swapped)
    rows.assert_counts_are_right(campaign)


def test_turning_to_another_campaign_gives_the_item_back(
    campaign: Campaign, project: Project, annotator: User
) -> None:
    other = services.create_campaign(project=project, name="Other", feedback_types=["pairwise"])
    rows.pair(campaign, "one")
    rows.pair(other, "two")
    first = rows.leased(campaign, annotator)
    rows.leased(other, annotator)
    first.refresh_from_db()
    assert first.state == Assignment.State.EXPIRED
    rows.assert_counts_are_right(campaign)
    assert rows.leased(campaign, annotator).pk == first.pk


def test_a_paused_campaign_hands_nothing_out(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    paused = services.pause_campaign(campaign=campaign)
    with pytest.raises(Conflict, match="paused"):
        rows.lease(paused, annotator)
    assert rows.lease(services.open_campaign(campaign=campaign), annotator) is not None


def test_the_coin_falls_on_both_sides_and_only_if_asked(project: Project, annotator: User) -> None:
    def coins(swap: bool) -> set[bool]:
        campaign = services.create_campaign(
            project=project, name=f"Swap {swap}", feedback_types=["pairwise"], swap_sides=swap
        )
        seen: set[bool] = set()
        for number in range(40):
            if swap and len(seen) == 2:
                break
            rows.pair(campaign, f"{swap} {number}")
            assignment = rows.leased(campaign, annotator)
            seen.add(assignment.swapped)
            rows.submit(assignment, annotator)
        return seen

    assert coins(swap=True) == {True, False}  # all forty alike: once in 10^12 runs
    assert coins(swap=False) == {False}


@pytest.mark.django_db(transaction=True)
def test_many_at_once_never_hold_the_same_item(project: Project) -> None:
    campaign = services.create_campaign(project=project, name="Race", feedback_types=["pairwise"])
    for number in range(12):
        rows.pair(campaign, str(number))
    people = [make_member(project, f"p{n}@example.org", "annotator") for n in range(6)]
    start = Barrier(len(people), timeout=30)

    def work(person: User) -> list[int]:
        mine = []
        start.wait()
        try:
            while (assignment := rows.lease(campaign, person)) is not None:
                mine.append(assignment.item_id)
                rows.submit(assignment, person)
        finally:
            connections.close_all()
        return mine

    with ThreadPoolExecutor(len(people)) as pool:
        taken = [item for mine in pool.map(work, people) for item in mine]
    assert sorted(taken) == sorted(campaign.items.values_list("pk", flat=True))
    rows.assert_counts_are_right(campaign)


@pytest.mark.django_db(transaction=True)
def test_two_tabs_of_one_person_lease_one_item(campaign: Campaign, annotator: User) -> None:
    for name in ("one", "two"):
        rows.pair(campaign, name)
    rows.annotator(campaign, annotator)
    start = Barrier(2, timeout=30)

    def tab(_: int) -> int:
        start.wait()
        try:
            return rows.leased(campaign, annotator).pk
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(tab, range(2)))) == 1
    rows.assert_counts_are_right(campaign)


@pytest.mark.django_db(transaction=True)
def test_nothing_left_is_not_said_while_a_locked_item_may_come_free(
    campaign: Campaign, annotator: User
) -> None:
    item = rows.pair(campaign, "one")
    rows.annotator(campaign, annotator)
    locked, waiting = Event(), Event()

    def look() -> Assignment | None:
        locked.wait(30)
        waiting.set()
        try:
            return rows.lease(campaign, annotator)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(look)
        with transaction.atomic():
            Item.objects.select_for_update().get(pk=item.pk)
            locked.set()
            waiting.wait(30)
            _wait_until_somebody_waits_for_our_lock()
        assignment = found.result(timeout=30)
    assert assignment is not None and assignment.item_id == item.pk


def _wait_until_somebody_waits_for_our_lock() -> None:
    with connection.cursor() as cursor:
        for _ in range(10_000):
            cursor.execute(
                "select count(*) from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))"
            )
            if cursor.fetchone()[0]:
                return
    raise AssertionError("nobody waited for the locked item")


def test_one_person_is_given_no_more_than_her_share(
    campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    for name in ("one", "two", "three"):
        rows.pair(campaign, name)
    services.update_campaign(campaign=campaign, max_items_per_annotator=2)
    campaign.refresh_from_db()
    held = rows.leased(campaign, annotator)
    services.skip_assignment(assignment=held, reason="too long", by=annotator)  # does not count
    for _ in range(2):
        rows.submit(rows.leased(campaign, annotator), annotator)
    assert rows.lease(campaign, annotator) is None
    mine = own_progress.my_campaign(campaign, rows.annotator(campaign, annotator))
    assert (mine.left, mine.has_enough, mine.is_workable) == (0, True, False)
    assert rows.lease(campaign, other_annotator) is not None
    with pytest.raises(DomainError, match="must be 1 or more"):
        services.update_campaign(campaign=campaign, max_items_per_annotator=0)


def test_nothing_is_handed_out_after_the_deadline_but_what_is_held_counts(
    campaign: Campaign, annotator: User
) -> None:
    rows.pair(campaign, "one")
    held = rows.leased(campaign, annotator)
    services.update_campaign(campaign=campaign, deadline=timezone.now() - timedelta(minutes=1))
    campaign.refresh_from_db()
    with pytest.raises(Conflict, match="deadline"):
        rows.lease(campaign, annotator)
    assert not rows.submit(held, annotator).is_surplus
