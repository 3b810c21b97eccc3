"""What in a project needs someone: facts, each with the page where it is dealt with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, F, Prefetch, Sum
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Project
from apps.annotation.agreement import agreement_by_type, current_agreement_values
from apps.annotation.agreement_values import group_by_question
from apps.annotation.feedback_types import AgreementValue
from apps.annotation.models import Annotation, Assignment, Campaign, Item, Origin
from apps.annotation.quality import disputed
from apps.annotation.selectors import adjudicated_items
from apps.core.jobs.job_queue import JobState
from apps.core.number_format import decimal, decimal_interval, points, points_interval
from apps.datasets.models import DatasetVersion
from apps.monitoring.selectors import project_alerts
from apps.overview.project_jobs import failed_jobs
from apps.rewards.models import Endpoint
from apps.training.models import RewardModel
from apps.training.report_measures import Measure, measures

_BY_PEOPLE = (Origin.PERSON, Origin.IMPORTED)  # not of judges
LOW_ALPHA = 0.4  # below, people's answers are more chance than opinion
LEAST_ITEMS = 20  # of an alpha that is shown as low
AGREEMENT_CAMPAIGNS = 3
AGREEMENT_ANNOTATIONS = 20_000  # a campaign with more is too large to look at on each visit
RECENT_DAYS = 30
NEWER_MODELS = 3
NEW_ANNOTATIONS = 1000  # since a dataset version was frozen, counted up to this number


@dataclass(frozen=True, slots=True)
class AttentionNote:
    """kind: an icon. url, action: what to do about it."""

    kind: str
    text: str
    url: str
    action: str


def attention_notes(project: Project) -> list[AttentionNote]:
    """All but those of annotations, which take a moment to compute. The most pressing first."""
    return [
        *_alerts(project),
        *_failed_jobs(project),
        *_switched_off(project),
        *_unmonitored(project),
        *better_models(project),
        *_flagged_items(project),
        *_waiting_items(project),
        *_unfrozen_feedback(project),
    ]


def agreement_notes(project: Project) -> list[AttentionNote]:
    """Campaigns with recent annotations on which annotators agree little, or whose disputes are not decided."""
    since = timezone.now() - timedelta(days=RECENT_DAYS)
    recent = Annotation.objects.filter(
        assignment__item__campaign__project=project, created_at__gte=since, origin__in=_BY_PEOPLE
    )
    counts = recent.values("assignment__item__campaign").annotate(n=Count("pk")).order_by("-n")
    newest = [row["assignment__item__campaign"] for row in counts[:AGREEMENT_CAMPAIGNS]]
    notes = []
    for campaign in Campaign.objects.filter(pk__in=newest).order_by("name"):
        made = Annotation.objects.filter(assignment__item__campaign=campaign)
        if made[: AGREEMENT_ANNOTATIONS + 1].count() <= AGREEMENT_ANNOTATIONS:
            answers = current_agreement_values(project, campaign.name)
            notes += [
                *_undecided_items(project, campaign, answers),
                *_low_agreement(project, campaign, answers),
            ]
    return notes


def _undecided_items(
    project: Project, campaign: Campaign, answers: dict[str, list[AgreementValue]]
) -> list[AttentionNote]:
    items = disputed(group_by_question(answers))
    count = len(items) - len(adjudicated_items(items))
    if not count:
        return []
    text = f"{count:,} disputed item{_plural(count)} to adjudicate in “{campaign.name}”."
    url = reverse("annotation:item-list", args=[project.slug, campaign.pk]) + "?disputed=1"
    return [AttentionNote("warning", text, url, "View disputes")]


def _low_agreement(
    project: Project, campaign: Campaign, answers: dict[str, list[AgreementValue]]
) -> list[AttentionNote]:
    """Of feedback types and of their criteria."""
    notes = []
    types = agreement_by_type(answers)
    parts = [
        *types.items(),
        *(pair for found in types.values() for pair in found["criteria"].items()),
    ]
    for kind, found in parts:
        if found["alpha"] is None or found["items"] < LEAST_ITEMS or found["alpha"] >= LOW_ALPHA:
            continue
        interval = f" {decimal_interval(found['interval'])}" if found["interval"] else ""
        text = (
            f"Agreement is low in “{campaign.name}”: alpha {decimal(found['alpha'])}{interval} "
            f"on {found['items']} items ({kind})."
        )
        url = reverse("annotation:campaign-quality", args=[project.slug, campaign.pk])
        notes.append(AttentionNote("warning", text, url, "View quality"))
    return notes


def better_models(project: Project) -> list[AttentionNote]:
    """New models that do better on the held-out data than the one an endpoint serves."""
    notes = []
    rows = Endpoint.objects.filter(project=project).exclude(active=None).select_related("active")
    first = RewardModel.objects.select_related("training_run", "project").order_by("pk")
    served_by: list[tuple[Endpoint, RewardModel]] = []
    for endpoint in rows.order_by("name").prefetch_related(Prefetch("active__reward_models", first)):
        assert endpoint.active is not None
        served = next(iter(endpoint.active.reward_models.all()), None)
        if served is not None and served.training_run is not None:
            served_by.append((endpoint, served))
    newer = _newer_models(project, [served for _, served in served_by])
    for endpoint, served in served_by:
        candidates = newer[served.pk]
        best = max(
            (found for model in candidates if (found := _gain(model, served))),
            key=lambda gain: gain.difference,
            default=None,
        )
        if best is not None:
            url = reverse("rewards:endpoint-deploy", args=[project.slug])
            url += f"?model={best.model}&endpoint={endpoint.name}"
            notes.append(AttentionNote("models", best.in_words(served, endpoint), url, "Deploy"))
    return notes


def _newer_models(project: Project, served: Sequence[RewardModel]) -> dict[int, list[RewardModel]]:
    """By key of the served model: the newest models after it of its dataset, newest first. Two queries."""
    datasets = {model.pk: model.training_run.dataset_version_id for model in served if model.training_run}
    rows = RewardModel.objects.filter(
        project=project, deleted_at=None, training_run__dataset_version__in=set(datasets.values())
    )
    made = list(rows.order_by("-created_at").values_list("pk", "created_at", "training_run__dataset_version"))
    newer = {
        model.pk: [
            pk
            for pk, created_at, dataset in made
            if dataset == datasets.get(model.pk) and created_at > model.created_at
        ][:NEWER_MODELS]
        for model in served
    }
    wanted = {pk for keys in newer.values() for pk in keys}
    models = RewardModel.objects.select_related("training_run", "project").in_bulk(wanted)
    return {served_pk: [models[pk] for pk in keys] for served_pk, keys in newer.items()}


@dataclass(frozen=True, slots=True)
class ModelGain:
    """A model's result minus that of the served one, on the same held-out data."""

    model: RewardModel
    measure: Measure
    difference: float
    interval: tuple[float, float] | None

    def in_words(self, served: RewardModel, endpoint: Endpoint) -> str:
        share = self.measure.is_share
        shown = points(self.difference) if share else decimal(self.difference)
        names = f"{self.model.name}@{self.model.version}", f"{served.name}@{served.version}"
        interval, caveat = "", ""
        if self.interval is not None:
            interval = f" {points_interval(self.interval) if share else decimal_interval(self.interval)}"
            caveat = "" if self.interval[0] > 0 else "; the difference may be chance"
        return (
            f"{names[0]} is better than {names[1]}, which {endpoint.name} serves, by {shown}{interval} "
            f"({self.measure.title.lower()}, n = {self.measure.n}){caveat}."
        )


