"""What needs a person, put before people: pairs of sampled trajectories, first in the queue of a follow-up campaign.

What is suspected is compared with another answer to the same prompt, or another run of the same task: the one whose
reward differs most, for that is where the reward would be most wrong.
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
from apps.monitoring.models import Alert, FollowUp
from apps.rewards.models import Endpoint, ScoreSample
from apps.rewards.prompts import prompt_of
from apps.rewards.selectors import trajectory_of
from apps.trajectories.models import Task as StoredTask
from apps.trajectories.models import Trajectory as Stored
from apps.trajectories.services import store_trajectories
from workers.schema import Task, Trajectory

MOST = 500
LOOKED_AT = 2000  # samples among which partners are looked for
FIRST = 1000.0  # priority of what is asked for; of what a campaign holds otherwise it is about 1
SOURCE = "api"


@dataclass(frozen=True, slots=True)
class Scored:
    pk: int
    reward: float
    trajectory: Trajectory


@transaction.atomic
def ask_about(*, alert: Alert, campaign: Campaign | None, count: int, by: User | None) -> FollowUp:
    """Put what is behind an alert before people. campaign: None makes one. by: None for a rule. Raises DomainError."""
    samples = list(alert.samples.order_by("-reward"))
    return _ask(alert.endpoint, samples, campaign, count, by, alert)


@transaction.atomic
def ask_unsure(*, endpoint: Endpoint, campaign: Campaign | None, count: int, by: User) -> FollowUp:
    """Put what the endpoint was unsure of, or had never seen the like of, before people: the newest first."""
    newest = endpoint.samples.order_by("-at", "-pk")[:LOOKED_AT]
    doubtful = {"uncertain", "out_of_distribution"}
    unsure = [one for one in newest if doubtful & set(one.result.get("flags") or ())]
    return _ask(endpoint, unsure, campaign, count, by, None)


def campaigns_for(project: Project) -> list[Campaign]:
    """Those that a follow-up can go to: of comparisons alone, and open."""
    rows = Campaign.objects.filter(project=project, feedback_types=["pairwise"], state=Campaign.State.OPEN)
    return list(rows.order_by("-created_at"))


def _ask(
    endpoint: Endpoint,
    samples: Sequence[ScoreSample],
    campaign: Campaign | None,
    count: int,
    by: User | None,
    alert: Alert | None,
) -> FollowUp:
    if not 1 <= count <= MOST:
        raise DomainError(f"Ask for 1 to {MOST} comparisons.", pointer="/count")
    pairs, scored = _first(_pairs(endpoint, samples), count)
    if not pairs:
        raise Conflict(
            "There is nothing to compare it with: keep more samples, so that there are several answers to a prompt, "
            "or import runs of the same tasks."
        )
    campaign = campaign or _campaign(endpoint, by)
    specs = [
        annotation.ItemSpec(trajectories=runs, priority=FIRST + len(pairs) - place)
        for place, runs in enumerate(pairs)
    ]
    added = annotation.add_items(campaign=campaign, items=specs)
    if not added.created:
        raise Conflict(f"All of it is in {campaign.name} already; ask when more was sampled.")
    asked = FollowUp.objects.create(
        endpoint=endpoint,
        alert=alert,
        campaign=campaign,
        items=list(added.items),
        samples=scored,
        asked_by=by,
    )
    record_audit(
        project=endpoint.project,
        actor=by,
        verb="people.asked",
        target=endpoint.name,
        data={"campaign": campaign.name, "items": added.created, "alert": alert.rule if alert else None},
    )
    return asked


def _campaign(endpoint: Endpoint, by: User | None) -> Campaign:
    """The endpoint's own, made as the newest campaign of comparisons is, where there is one."""
    name = f"Follow-up of {endpoint.name}"
    own = Campaign.objects.filter(project=endpoint.project, name=name).first()
    if own is not None:
        return annotation.open_campaign(campaign=own)
    like = Campaign.objects.filter(project=endpoint.project, feedback_types__contains=["pairwise"])
    newest = like.order_by("-created_at").first()
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


def _first(pairs: Iterable["_Pair"], count: int) -> tuple[list[list[Stored]], dict[int, int]]:
    """So many of them, each once; and which sample each run is of, by their keys."""
    found: dict[frozenset[int], list[Stored]] = {}
    scored: dict[int, int] = {}
    for runs, samples in pairs:
        found.setdefault(frozenset(one.pk for one in runs), runs)
        scored |= samples
        if len(found) == count:
            break
    return list(found.values()), scored


_Pair = tuple[list[Stored], dict[int, int]]


def _pairs(endpoint: Endpoint, samples: Sequence[ScoreSample]) -> Iterator[_Pair]:
    """Each with the partner whose reward differs most; those that have none are left out."""
    project = endpoint.project
    groups = by_prompt(project, endpoint.samples.order_by("-at", "-pk")[:LOOKED_AT])
    for suspect in _scored(project, samples):
        task = suspect.trajectory.task
        others = [one for one in groups.get(task.id, ()) if one.trajectory.steps != suspect.trajectory.steps]
        others.sort(key=lambda one: -abs(one.reward - suspect.reward))
        row = _stored(project, suspect.trajectory)
        partner = _stored(project, others[0].trajectory) if others else _run_of(project, row)
        if partner is not None and partner.pk != row.pk:
            known = {row.pk: suspect.pk} | ({partner.pk: others[0].pk} if others else {})
            yield [row, partner], known


def by_prompt(project: Project, samples: Iterable[ScoreSample]) -> dict[str, list[Scored]]:
    """Answers to the same prompt, or runs of the same task, by the name of the task; each answer once."""
    groups: dict[str, dict[str, Scored]] = {}
    for one in _scored(project, samples):
        groups.setdefault(one.trajectory.task.id, {}).setdefault(one.trajectory.content_hash, one)
    return {name: list(group.values()) for name, group in groups.items()}


def _scored(project: Project, samples: Iterable[ScoreSample]) -> list[Scored]:
    """Those that people can look at and that answer a prompt, each of a task: its own where the project knows it, else
    that of its prompt."""
    found = []
    for sample in samples:
        trajectory = trajectory_of(sample)
        if trajectory is not None and prompt_of(trajectory) is not None:
            found.append(Scored(sample.pk, sample.reward, trajectory))
    named = {one.trajectory.task.id for one in found}
    known = set(
        StoredTask.objects.filter(project=project, external_id__in=named).values_list(
            "external_id", flat=True
        )
    )
    return [one if one.trajectory.task.id in known else _of_its_prompt(one) for one in found]


def _of_its_prompt(one: Scored) -> Scored:
    digest = hashlib.sha256(prompt_of(one.trajectory) or b"").hexdigest()
    task = Task(id=f"prompt-{digest[:16]}")
    return Scored(one.pk, one.reward, msgspec.structs.replace(one.trajectory, task=task))


def _stored(project: Project, trajectory: Trajectory) -> Stored:
    key = store_trajectories(project=project, trajectories=[trajectory], source_format=SOURCE)[0]
    return Stored.objects.select_related("task").get(pk=key)


def _run_of(project: Project, row: Stored) -> Stored | None:
    """Another run of the task."""
    others = Stored.objects.filter(project=project, task_id=row.task_id).exclude(pk=row.pk)
    return others.exclude(content_hash=row.content_hash).select_related("task").order_by("-pk").first()
