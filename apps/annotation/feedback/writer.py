"""Rows for judgements that came from elsewhere, a chunk at a time and in few queries."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import Count, Q

from apps.accounts.models import Project
from apps.annotation.feedback.incoming import (
    CommentValue,
    FeedbackResult,
    Incoming,
    OutcomeValue,
    PreferenceValue,
)
from apps.annotation.models import (
    Annotator,
    Assignment,
    Campaign,
    Comment,
    Item,
    ItemTrajectory,
    Preference,
    Submission,
)
from apps.annotation.services.items import item_key
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import by_external_ids
from apps.trajectories.services import store_trajectories
from workers import schema
from workers.errors import InvalidRecord

FLIPPED = {"a": "b", "b": "a", "tie": "tie", "both_bad": "both_bad"}
# What was said, as values that can be compared: (criterion id, choice, strength), and a comment's fields.
SaidPreference = tuple[int | None, str, int]
SaidComment = tuple[int, str, int | None, int | None, str, int | None, int | None, int | None]


@dataclass
class Revision:
    """A submission about to be written: all that its annotator has said of the item."""

    number: int
    origin: str
    preferences: dict[int | None, SaidPreference] = field(default_factory=dict)
    comments: list[SaidComment] = field(default_factory=list)


@dataclass
class Said:
    """What an assignment's annotator has said so far: ever (to know duplicates), last, and now."""

    ever: set[SaidPreference | SaidComment] = field(default_factory=set)
    last: Revision | None = None
    new: list[Revision] = field(default_factory=list)

    def add(self, value: SaidPreference | SaidComment, origin: str) -> bool:
        """Whether the value was new. One that replaces what this same import said becomes a revision of its own."""
        if value in self.ever:
            return False
        self.ever.add(value)
        preference = value if len(value) == 3 else None
        if not self.new or (preference and preference[0] in self._said_now) or self.new[-1].origin != origin:
            before = self.new[-1] if self.new else self.last
            self.new.append(
                Revision(
                    number=before.number + 1 if before else 1,
                    origin=origin,
                    preferences=dict(before.preferences) if before else {},
                    comments=list(before.comments) if before else [],
                )
            )
            self._said_now: set[int | None] = set()
        if preference:
            self._said_now.add(preference[0])
            self.new[-1].preferences[preference[0]] = preference
        else:
            self.new[-1].comments.append(value)  # type: ignore[arg-type]
        return True