def _gain(model: RewardModel, served: RewardModel) -> ModelGain | None:
    """None where it is not better, or nothing is measured on both."""
    known = {measure.title: measure for measure in _measures(served)}
    for measure in _measures(model):
        before = known.get(measure.title)
        if before is None or measure.has_few_tasks:
            continue
        difference = measure.value - before.value
        return (
            ModelGain(model, measure, difference, _difference_interval(measure, before))
            if difference > 0
            else None
        )
    return None


def _measures(model: RewardModel) -> list[Measure]:
    return measures(model.training_run.report) if model.training_run else []


def _difference_interval(new: Measure, old: Measure) -> tuple[float, float] | None:
    """From the intervals of both, as of independent samples; on the same items, as here, it is rather too wide.

    Newcombe (1998), Statistics in Medicine 17:873-890, method 10.
    """
    if new.interval is None or old.interval is None:
        return None
    (new_low, new_high), (old_low, old_high) = new.interval, old.interval
    difference = new.value - old.value
    return (
        difference - math.hypot(new.value - new_low, old_high - old.value),
        difference + math.hypot(new_high - new.value, old.value - old_low),
    )


def _alerts(project: Project) -> list[AttentionNote]:
    rows = project_alerts(project).filter(closed_at=None).order_by()
    counts = rows.values("endpoint__name").annotate(n=Count("pk")).order_by("endpoint__name")
    url = reverse("monitoring:alert-list", args=[project.slug])
    return [
        AttentionNote(
            "warning",
            f"{row['n']} open alert{_plural(row['n'])} on the endpoint {row['endpoint__name']}.",
            url,
            "View alerts",
        )
        for row in counts
    ]


