"""A campaign as one annotator sees it: what they did, what is left, their pace. All of it is one statement.

These numbers follow every annotation, and the annotator waits for them; hence SQL, which takes no time to build.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection
from django.db.models import Exists, OuterRef, Q

from apps.accounts.models import Project
from apps.annotation.models import Annotator, Assignment, Campaign, Item
from apps.annotation.selectors import list_examples

COUNTED = 1000  # items left are counted up to this number
RECENT = 20  # annotations that the pace is computed from

_PROGRESS = """
SELECT c.id, own.submitted, own.skipped, own.seconds, own.previous, own.previous_purpose,
  practice.n, left_over.n, paused.reason, examples.present
FROM annotation_campaign c
CROSS JOIN LATERAL (
  SELECT
    count(*) FILTER (WHERE a.state = 'submitted' AND i.purpose <> 'practice') AS submitted,
    count(*) FILTER (
      WHERE a.state IN ('skipped', 'flagged') AND i.purpose = 'work' AND i.claimed_count < i.overlap) AS skipped,
    (array_agg(a.active_seconds ORDER BY a.finished_at DESC NULLS LAST) FILTER (
      WHERE a.state = 'submitted' AND i.purpose <> 'practice' AND a.active_seconds > 0))[:%(recent)s] AS seconds,
    (array_agg(a.id ORDER BY a.finished_at DESC, a.id DESC) FILTER (WHERE a.finished_at IS NOT NULL))[1] AS previous,
    (array_agg(i.purpose ORDER BY a.finished_at DESC, a.id DESC) FILTER (WHERE a.finished_at IS NOT NULL))[1]
      AS previous_purpose
  FROM annotation_assignment a JOIN annotation_item i ON i.id = a.item_id
  WHERE i.campaign_id = c.id AND a.annotator_id = %(annotator)s AND NOT a.is_adjudication
) own
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM annotation_item i
  WHERE i.campaign_id = c.id AND i.purpose = 'practice' AND NOT EXISTS (
    SELECT FROM annotation_assignment a
    WHERE a.item_id = i.id AND a.annotator_id = %(annotator)s AND a.state NOT IN ('locked', 'expired'))
) practice
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (
    SELECT FROM annotation_item i
    WHERE i.campaign_id = c.id AND i.purpose <> 'practice' AND NOT EXISTS (
      SELECT FROM annotation_assignment a
      WHERE a.item_id = i.id AND a.annotator_id = %(annotator)s AND a.state NOT IN ('locked', 'assigned', 'expired'))
    AND (
      (i.claimed_count < i.overlap AND (i.in_pilot OR NOT c.in_pilot))
      OR i.id IN (
        SELECT a.item_id FROM annotation_assignment a
        WHERE a.annotator_id = %(annotator)s AND a.state IN ('locked', 'assigned')))
    LIMIT %(counted)s
  ) open_items
) left_over
LEFT JOIN LATERAL (
  SELECT p.reason FROM annotation_participation p
  WHERE p.campaign_id = c.id AND p.annotator_id = %(annotator)s AND p.paused_at IS NOT NULL
) paused ON true
CROSS JOIN LATERAL (
  SELECT EXISTS (SELECT FROM annotation_item i WHERE i.campaign_id = c.id AND i.purpose = 'example') AS present
) examples
WHERE c.id = ANY(%(campaigns)s)
"""


@dataclass(frozen=True, slots=True)
class MyCampaign:
    """A campaign as one annotator sees it. left: up to COUNTED. pace: median seconds of recent annotations.

    practice: practice items left. paused: reason of a pause. examples: items shown with the guidelines. skipped: items
    they skipped or flagged that still need an annotation. previous: the assignment they finished last.
    """

    campaign: Campaign
    mine: int
    left: int
    pace: float | None
    practice: int = 0
    paused: str = ""
    examples: tuple[Item, ...] = ()
    skipped: int = 0
    previous: int | None = None
    previous_purpose: str | None = None

    @property
    def is_workable(self) -> bool:
        is_open = self.campaign.state == Campaign.State.OPEN and not self.campaign.is_over
        return is_open and not self.paused and self.left + self.practice > 0

    @property
    def has_enough(self) -> bool:
        return (
            self.campaign.max_items_per_annotator is not None
            and self.mine >= self.campaign.max_items_per_annotator
        )

    @property
    def undoable(self) -> int | None:
        """The assignment they finished last, unless its correct answer was shown."""
        return None if self.previous_purpose == Item.Purpose.PRACTICE else self.previous

    @property
    def position(self) -> int:
        """Of the next item, from 1."""
        return self.mine + 1

    @property
    def total(self) -> int:
        """Items done and left."""
        return self.mine + self.left

    @property
    def left_is_more(self) -> bool:
        return self.left > COUNTED

    @property
    def minutes_left(self) -> int | None:
        return None if self.pace is None else max(1, round(self.left * self.pace / 60))


def my_campaigns(project: Project, annotator: Annotator) -> list[MyCampaign]:
    """Campaigns an annotator can work in, then those they worked in."""
    worked = Exists(Assignment.objects.filter(item__campaign=OuterRef("pk"), annotator=annotator))
    rows = Campaign.objects.filter(Q(state=Campaign.State.OPEN) | worked, project=project)
    rows = rows.exclude(state=Campaign.State.ARCHIVED).select_related("project")
    works = _progress_in(rows.order_by("-created_at", "-pk"), annotator)
    return sorted(works, key=lambda work: not work.is_workable)


def my_campaign(campaign: Campaign, annotator: Annotator) -> MyCampaign:
    return _progress_in([campaign], annotator)[0]


def _progress_in(campaigns: Iterable[Campaign], annotator: Annotator) -> list[MyCampaign]:
    by_key = {campaign.pk: campaign for campaign in campaigns}
    values: dict[str, int | list[int]] = {
        "annotator": annotator.pk, "campaigns": list(by_key), "recent": RECENT, "counted": COUNTED + 1,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_PROGRESS, values)
        rows = {row[0]: row for row in cursor.fetchall()}
    return [_my_campaign(campaign, *rows[key][1:]) for key, campaign in by_key.items()]


def _my_campaign(
    campaign: Campaign,
    submitted: int,
    skipped: int,
    seconds: list[float] | None,
    previous: int | None,
    previous_purpose: str | None,
    practice: int,
    left: int,
    paused: str | None,
    has_examples: bool,
) -> MyCampaign:
    if campaign.max_items_per_annotator is not None:
        left = min(left, max(0, campaign.max_items_per_annotator - submitted))
    return MyCampaign(
        campaign,
        submitted,
        left,
        sorted(seconds)[len(seconds) // 2] if seconds else None,
        practice,
        paused or "",
        tuple(list_examples(campaign)) if has_examples else (),
        skipped,
        previous,
        previous_purpose,
    )