class FeedbackWriter:
    """Writes chunks of judgements into one project. Keeps what it looked up: campaigns, annotators, criteria."""

    def __init__(self, *, project: Project, campaign: str) -> None:
        self.project = project
        self.default_campaign = campaign
        self.campaigns: dict[str, Campaign] = {}
        self.annotators: dict[str, Annotator] = {}
        self.criteria: dict[str, Criterion] = {}

    def write(
        self, numbered: Sequence[tuple[int, Incoming]], counts: FeedbackResult
    ) -> list[tuple[int, InvalidRecord]]:
        """Write a chunk, add to `counts`, and give back what could not be written, with its line."""
        chunk = [incoming for _, incoming in numbered]
        places, refused = self._places(chunk)
        rows = self._rows(place for found in places.values() for place in found)
        judged: dict[int, tuple[Incoming, list[int]]] = {}
        for index, incoming in enumerate(chunk):
            if index in refused:
                continue
            error = _check(incoming, [rows[pk] for pk in places[index]])
            if error:
                refused[index] = error
            elif isinstance(incoming.value, OutcomeValue):
                self._write_outcome(rows[places[index][0]], incoming.value, counts)
            else:
                judged[index] = (incoming, places[index])
        items, mismatched = self._items(judged, rows)
        refused |= mismatched
        self._write_judgements({index: judged[index] for index in items}, items, counts)
        return [(numbered[index][0], error) for index, error in sorted(refused.items())]

    def _places(self, chunk: list[Incoming]) -> tuple[dict[int, list[int]], dict[int, InvalidRecord]]:
        """The stored trajectories of each record by its place in the chunk; and which named an unknown one."""
        brought = [place for one in chunk for place in one.places if isinstance(place, schema.Trajectory)]
        stored = iter(
            store_trajectories(project=self.project, trajectories=brought, source_format="feedback")
        )
        named = {place.id for one in chunk for place in one.places if isinstance(place, schema.TrajectoryId)}
        known = by_external_ids(self.project, named) if named else {}
        found: dict[int, list[int]] = {}
        refused: dict[int, InvalidRecord] = {}
        for index, one in enumerate(chunk):
            ids: list[int] = []
            for place in one.places:
                if isinstance(place, schema.Trajectory):
                    ids.append(next(stored))
                elif place.id in known:
                    ids.append(known[place.id])
                else:
                    refused[index] = InvalidRecord(
                        f"the project has no trajectory {place.id!r}; import the trajectories first.",
                        pointer="/trajectory" if len(one.places) == 1 else "/a",
                    )
            found[index] = ids
        return found, refused

    def _rows(self, ids: Iterable[int]) -> dict[int, Trajectory]:
        return Trajectory.objects.select_related("task").in_bulk(set(ids))

    def _write_outcome(self, row: Trajectory, value: OutcomeValue, counts: FeedbackResult) -> None:
        if (row.success, row.outcome_reward) == (value.success, value.reward):
            counts.duplicates += 1
            return
        row.success, row.outcome_reward = value.success, value.reward
        row.save(update_fields=["success", "outcome_reward"])
        counts.created += 1

    def _items(
        self, judged: dict[int, tuple[Incoming, list[int]]], rows: dict[int, Trajectory]
    ) -> tuple[dict[int, Item], dict[int, InvalidRecord]]:
        """The item of each record, made if new; and the records whose item names other trajectories."""
        wanted: dict[tuple[int, str], tuple[Incoming, list[int]]] = {}
        key_of: dict[int, tuple[int, str]] = {}
        for index, (incoming, places) in judged.items():
            campaign = self._campaign(incoming.campaign or self.default_campaign, incoming.kind)
            key = item_key(
                incoming.item, rows[places[0]].task.external_id, [rows[pk].content_hash for pk in places]
            )
            key_of[index] = (campaign.pk, key)
            wanted.setdefault((campaign.pk, key), (incoming, places))
        found = {(item.campaign_id, item.key): item for item in self._existing_items(wanted)}
        fresh = [
            Item(campaign_id=campaign, task_id=rows[places[0]].task_id, key=key, wanted=1)
            for (campaign, key), (_, places) in wanted.items()
            if (campaign, key) not in found
        ]
        Item.objects.bulk_create(fresh)
        ItemTrajectory.objects.bulk_create(
            ItemTrajectory(item=item, trajectory_id=pk, position=position)
            for item in fresh
            for position, pk in enumerate(wanted[item.campaign_id, item.key][1])
        )
        found |= {(item.campaign_id, item.key): item for item in fresh}
        self._positions = _positions(found.values())
        items: dict[int, Item] = {}
        mismatched: dict[int, InvalidRecord] = {}
        for index, (_, places) in judged.items():
            item = found[key_of[index]]
            if set(self._positions[item.pk]) == set(places):
                items[index] = item
            else:
                message = f"the item {item.key!r} is about other trajectories; give each comparison a name of its own."
                mismatched[index] = InvalidRecord(message, pointer="/item")
        return items, mismatched

    def _existing_items(self, wanted: Iterable[tuple[int, str]]) -> Iterable[Item]:
        by_campaign: dict[int, list[str]] = defaultdict(list)
        for campaign, key in wanted:
            by_campaign[campaign].append(key)
        for campaign, keys in by_campaign.items():
            yield from Item.objects.filter(campaign_id=campaign, key__in=keys)

    def _write_judgements(
        self, judged: dict[int, tuple[Incoming, list[int]]], items: dict[int, Item], counts: FeedbackResult
    ) -> None:
        assignments = self._assignments(
            {(items[index].pk, self._annotator(one.annotator).pk) for index, (one, _) in judged.items()}
        )
        said = _what_was_said(assignments.values())
        for index, (incoming, places) in judged.items():
            item = items[index]
            assignment = assignments[item.pk, self._annotator(incoming.annotator).pk]
            flipped = self._positions[item.pk][places[0]] == 1
            if said[assignment.pk].add(self._value(incoming, places, flipped), incoming.origin):
                counts.created += 1
            else:
                counts.duplicates += 1
        _write_revisions({pk: one.new for pk, one in said.items() if one.new}, assignments.values())
        _recount({assignment.item_id for assignment in assignments.values()})

    def _value(self, incoming: Incoming, places: list[int], flipped: bool) -> SaidPreference | SaidComment:
        value = incoming.value
        if isinstance(value, PreferenceValue):
            criterion = self._criterion(value.criterion).pk if value.criterion else None
            return criterion, FLIPPED[value.choice] if flipped else value.choice, value.strength
        assert isinstance(value, CommentValue)
        anchor = value.anchor
        first, last = anchor.steps if anchor else (None, None)
        start, end = (anchor.chars if anchor else None) or (None, None)
        return (
            places[0],
            value.text,
            first,
            last,
            (anchor.quote if anchor else None) or "",
            start,
            end,
            value.sign,
        )

    def _assignments(self, keys: set[tuple[int, int]]) -> dict[tuple[int, int], Assignment]:
        wanted = Q(
            item_id__in={item for item, _ in keys}, annotator_id__in={annotator for _, annotator in keys}
        )
        fresh = [
            Assignment(item_id=item, annotator_id=annotator, state=Assignment.State.SUBMITTED)
            for item, annotator in keys
        ]
        Assignment.objects.bulk_create(fresh, ignore_conflicts=True)
        found = {(row.item_id, row.annotator_id): row for row in Assignment.objects.filter(wanted)}
        return {key: found[key] for key in keys}

    def _campaign(self, name: str, kind: str) -> Campaign:
        """Made closed if new: what is imported is not put before annotators again."""
        if name not in self.campaigns:
            defaults = {"kinds": [kind], "state": Campaign.State.CLOSED, "swap_sides": False}
            self.campaigns[name], _ = Campaign.objects.get_or_create(
                project=self.project, name=name, defaults=defaults
            )
        campaign = self.campaigns[name]
        if kind not in campaign.kinds:
            campaign.kinds = [*campaign.kinds, kind]
            campaign.save(update_fields=["kinds"])
        return campaign

    def _annotator(self, name: str) -> Annotator:
        if name not in self.annotators:
            self.annotators[name], _ = Annotator.objects.get_or_create(
                project=self.project, user=None, name=name
            )
        return self.annotators[name]

    def _criterion(self, name: str) -> Criterion:
        if name not in self.criteria:
            newest = Criterion.objects.filter(project=self.project, name=name).order_by("-version").first()
            self.criteria[name] = newest or Criterion.objects.create(
                project=self.project, name=name, origin=Criterion.Origin.IMPORTED
            )
        return self.criteria[name]