def _failed_jobs(project: Project) -> list[AttentionNote]:
    return [
        AttentionNote("failed", f"{job.title} failed: {_shortened(job.error)}", job.url, "View")
        for job in failed_jobs(project)
    ]


def _switched_off(project: Project) -> list[AttentionNote]:
    return [
        AttentionNote(
            "off",
            f"The endpoint {endpoint.name} is switched off: {_shortened(endpoint.switched_off_reason)}",
            reverse("rewards:endpoint-detail", args=[project.slug, endpoint.name]),
            "View endpoint",
        )
        for endpoint in Endpoint.objects.filter(project=project, switched_off=True).order_by("name")
    ]


def _unmonitored(project: Project) -> list[AttentionNote]:
    """Drift is measured on samples: without them a monitor has nothing to check."""
    rows = Endpoint.objects.filter(project=project, switched_off=False, sample_share=0).exclude(active=None)
    return [
        AttentionNote(
            "warning",
            f"The endpoint {name} is not monitored, as it keeps no samples.",
            reverse("rewards:endpoint-usage", args=[project.slug, name]) + "#samples",
            "Turn on sampling",
        )
        for name in rows.order_by("name").values_list("name", flat=True)
    ]


def _flagged_items(project: Project) -> list[AttentionNote]:
    rows = Assignment.objects.filter(
        state=Assignment.State.FLAGGED, item__campaign__in=_open_campaigns(project)
    )
    counts = rows.values("item__campaign", "item__campaign__name").annotate(n=Count("pk"))
    return [
        AttentionNote(
            "warning",
            f"{row['n']} flagged item{_plural(row['n'])} in “{row['item__campaign__name']}”.",
            reverse("annotation:campaign-detail", args=[project.slug, row["item__campaign"]]),
            "Review",
        )
        for row in counts.order_by("item__campaign__name")
    ]


def _waiting_items(project: Project) -> list[AttentionNote]:
    rows = Item.objects.filter(
        campaign__in=_open_campaigns(project),
        purpose=Item.Purpose.WORK,
        completed_count__lt=F("overlap"),
    )
    counts = rows.values("campaign", "campaign__name", "campaign__deadline").annotate(
        n=Sum(F("overlap") - F("completed_count"))
    )
    return [_waiting_note(project, dict(row)) for row in counts.order_by("campaign__name")]


def _waiting_note(project: Project, row: dict[str, Any]) -> AttentionNote:
    text = f"{row['n']:,} annotation{_plural(row['n'])} needed in “{row['campaign__name']}”."
    deadline = row["campaign__deadline"]
    if deadline is not None and deadline <= timezone.now():
        url = reverse("annotation:campaign-detail", args=[project.slug, row["campaign"]])
        return AttentionNote("warning", f"{text} The deadline has passed.", url, "View campaign")
    url = reverse("annotation:campaign-work", args=[project.slug, row["campaign"]])
    return AttentionNote("campaigns", text, url, "Annotate")


def _unfrozen_feedback(project: Project) -> list[AttentionNote]:
    newest = (
        DatasetVersion.objects.filter(project=project, state=JobState.SUCCEEDED)
        .order_by("-created_at")
        .first()
    )
    if newest is None:
        return []
    rows = Annotation.objects.filter(
        assignment__item__campaign__project=project, created_at__gt=newest.created_at
    )
    count = rows[: NEW_ANNOTATIONS + 1].count()
    if not count:
        return []
    shown = f"More than {NEW_ANNOTATIONS:,}" if count > NEW_ANNOTATIONS else f"{count:,}"
    text = f"{shown} annotation{_plural(count)} since {newest.name}@{newest.version} was frozen."
    return [
        AttentionNote(
            "datasets",
            text,
            reverse("datasets:dataset-version-create", args=[project.slug]),
            "Freeze feedback",
        )
    ]


def _open_campaigns(project: Project) -> Any:
    return project.campaigns.filter(state=Campaign.State.OPEN)


def _plural(count: int) -> str:
    return "" if count == 1 else "s"


def _shortened(text: str, most: int = 160) -> str:
    line = " ".join(text.split()) or "no reason given."
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
