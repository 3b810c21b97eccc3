"""What happened in a project, newest first: the audit trail, and the jobs that ended."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from django.db.models import Count, Max, Q
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import AuditEvent, Project, User
from apps.accounts.pseudonyms import meanings_in, named
from apps.annotation.models import Assignment
from apps.core.jobs.job_queue import JobState
from apps.overview.project_jobs import finished_jobs
from workers.schema.patterns import TextPattern

SHOWN = 12
ANNOTATION_DAYS = 3
# What people do in a project, as a sentence continues after their name. Of all else only owners see the audit trail.
ACTIVITY_TEXTS = {
    "active_learning.set": "set up active learning for {target}",
    "alert.closed": "closed an alert: {target}",
    "annotator.paused": "paused an annotator in {target}",
    "annotator.resumed": "let an annotator continue in {target}",
    "bulk_job.created": "started a bulk job: {target}",
    "connector.pull_started": "started a pull of the connector {target}",
    "connector.push_started": "started a push of the connector {target}",
    "dataset.exported": "exported {target}",
    "dataset.frozen": "froze the dataset version {target}",
    "dataset.withdrawn": "withdrew the dataset version {target}",
    "endpoint.created": "created the endpoint {target}",
    "feedback.exported": "exported feedback",
    "feedback.imported": "imported feedback",
    "follow_up.created": "requested a follow-up campaign for {target}",
    "judge.added": "added the judge {target}",
    "judge.removed": "removed the judge {target}",
    "member.added": "added {target}",
    "member.removed": "removed {target}",
    "machine.joined": "joined the machine {target}",
    "machine.revoked": "revoked the machine {target}",
    "machine.token-created": "created the join token {target}",
    "machine.token-revoked": "revoked the join token {target}",
    "member.role-changed": "changed the role of {target}",
    "metrics.induced": "started a metric induction",
    "model.deleted": "deleted the model {target}",
    "model.evaluated": "evaluated the model {target}",
    "model.exported": "exported the model {target}",
    "model.imported": "imported the model {target}",
    "model.tagged": "tagged the model {target}",
    "monitor.rules_saved": "changed the monitor of {target}",
    "project.created": "created the project",
    "project.renamed": "renamed the project",
    "recipe.saved": "saved the recipe {target}",
    "retraining.confirmed": "confirmed a retraining cycle of {target}",
    "retraining.started": "started a retraining cycle of {target}",
    "run.cancelled": "cancelled the training {target}",
    "run.resumed": "resumed the training {target}",
    "run.started": "started the training {target}",
    "trajectories.exported": "exported trajectories",
    "trajectories.imported": "imported trajectories: {target}",
    "trajectories.tagged": "tagged trajectories: {target}",
    "trajectories.untagged": "removed a tag: {target}",
}
# Of whole families, the rest of the verb stands for what was done.
_FAMILIES = ("endpoint.", "release.", "metric.")
_ALIKE = 5  # events that are read for each line: equal ones become one line
_RUN = TextPattern(r"run (\d{1,9})\b")
# The pages of families of events.
_LISTS = {
    "bulk_job": "bulk:bulk-job-list",
    "connector": "connectors:connector-list",
    "dataset": "datasets:dataset-version-list",
    "endpoint": "rewards:endpoint-list",
    "judge": "judges:judge-list",
    "machine": "machines:machine-list",
    "metric": "metrics:induction-list",
    "metrics": "metrics:induction-list",
    "model": "training:model-list",
    "release": "rewards:endpoint-list",
    "trajectories": "trajectories:trajectory-list",
}
_ENDS = {JobState.SUCCEEDED: "finished", JobState.FAILED: "failed", JobState.CANCELLED: "was cancelled"}


@dataclass(frozen=True, slots=True)
class ActivityLine:
    """who: empty for a job. state: of a job."""

    who: str
    text: str
    at: datetime
    url: str = ""
    state: str = ""


def recent_activity(project: Project, most: int = SHOWN) -> list[ActivityLine]:
    lines = [
        *_audit_lines(project, most),
        *_campaign_lines(project, most),
        *_annotation_lines(project, most),
        *_job_lines(project, most),
    ]
    newest = sorted(lines, key=lambda line: line.at, reverse=True)
    return _with_names(_counted(newest)[:most])


def _counted(lines: list[ActivityLine]) -> list[ActivityLine]:
    """Of equal lines one after the other only the newest, with how many they are."""
    groups = [list(same) for _, same in groupby(lines, key=lambda line: (line.who, line.text, line.url))]
    return [
        replace(same[0], text=f"{same[0].text} ({len(same)} times)") if len(same) > 1 else same[0]
        for same in groups
    ]


def _with_names(lines: list[ActivityLine]) -> list[ActivityLine]:
    """People are named as everywhere else, not by the address that the audit trail keeps."""
    addresses = {line.who for line in lines if "@" in line.who}
    people = {user.email: str(user) for user in User.objects.filter(email__in=addresses)}
    return [replace(line, who=people.get(line.who, line.who)) for line in lines]


def _audit_lines(project: Project, most: int) -> list[ActivityLine]:
    known = Q(verb__in=ACTIVITY_TEXTS)
    for family in _FAMILIES:
        known |= Q(verb__startswith=family)
    rows = AuditEvent.objects.filter(known, project=project, at__gte=project.created_at)
    events = list(rows.order_by("-at")[: most * _ALIKE])
    meanings = meanings_in([event.actor, event.target] for event in events)
    return [
        ActivityLine(
            str(named(event.actor, meanings)),
            _sentence(event.verb, str(named(event.target, meanings))),
            event.at,
            _event_address(project, event.verb, event.target),
        )
        for event in events
    ]


def _event_address(project: Project, verb: str, target: str) -> str:
    """The run, else the list that has what the event is about; empty where there is none."""
    if verb.startswith("run.") and (run := _RUN.match(target)):
        return reverse("training:run-detail", args=[project.slug, int(run[1])])
    page = _LISTS.get(verb.partition(".")[0])
    return reverse(page, args=[project.slug]) if page else ""


def _sentence(verb: str, target: str) -> str:
    text = ACTIVITY_TEXTS.get(verb)
    if text is None:
        noun, _, done = verb.partition(".")
        text = f"{done.replace('_', ' ').replace('-', ' ')} the {noun} {{target}}"
    return text.format(target=target).strip().removesuffix(":")


def _campaign_lines(project: Project, most: int) -> list[ActivityLine]:
    """The trail has no event of campaigns: they are rows that stay."""
    rows = project.campaigns.select_related("created_by").order_by("-created_at")[:most]
    return [
        ActivityLine(
            str(campaign.created_by or ""),
            f"{'created' if campaign.created_by else 'Created'} the campaign {campaign.name}",
            campaign.created_at,
            reverse("annotation:campaign-detail", args=[project.slug, campaign.pk]),
        )
        for campaign in rows
    ]


def _annotation_lines(project: Project, most: int) -> list[ActivityLine]:
    """One line for each person and campaign of the last days."""
    since = timezone.now() - timedelta(days=ANNOTATION_DAYS)
    rows = Assignment.objects.filter(
        item__campaign__project=project, state=Assignment.State.SUBMITTED, finished_at__gte=since
    )
    groups = rows.values("annotator__name", "item__campaign", "item__campaign__name").annotate(
        n=Count("pk"), at=Max("finished_at")
    )
    return [
        ActivityLine(
            row["annotator__name"],
            f"made {row['n']:,} annotation{'' if row['n'] == 1 else 's'} in {row['item__campaign__name']}",
            row["at"],
            reverse("annotation:campaign-detail", args=[project.slug, row["item__campaign"]]),
        )
        for row in groups.order_by("-at")[:most]
    ]


def _job_lines(project: Project, most: int) -> list[ActivityLine]:
    return [
        ActivityLine("", f"{job.title} {_ENDS[JobState(job.state)]}", job.at, job.url, job.state)
        for job in finished_jobs(project, most)
    ]