def _check(incoming: Incoming, rows: list[Trajectory]) -> InvalidRecord | None:
    if len({row.pk for row in rows}) < len(rows):
        return InvalidRecord("a and b are the same trajectory; there is nothing to compare.", pointer="/b")
    if len({row.task_id for row in rows}) > 1:
        return InvalidRecord(
            "a and b are of different tasks; only trajectories of one task are compared.", pointer="/b"
        )
    if isinstance(incoming.value, CommentValue) and incoming.value.anchor:
        last = incoming.value.anchor.steps[1]
        if last >= rows[0].step_count:
            return InvalidRecord(
                f"step {last} is beyond the last one, {rows[0].step_count - 1}; steps count from 0.",
                pointer="/anchor/steps",
            )
    return None


def _positions(items: Iterable[Item]) -> dict[int, dict[int, int]]:
    """{item: {trajectory: position}}"""
    places: dict[int, dict[int, int]] = defaultdict(dict)
    for place in ItemTrajectory.objects.filter(item__in=[item.pk for item in items]):
        places[place.item_id][place.trajectory_id] = place.position
    return places


def _what_was_said(assignments: Iterable[Assignment]) -> dict[int, Said]:
    said: dict[int, Said] = {assignment.pk: Said() for assignment in assignments}
    submissions = (
        Submission.objects.filter(assignment_id__in=list(said))
        .order_by("revision")
        .prefetch_related("preferences", "comments")
    )
    for submission in submissions:
        one = said[submission.assignment_id]
        one.last = Revision(number=submission.revision, origin=submission.origin)
        for row in submission.preferences.all():
            one.last.preferences[row.criterion_id] = (row.criterion_id, row.choice, row.strength)
        one.last.comments = [comment_value(row) for row in submission.comments.all()]
        one.ever.update(one.last.preferences.values(), one.last.comments)
    return said


def comment_value(row: Comment) -> SaidComment:
    return (
        row.trajectory_id, row.text, row.first_step, row.last_step, row.quote, row.first_char, row.last_char, row.sign,
    )  # fmt: skip


def _write_revisions(new: dict[int, list[Revision]], assignments: Iterable[Assignment]) -> None:
    versions = dict(Assignment.objects.filter(pk__in=list(new)).values_list("pk", "item__campaign__version"))
    pairs = [
        (
            Submission(
                assignment_id=pk, revision=one.number, origin=one.origin, campaign_version=versions[pk]
            ),
            one,
        )
        for pk, revisions in new.items()
        for one in revisions
    ]
    Submission.objects.bulk_create([submission for submission, _ in pairs])
    Preference.objects.bulk_create(
        Preference(submission=submission, criterion_id=criterion, choice=choice, strength=strength)
        for submission, one in pairs
        for criterion, choice, strength in one.preferences.values()
    )
    names = ("trajectory_id", "text", "first_step", "last_step", "quote", "first_char", "last_char", "sign")
    Comment.objects.bulk_create(
        Comment(submission=submission, **dict(zip(names, comment, strict=True)))
        for submission, one in pairs
        for comment in one.comments
    )
    ids = [assignment.pk for assignment in assignments if assignment.pk in new]
    Assignment.objects.filter(pk__in=ids).exclude(state=Assignment.State.SUBMITTED).update(
        state=Assignment.State.SUBMITTED, leased_until=None
    )


def _recount(items: set[int]) -> None:
    """Set `taken` and `done` of the items from their assignments."""
    done = Count("assignments", filter=Q(assignments__state=Assignment.State.SUBMITTED))
    leased = Count("assignments", filter=Q(assignments__state=Assignment.State.LEASED))
    rows = list(
        Item.objects.select_for_update().filter(pk__in=items).order_by("pk").values_list("pk", flat=True)
    )
    counted = Item.objects.filter(pk__in=rows).annotate(n_done=done, n_leased=leased)
    changed = []
    for item in counted:
        item.done, item.taken = item.n_done, item.n_done + item.n_leased
        changed.append(item)
    Item.objects.bulk_update(changed, ["done", "taken"])
