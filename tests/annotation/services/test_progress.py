"""What is counted as done in a campaign."""

import pytest

from apps.annotation.models import Campaign, Item
from apps.annotation.selectors import campaign_progress
from tests.annotation.rows import pair

pytestmark = pytest.mark.django_db


def test_annotations_beyond_the_overlap_are_counted_apart(campaign: Campaign) -> None:
    """As an import brings them: one item has three of two, another one of two."""
    first, second, _ = (pair(campaign, name) for name in ("refund", "order", "parcel"))
    Item.objects.filter(campaign=campaign).update(overlap=2)
    Item.objects.filter(pk=first.pk).update(claimed_count=3, completed_count=3)
    Item.objects.filter(pk=second.pk).update(claimed_count=1, completed_count=1)
    progress = campaign_progress(campaign)
    assert (progress.completed, progress.more, progress.annotations) == (3, 1, 4)
    assert (progress.items, progress.required) == (3, 6)
