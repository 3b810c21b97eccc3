"""Pairs of sampled trajectories, first in the queue of a follow-up campaign.

A suspect is compared with another answer to the same prompt, or another trajectory of the same task: the one whose
reward differs most, because there the reward would be most wrong.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
from django.db import transaction

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.annotation import services as annotation
from apps.annotation.models import Campaign
from apps.core.errors import Conflict, DomainError
from apps.monitoring.models import Alert
from apps.retraining.models import FollowUp
from apps.rewards.models import Endpoint, ScoreSample
from apps.rewards.prompts import prompt_of
from apps.rewards.selectors import trajectory_of
from apps.trajectories.models import Task as StoredTask
from apps.trajectories.models import Trajectory as StoredTrajectory
from apps.trajectories.services import store_trajectories
from workers.schema import Task, Trajectory

MAX_COMPARISONS = 500
MAX_SAMPLES = 2000  # among which partners are searched
FOLLOW_UP_PRIORITY = 1000.0  # other items of a campaign have about 1
SOURCE_FORMAT = "api"


@dataclass(frozen=True, slots=True)
class ScoredSample:
    pk: int
    reward: float
    trajectory: Trajectory


@transaction.atomic
def follow_up_alert(*, alert: Alert, campaign: Campaign | None, count: int, by: User | None) -> FollowUp:
    """Ask for comparisons of the samples behind an alert. campaign: None uses the endpoint's own. by: None for a rule.
    Raises DomainError."""
    samples = list(alert.samples.order_by("-reward"))
    return _create_follow_up(alert.endpoint, samples, campaign, count, by, alert)


@transaction.atomic
def follow_up_uncertain(*, endpoint: Endpoint, campaign: Campaign | None, count: int, by: User) -> FollowUp:
    """Ask for comparisons of uncertain and out-of-distribution samples, the newest first."""
    newest = endpoint.samples.order_by("-at", "-pk")[:MAX_SAMPLES]
    flags = {"uncertain", "out_of_distribution"}
    uncertain = [sample for sample in newest if flags & set(sample.result.get("flags") or ())]
    return _create_follow_up(endpoint, uncertain, campaign, count, by, None)


def follow_up_campaigns(project: Project) -> list[Campaign]:
    """The open campaigns that have only comparisons."""
    rows = Campaign.objects.filter(project=project, feedback_types=["pairwise"], state=Campaign.State.OPEN)
    return list(rows.order_by("-created_at"))


def _create_follow_up(
    endpoint: Endpoint,
    samples: Sequence[ScoreSample],
    campaign: Campaign | None,
    count: int,
    by: User | None,
    alert: Alert | None,
) -> FollowUp:
    if not 1 <= count <= MAX_COMPARISONS:
        raise DomainError(f"Request 1 to {MAX_COMPARISONS} comparisons.", pointer="/count")
    pairs, scored = _first_pairs(_candidate_pairs(endpoint, samples), count)
    if not pairs:
        raise Conflict(
            "There is nothing to compare the samples with: keep more samples, so that a prompt has several answers, "
            "or import trajectories of the same tasks."
        )
    campaign = campaign or _follow_up_campaign(endpoint, by)
    specs = [
        annotation.ItemSpec(trajectories=pair, priority=FOLLOW_UP_PRIORITY + len(pairs) - position)
        for position, pair in enumerate(pairs)
    ]
    added = annotation.add_items(campaign=campaign, items=specs)
    if not added.created:
        raise Conflict(
            f"{campaign.name} has all of these comparisons already; try again when there are new samples."
        )
    follow_up = FollowUp.objects.create(
        endpoint=endpoint,
        alert=alert,
        campaign=campaign,
        items=list(added.items),
        samples=scored,
        requested_by=by,
    )
    record_audit(
        project=endpoint.project,
        actor=by,
        verb="follow_up.created",
        target=endpoint.name,
        data={"campaign": campaign.name, "items": added.created, "alert": alert.rule if alert else None},
    )
    return follow_up


def _follow_up_campaign(endpoint: Endpoint, by: User | None) -> Campaign:
    """The endpoint's own, created with the settings of the newest campaign that has comparisons."""
    name = f"Follow-up of {endpoint.name}"
    own = Campaign.objects.filter(project=endpoint.project, name=name).first()
    if own is not None:
        return annotation.open_campaign(campaign=own)
    with_comparisons = Campaign.objects.filter(
        project=endpoint.project, feedback_types__contains=["pairwise"]
    )
    newest = with_comparisons.order_by("-created_at").first()
    options = {"pairwise": newest.options.get("pairwise", {})} if newest else {}
    return annotation.create_campaign(
        project=endpoint.project,
        name=name,
        feedback_types=["pairwise"],
        options=options,
        guidelines=newest.guidelines if newest else "",
        overlap=newest.overlap if newest else 1,
        ordering=Campaign.Ordering.PRIORITY,
        by=by,
    )


