"""Reads of inductions and their metrics."""

from collections.abc import Collection
from typing import Any

from django.db.models import Count, Q, QuerySet

from apps.accounts.models import Project
from apps.annotation.feedback.records import current_annotations
from apps.annotation.models import Campaign, Comment, Item
from apps.core.errors import NotFound
from apps.core.jobs.job_queue import JobState
from apps.metrics.models import Aspect, Induction, Metric
from apps.trajectories.models import Trajectory
from workers.induce.induction_files import DEGENERATE_SHARE

MOST_UNCOMMENTED = 5000  # trajectories without comments that are judged too: the newest
MOST_UNCOMMENTED_LLM = 200  # where a language model judges them


def list_inductions(project: Project) -> QuerySet[Induction]:
    """The newest first."""
    return Induction.objects.filter(project=project).select_related(
        "project", "campaign", "llm_connection", "created_by"
    )


def get_induction(project: Project, pk: int) -> Induction:
    induction = list_inductions(project).filter(pk=pk).first()
    if induction is None:
        raise NotFound(f"There is no induction {pk} in this project.")
    return induction


def get_metric(project: Project, pk: int) -> Metric:
    rows = Metric.objects.select_related("induction__project", "criterion", "previous", "merged_into")
    metric = rows.filter(induction__project=project, pk=pk).first()
    if metric is None:
        raise NotFound(f"There is no metric {pk} in this project.")
    return metric


def latest_induction(project: Project, campaign: Campaign | None) -> Induction | None:
    """The latest induction of the same comments that has metrics."""
    rows = Induction.objects.filter(project=project, campaign=campaign, metrics__isnull=False)
    return rows.order_by("-pk").first()


def active_metrics(induction: Induction) -> QuerySet[Metric]:
    """The metrics of an induction that are neither rejected nor merged into another."""
    return induction.metrics.filter(state__in=[Metric.State.PROPOSED, Metric.State.ACCEPTED])


def project_metrics(project: Project) -> QuerySet[Metric]:
    """The metrics in use: those that were accepted, and those that the latest induction proposes."""
    latest = Induction.objects.filter(project=project, metrics__isnull=False).order_by("-pk").values("pk")[:1]
    return Metric.objects.filter(
        Q(state=Metric.State.ACCEPTED) | Q(state=Metric.State.PROPOSED, induction__in=latest),
        induction__project=project,
    )


def project_metric_ids(project: Project) -> list[int]:
    """Keys of the metrics in use, the latest of each name."""
    rows = project_metrics(project).order_by("induction")
    return list({metric.name: metric.pk for metric in rows}.values())


def list_comments(project: Project, campaign: Campaign | None) -> QuerySet[Comment]:
    """Comments of current annotations, neither gold nor practice, of one campaign or of all."""
    filters: dict[str, Any] = {"adjudication": "also"}
    if campaign is not None:
        filters["campaigns"] = [campaign.name]
    current = current_annotations(project, filters).filter(
        Q(assignment__is_adjudication=True) | Q(assignment__item__purpose=Item.Purpose.WORK)
    )
    return Comment.objects.filter(annotation__in=current.order_by().values("pk")).order_by("pk")


def uncommented_trajectories(induction: Induction, commented: Collection[int]) -> list[int]:
    """Keys of the newest trajectories without a comment, as many as the engine judges."""
    is_embedded = induction.engine == Induction.Engine.EMBEDDED
    limit = MOST_UNCOMMENTED if is_embedded else MOST_UNCOMMENTED_LLM
    rows = Trajectory.objects.filter(project=induction.project).exclude(pk__in=commented).order_by("-pk")
    return list(rows.values_list("pk", flat=True)[:limit])


def metric_examples(metric: Metric, sign: int) -> list[str]:
    """Points of this sign in the annotators' words, the most typical first."""
    rows = metric.aspects.filter(sign=sign, example__isnull=False).order_by("example", "number")
    return list(dict.fromkeys(rows.values_list("feedback", flat=True)))


def metric_definition(metric: Metric) -> str:
    """The definition that was written, or one from its examples."""
    return metric_definitions([metric])[metric.pk]


