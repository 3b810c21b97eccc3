"""Items that everybody skipped: who did is told, they can be offered again, and nothing counts beyond the whole."""

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.annotation import own_progress, services
from apps.annotation.models import Assignment, Campaign, Item
from apps.annotation.quality import pilot_statistics
from tests.annotation import rows


@pytest.fixture
def skipped(campaign: Campaign, annotator: User, other_annotator: User) -> Campaign:
    """Two items that both annotators skipped."""
    for name in ("one", "two"):
        rows.pair(campaign, name)
    for user in (annotator, other_annotator):
        for _ in range(2):
            services.skip_assignment(assignment=rows.leased(campaign, user), reason="Too long", by=user)
    return campaign


def work(client: Client, user: User, campaign: Campaign) -> str:
    client.force_login(user)
    return client.get(reverse("annotation:campaign-work", args=["desk", campaign.pk])).content.decode()


def test_annotators_are_told_that_they_skipped_them(
    client: Client, skipped: Campaign, annotator: User
) -> None:
    page = work(client, annotator, skipped)
    assert "Only items that you skipped are left" in page and "2 skipped" in page
    assert "assigned to or annotated by others" not in page


def test_those_whom_others_left_nothing_are_told_so(
    client: Client, campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    rows.pair(campaign, "one")
    rows.leased(campaign, other_annotator)
    assert "assigned to or annotated by others" in work(client, annotator, campaign)


def test_the_manager_sees_who_skipped_and_offers_the_items_again(
    client: Client, skipped: Campaign, annotator: User, researcher: User
) -> None:
    client.force_login(researcher)
    detail = reverse("annotation:campaign-detail", args=["desk", skipped.pk])
    page = client.get(detail).content.decode()
    assert "2 skipped items without enough annotations" in page
    assert page.count("Too long") == 4 and page.count('<td class="text-break">ben@example.org</td>') == 3
    offered = client.post(reverse("annotation:campaign-offer", args=["desk", skipped.pk]), follow=True)
    assert "2 items are offered again." in offered.content.decode()
    assert "skipped items without" not in offered.content.decode()
    rows.assert_counts_are_right(skipped)
    assert own_progress.my_campaign(skipped, rows.annotator(skipped, annotator)).left == 2
    rows.submit(rows.leased(skipped, annotator), annotator)
    services.skip_assignment(assignment=rows.leased(skipped, annotator), reason="Too long", by=annotator)
    # What has its annotation is not offered once more, nor what was never skipped.
    assert services.offer_skipped_items(campaign=skipped) == 1
    assert Assignment.objects.filter(state="submitted").count() == 1


def test_what_a_pilot_has_is_never_more_than_it_wants(campaign: Campaign) -> None:
    rows.pair(campaign, "one")
    rows.pair(campaign, "two")
    campaign.items.update(in_pilot=True)
    Item.objects.filter(task__external_id="one").update(completed_count=5, claimed_count=5)
    found = pilot_statistics(campaign)
    assert (found.done, found.wanted, found.left) == (1, 2, 0)
    campaign.items.update(in_pilot=False)
    assert pilot_statistics(campaign).left == 1


def test_only_items_that_someone_gets_are_offered(
    skipped: Campaign, annotator: User, other_annotator: User
) -> None:
    """Flagged ones wait for the manager, and who left the project gets none."""
    mine = Assignment.objects.filter(item__campaign=skipped, annotator__user=annotator)
    mine.update(state=Assignment.State.FLAGGED)
    other_annotator.memberships.all().delete()
    assert services.offer_skipped_items(campaign=skipped) == 0
    mine.filter(pk=mine.order_by("pk")[0].pk).update(state=Assignment.State.SKIPPED)
    assert services.offer_skipped_items(campaign=skipped) == 1
    assert mine.filter(state=Assignment.State.FLAGGED).count() == 1