def _first_pairs(
    candidates: Iterable["_CandidatePair"], count: int
) -> tuple[list[list[StoredTrajectory]], dict[int, int]]:
    """The first `count` distinct pairs, and {trajectory: sample} by key."""
    found: dict[frozenset[int], list[StoredTrajectory]] = {}
    scored: dict[int, int] = {}
    for pair, samples in candidates:
        found.setdefault(frozenset(trajectory.pk for trajectory in pair), pair)
        scored |= samples
        if len(found) == count:
            break
    return list(found.values()), scored


_CandidatePair = tuple[list[StoredTrajectory], dict[int, int]]


def _candidate_pairs(endpoint: Endpoint, samples: Sequence[ScoreSample]) -> Iterator[_CandidatePair]:
    """Each sample with the partner whose reward differs most; samples without a partner are left out."""
    project = endpoint.project
    groups = group_by_prompt(project, endpoint.samples.order_by("-at", "-pk")[:MAX_SAMPLES])
    for suspect in _comparable_samples(project, samples):
        task = suspect.trajectory.task
        others = [
            other for other in groups.get(task.id, ()) if other.trajectory.steps != suspect.trajectory.steps
        ]
        others.sort(key=lambda other: -abs(other.reward - suspect.reward))
        stored = _store_trajectory(project, suspect.trajectory)
        partner = (
            _store_trajectory(project, others[0].trajectory)
            if others
            else _other_trajectory_of_task(project, stored)
        )
        if partner is not None and partner.pk != stored.pk:
            samples_by_trajectory = {stored.pk: suspect.pk} | ({partner.pk: others[0].pk} if others else {})
            yield [stored, partner], samples_by_trajectory


def group_by_prompt(project: Project, samples: Iterable[ScoreSample]) -> dict[str, list[ScoredSample]]:
    """Answers to the same prompt, or trajectories of the same task, by the id of the task; each answer once."""
    groups: dict[str, dict[str, ScoredSample]] = {}
    for sample in _comparable_samples(project, samples):
        trajectory = sample.trajectory
        groups.setdefault(trajectory.task.id, {}).setdefault(trajectory.content_hash, sample)
    return {name: list(group.values()) for name, group in groups.items()}


def _comparable_samples(project: Project, samples: Iterable[ScoreSample]) -> list[ScoredSample]:
    """Samples that annotators can read and that answer a prompt, each with a task: its own where the project has it,
    else that of its prompt."""
    found = []
    for sample in samples:
        trajectory = trajectory_of(sample)
        if trajectory is not None and prompt_of(trajectory) is not None:
            found.append(ScoredSample(sample.pk, sample.reward, trajectory))
    task_ids = {sample.trajectory.task.id for sample in found}
    known = set(
        StoredTask.objects.filter(project=project, external_id__in=task_ids).values_list(
            "external_id", flat=True
        )
    )
    return [sample if sample.trajectory.task.id in known else _with_prompt_task(sample) for sample in found]


def _with_prompt_task(sample: ScoredSample) -> ScoredSample:
    digest = hashlib.sha256(prompt_of(sample.trajectory) or b"").hexdigest()
    task = Task(id=f"prompt-{digest[:16]}")
    return ScoredSample(sample.pk, sample.reward, msgspec.structs.replace(sample.trajectory, task=task))


def _store_trajectory(project: Project, trajectory: Trajectory) -> StoredTrajectory:
    key = store_trajectories(project=project, trajectories=[trajectory], source_format=SOURCE_FORMAT)[0]
    return StoredTrajectory.objects.select_related("task").get(pk=key)


def _other_trajectory_of_task(project: Project, row: StoredTrajectory) -> StoredTrajectory | None:
    others = StoredTrajectory.objects.filter(project=project, task_id=row.task_id).exclude(pk=row.pk)
    return others.exclude(content_hash=row.content_hash).select_related("task").order_by("-pk").first()