def metric_definitions(metrics: Collection[Metric]) -> dict[int, str]:
    """`metric_definition` of each, by key, in one query."""
    typical = Aspect.objects.filter(
        metric__in=[metric.pk for metric in metrics if not metric.definition],
        example__isnull=False,
        sign__in=[1, -1],
    )
    typical = typical.order_by("metric", "sign", "example", "number").distinct("metric", "sign")
    quotes = {
        (metric, sign): text for metric, sign, text in typical.values_list("metric", "sign", "feedback")
    }
    found = {}
    for metric in metrics:
        good, bad = quotes.get((metric.pk, 1)), quotes.get((metric.pk, -1))
        parts = [
            "" if good is None else f"Good, in people's words: “{good}”",
            "" if bad is None else f"Bad: “{bad}”",
        ]
        found[metric.pk] = metric.definition or " ".join(part for part in parts if part)
    return found


def with_counts(metrics: QuerySet[Metric]) -> QuerySet[Metric]:
    """Adds praised and blamed (points), kept, violated and judged (trajectories)."""
    return metrics.select_related("criterion", "previous").annotate(
        praised=Count("aspects", filter=Q(aspects__sign=1), distinct=True),
        blamed=Count("aspects", filter=Q(aspects__sign=-1), distinct=True),
        kept=Count("verdicts", filter=Q(verdicts__sign=1), distinct=True),
        violated=Count("verdicts", filter=Q(verdicts__sign=-1), distinct=True),
        judged=Count("verdicts", distinct=True),
    )


def degenerate_reason(*, kept: int, violated: int, judged: int) -> str:
    """Why verdicts of a metric do not distinguish trajectories; empty where they do. Numbers of trajectories."""
    if not judged:
        return ""
    if not kept + violated:
        return f"It applies to none of {judged:,} judged trajectories."
    for count, verb in ((kept, "keep"), (violated, "violate")):
        if count >= DEGENERATE_SHARE * judged:
            return f"{count:,} of {judged:,} judged trajectories {verb} it, so it does not distinguish them."
    return ""


def metric_degenerate_reason(metric: Metric) -> str:
    counts = metric.verdicts.aggregate(
        kept=Count("pk", filter=Q(sign=1)), violated=Count("pk", filter=Q(sign=-1)), judged=Count("pk")
    )
    return degenerate_reason(**counts)


def dropped_since_previous(induction: Induction) -> QuerySet[Metric]:
    """Metrics of the previous induction that this one no longer has."""
    if induction.previous is None:
        return Metric.objects.none()
    return induction.previous.metrics.exclude(state=Metric.State.MERGED).exclude(
        pk__in=induction.metrics.filter(previous__isnull=False).values("previous")
    )


def describe_failures(induction: Induction) -> list[dict[str, Any]]:
    """What the language model gave no answer on: `what`, its `trajectory` if that still exists, and `why`."""
    failed = induction.result.get("failed") or []
    trajectories = {int(failure["trajectory"]) for failure in failed if "trajectory" in failure}
    tasks = dict(
        Trajectory.objects.filter(project=induction.project, pk__in=trajectories).values_list(
            "pk", "task__external_id"
        )
    )
    comments = {int(failure["comment"]) for failure in failed if "comment" in failure}
    trajectory_by_comment = dict(Comment.objects.filter(pk__in=comments).values_list("pk", "trajectory"))
    described = []
    for failure in failed:
        trajectory: int | None
        if "comment" in failure:
            what, trajectory = (
                f"comment {failure['comment']}",
                trajectory_by_comment.get(int(failure["comment"])),
            )
        elif (number := int(failure["trajectory"])) in tasks:
            what, trajectory = f"trajectory of {tasks[number]}", number
        else:
            what, trajectory = f"trajectory {number}", None
        described.append({"what": what, "trajectory": trajectory, "why": failure["why"]})
    return described


def induction_report(induction: Induction) -> dict[str, Any]:
    """The JSON of the command `induce_metrics`."""
    metrics = [
        {
            "name": metric.name,
            "definition": metric_definition(metric),
            "degenerate": metric_degenerate_reason(metric),
            "good": metric_examples(metric, 1),
            "bad": metric_examples(metric, -1),
            "aspects": list(
                metric.aspects.order_by("number").values(
                    "feedback", "behaviour", "sign", "trajectory", "step", "comment"
                )
            ),
        }
        for metric in active_metrics(induction)
    ]
    names = ("engine", "coverage", "redundancy", "held_out", "baselines", "warnings", "left_out", "failed")
    return {
        "induction": induction.pk,
        "state": induction.state,
        "metrics": metrics,
        **{name: induction.result.get(name) for name in names},
    }


def has_running_induction(project: Project) -> bool:
    return Induction.objects.filter(project=project, state__in=[JobState.QUEUED, JobState.RUNNING]).exists()
