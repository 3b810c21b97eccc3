"""What waits for an annotator in a campaign before a new item does. One statement, since they wait for its answer."""

from datetime import datetime
from typing import NamedTuple

from django.db import connection
from django.utils import timezone

from apps.annotation.models import Annotator, Campaign

_WAITING = """
SELECT
  EXISTS (SELECT FROM mine WHERE state = 'locked'),
  EXISTS (SELECT FROM unseen WHERE purpose = 'practice'),
  EXISTS (SELECT FROM mine WHERE state = 'assigned' AND campaign_id = %(campaign)s),
  EXISTS (SELECT FROM mine WHERE state = 'expired' AND campaign_id = %(campaign)s AND finished_at IS NULL),
  EXISTS (SELECT FROM unseen WHERE purpose = 'gold'),
  EXISTS (
    SELECT FROM annotation_assignment a JOIN annotation_item i ON i.id = a.item_id
    WHERE a.lock_expires_at < %(now)s AND a.state IN ('locked', 'assigned') AND i.campaign_id = %(campaign)s),
  (
    SELECT p.reason FROM annotation_participation p
    WHERE p.campaign_id = %(campaign)s AND p.annotator_id = %(annotator)s AND p.paused_at IS NOT NULL)
"""
_WITH = """
WITH mine AS NOT MATERIALIZED (
  SELECT a.state, a.finished_at, i.campaign_id
  FROM annotation_assignment a JOIN annotation_item i ON i.id = a.item_id
  WHERE a.annotator_id = %(annotator)s
), unseen AS NOT MATERIALIZED (
  SELECT i.purpose FROM annotation_item i
  WHERE i.campaign_id = %(campaign)s AND i.purpose <> 'work' AND NOT EXISTS (
    SELECT FROM annotation_assignment a WHERE a.item_id = i.id AND a.annotator_id = %(annotator)s)
)
"""


class Waiting(NamedTuple):
    """is_held: an item is locked by the annotator, in any campaign. has_practice, has_gold: items they have not had.

    has_reserved: items that a researcher assigned to them. has_expired: items they started, whose lock expired.
    is_overdue: locks of anyone in the campaign have expired and are not released yet.
    pause_reason: why the annotator is paused in the campaign; None where they are not.
    """

    is_held: bool
    has_practice: bool
    has_reserved: bool
    has_expired: bool
    has_gold: bool
    is_overdue: bool
    pause_reason: str | None


def find_waiting(campaign: Campaign, annotator: Annotator) -> Waiting:
    values: dict[str, int | datetime] = {
        "campaign": campaign.pk,
        "annotator": annotator.pk,
        "now": timezone.now(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_WITH + _WAITING, values)
        return Waiting(*cursor.fetchone())
