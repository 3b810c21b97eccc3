"""The feedback and the trajectories of a study, by keys of stored trajectories."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from django.db.models import CharField, Value
from django.db.models.functions import MD5, Cast, Concat
from msgspec.structs import replace

from apps.accounts.models import Project
from apps.annotation.feedback.records import feedback_records
from apps.core.errors import DomainError
from apps.datasets.selectors import find_dataset_version, read_dataset_records
from apps.reward_studies.models import RewardStudy
from apps.reward_studies.services import FeedbackChoice, study_options
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import keys_by_content_hash
from workers import schema
from workers.schema import (
    FeedbackRecord,
    OutcomeRecord,
    PreferenceRecord,
    RankingRecord,
    RatingRecord,
)
from workers.schema.records import record_trajectories

_KINDS = ["pairwise", "ranking", "rating", "outcome"]


@dataclass
class StoredFeedback:
    """comparisons: (first, second, preferred), preferred being 1, 0 or 1/2; outcomes, ratings: (trajectory, label). All
    by the keys of stored trajectories. unknown: trajectories of records that are no longer stored."""

    comparisons: list[tuple[int, int, float]] = field(default_factory=list)
    outcomes: list[tuple[int, float]] = field(default_factory=list)
    ratings: list[tuple[int, float]] = field(default_factory=list)
    unknown: int = 0

    def form(self, choice: FeedbackChoice) -> str:
        """What weights are fitted to. Raises DomainError where there is none of the kind."""
        counts = {
            "comparisons": len(self.comparisons),
            "outcomes": len(self.outcomes),
            "ratings": len(self.ratings),
        }
        form = max(counts, key=lambda name: counts[name]) if choice == "auto" else choice
        if choice != "policy" and not counts[form]:
            missing = "comparisons, ratings and outcomes" if choice == "auto" else form
            raise DomainError(
                f"There are no {missing} here. Choose another dataset version, campaign or filter, or another kind of "
                "feedback."
            )
        if choice == "policy" and not (self.outcomes or self.ratings):
            raise DomainError(
                "The policy's outcome needs outcomes or ratings of trajectories; there are none here."
            )
        return form

    def labels(self, form: str) -> list[tuple[int, float]]:
        if form == "comparisons":
            return []
        return self.ratings if form == "ratings" or not self.outcomes else self.outcomes

    def add(self, record: FeedbackRecord, keys: Sequence[int]) -> None:
        """keys: of the record's trajectories, in its order. Records on single criteria are passed over."""
        if isinstance(record, PreferenceRecord) and record.criterion is None:
            if record.choice != "both_bad":
                preferred = {"a": 1.0, "b": 0.0, "tie": 0.5}[record.choice]
                self.comparisons.append((keys[0], keys[1], preferred))
        elif isinstance(record, RankingRecord) and record.criterion is None:
            for a, b in combinations(range(len(keys)), 2):
                difference = record.ranks[b] - record.ranks[a]
                preferred = 0.5 if difference == 0 else float(difference > 0)
                self.comparisons.append((keys[a], keys[b], preferred))
        elif isinstance(record, RatingRecord):
            if record.accept is not None:
                self.outcomes.append((keys[0], float(record.accept)))
            elif record.rating is not None and record.scale is not None:
                low, high = record.scale
                self.ratings.append((keys[0], (record.rating - low) / (high - low)))
        elif isinstance(record, OutcomeRecord):
            self.outcomes.append((keys[0], float(record.success)))


def study_feedback(study: RewardStudy) -> StoredFeedback:
    """Raises DomainError."""
    project, source = study.project, study.source
    found = StoredFeedback()
    if "dataset" in source:
        version = find_dataset_version(source["dataset"], project=project)
        records = list(_light_records(read_dataset_records(version)))
        keys = keys_by_content_hash(project, {digest for _, digests in records for digest in digests})
        for record, digests in records:
            _add(found, record, [keys.get(digest) for digest in digests])
    elif "campaign" in source:
        filters = {"campaigns": [source["campaign"]], "kinds": _KINDS}
        for record in feedback_records(project=project, filters=filters, bare=True):
            _add(found, record, [int(each.id or 0) for each in record_trajectories(record)])
    else:
        rows = filter_trajectories(project, source.get("filter", "")).order_by()
        for key, success, reward in rows.filter(success__isnull=False).values_list(
            "pk", "success", "outcome_reward"
        ):
            is_graded = study_options(study).feedback == "policy" and reward is not None
            found.outcomes.append((key, float((reward if is_graded else success) or 0)))
    return found


def _add(found: StoredFeedback, record: FeedbackRecord, keys: Sequence[int | None]) -> None:
    known = [key for key in keys if key is not None]
    if len(known) < len(keys):
        found.unknown += 1
    elif len(set(known)) == len(known):
        found.add(record, known)


def _light_records(records: Iterable[FeedbackRecord]) -> Iterator[tuple[FeedbackRecord, list[str]]]:
    """Those of _KINDS, with the content hashes of their trajectories, which are let go of."""
    nothing = schema.Trajectory(steps=(), task=schema.Task(id=""))
    for record in records:
        digests = [each.content_hash for each in record_trajectories(record)]
        if isinstance(record, PreferenceRecord):
            yield replace(record, a=nothing, b=nothing), digests
        elif isinstance(record, RankingRecord):
            yield replace(record, trajectories=()), digests
        elif isinstance(record, RatingRecord | OutcomeRecord):
            yield replace(record, trajectory=nothing), digests


def sampled_keys(study: RewardStudy, feedback: StoredFeedback | None = None) -> list[int]:
    """Keys of the trajectories to score: all, or whole tasks drawn at random until there are as many as `sample`; the
    same ones for the same study."""
    most = study_options(study).sample
    if feedback is not None:
        named = [key for row in feedback.comparisons for key in row[:2]]
        named += [key for key, _ in [*feedback.outcomes, *feedback.ratings]]
        rows = Trajectory.objects.filter(project=study.project, pk__in=set(named))
        by_task: dict[int, list[int]] = defaultdict(list)
        for key, task in rows.order_by("pk").values_list("pk", "task_id"):
            by_task[task].append(key)
        order = sorted(by_task, key=lambda task: hashlib.sha256(f"{study.number}-{task}".encode()).digest())
        return [key for task in order for key in by_task[task]][:most]
    return list(_drawn(study.project, study, most))


def _drawn(project: Project, study: RewardStudy, most: int) -> Iterable[int]:
    if "dataset" in study.source:
        version = find_dataset_version(study.source["dataset"], project=project)
        digests = {
            each.content_hash
            for record in read_dataset_records(version)
            for each in record_trajectories(record)
        }
        chosen = Trajectory.objects.filter(pk__in=keys_by_content_hash(project, digests).values())
    elif "campaign" in study.source:
        chosen = Trajectory.objects.filter(
            project=project, items__campaign__name=study.source["campaign"]
        ).distinct()
    else:
        chosen = filter_trajectories(project, study.source.get("filter", ""))
    place = MD5(Concat(Value(f"{study.number}-"), Cast("task_id", CharField())))
    rows = Trajectory.objects.filter(pk__in=chosen.order_by().values("pk"))
    return rows.order_by(place, "pk").values_list("pk", flat=True)[:most]
