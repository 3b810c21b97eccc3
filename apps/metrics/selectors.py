"""Reads of inductions and their metrics."""

from collections.abc import Collection
from typing import Any

from django.db.models import Count, Q, QuerySet

from apps.accounts.models import Project
from apps.annotation.feedback.records import current_annotations
from apps.annotation.models import Campaign, Comment, Item
from apps.core.errors import NotFound
from apps.core.jobs.job_queue import JobState
from apps.metrics.models import Induction, Metric
from apps.trajectories.models import Trajectory

MOST_OTHERS = 5000  # trajectories judged besides those that were commented on: the newest
MOST_OTHERS_ASKED = 200  # where a language model is asked about each


def inductions_of(project: Project) -> QuerySet[Induction]:
    """The newest first."""
    return Induction.objects.filter(project=project).select_related(
        "project", "campaign", "llm_connection", "created_by"
    )


def induction_in(project: Project, pk: int) -> Induction:
    found = inductions_of(project).filter(pk=pk).first()
    if found is None:
        raise NotFound(f"There is no induction {pk} in this project.")
    return found


def metric_in(project: Project, pk: int) -> Metric:
    rows = Metric.objects.select_related("induction__project", "criterion", "before", "merged_into")
    found = rows.filter(induction__project=project, pk=pk).first()
    if found is None:
        raise NotFound(f"There is no metric {pk} in this project.")
    return found


def newest_induction(project: Project, campaign: Campaign | None) -> Induction | None:
    """The newest that came to something."""
    rows = Induction.objects.filter(project=project, campaign=campaign, metrics__isnull=False)
    return rows.order_by("-pk").first()


def standing(induction: Induction) -> QuerySet[Metric]:
    """Metrics that count: neither rejected nor merged into another."""
    return induction.metrics.filter(state__in=[Metric.State.PROPOSED, Metric.State.ACCEPTED])


def counting(project: Project) -> QuerySet[Metric]:
    """Metrics that count in the project: those that were accepted, and what its newest induction proposes."""
    newest = Induction.objects.filter(project=project, metrics__isnull=False).order_by("-pk").values("pk")[:1]
    return Metric.objects.filter(
        Q(state=Metric.State.ACCEPTED) | Q(state=Metric.State.PROPOSED, induction__in=newest),
        induction__project=project,
    )


def newest_counting(project: Project) -> list[int]:
    """Keys of the metrics that count, the newest of each name."""
    return list({metric.name: metric.pk for metric in counting(project).order_by("induction")}.values())


def comments_of(project: Project, campaign: Campaign | None) -> QuerySet[Comment]:
    """Comments that count: of the newest revisions, neither gold nor practice, of one campaign or of all."""
    filters: dict[str, Any] = {"adjudication": "also"}
    if campaign is not None:
        filters["campaigns"] = [campaign.name]
    said = current_annotations(project, filters).filter(
        Q(assignment__is_adjudication=True) | Q(assignment__item__purpose=Item.Purpose.WORK)
    )
    return Comment.objects.filter(annotation__in=said.order_by().values("pk")).order_by("pk")


def others_of(induction: Induction, commented: Collection[int]) -> list[int]:
    """The newest trajectories that nobody commented on, as many as the engine is to judge."""
    project, engine = induction.project, induction.engine
    most = MOST_OTHERS if engine == Induction.Engine.EMBEDDED else MOST_OTHERS_ASKED
    rows = Trajectory.objects.filter(project=project).exclude(pk__in=commented).order_by("-pk")
    return list(rows.values_list("pk", flat=True)[:most])


def examples_of(metric: Metric, sign: int) -> list[str]:
    """In people's words, the most typical first."""
    rows = metric.aspects.filter(sign=sign, example__isnull=False).order_by("example", "number")
    return list(dict.fromkeys(rows.values_list("feedback", flat=True)))


def definition_of(metric: Metric) -> str:
    """As somebody wrote it, or by its examples."""
    if metric.definition:
        return metric.definition
    good, bad = examples_of(metric, 1), examples_of(metric, -1)
    parts = [f"Good, in people's words: “{good[0]}”" if good else "", f"Bad: “{bad[0]}”" if bad else ""]
    return " ".join(part for part in parts if part)


def told(metrics: QuerySet[Metric]) -> QuerySet[Metric]:
    """With praised, blamed: points; kept, violated: trajectories."""
    return metrics.select_related("criterion", "before").annotate(
        praised=Count("aspects", filter=Q(aspects__sign=1), distinct=True),
        blamed=Count("aspects", filter=Q(aspects__sign=-1), distinct=True),
        kept=Count("verdicts", filter=Q(verdicts__sign=1), distinct=True),
        violated=Count("verdicts", filter=Q(verdicts__sign=-1), distinct=True),
    )


def gone_since(induction: Induction) -> QuerySet[Metric]:
    """Metrics of the one before that are not in this one."""
    if induction.before is None:
        return Metric.objects.none()
    return induction.before.metrics.exclude(state=Metric.State.MERGED).exclude(
        pk__in=induction.metrics.filter(before__isnull=False).values("before")
    )


def failed_of(induction: Induction) -> list[dict[str, Any]]:
    """What a language model gave no answer on: `what` it is, the `trajectory` where that is still there, and `why`."""
    failed = induction.result.get("failed") or []
    runs = {int(one["trajectory"]) for one in failed if "trajectory" in one}
    tasks = dict(
        Trajectory.objects.filter(project=induction.project, pk__in=runs).values_list(
            "pk", "task__external_id"
        )
    )
    comments = {int(one["comment"]) for one in failed if "comment" in one}
    of = dict(Comment.objects.filter(pk__in=comments).values_list("pk", "trajectory"))
    found = []
    for one in failed:
        if "comment" in one:
            what, run = f"comment {one['comment']}", of.get(int(one["comment"]))
        else:
            run = int(one["trajectory"]) if int(one["trajectory"]) in tasks else None
            what = f"run of {tasks[run]}" if run is not None else f"run {one['trajectory']}"
        found.append({"what": what, "trajectory": run, "why": one["why"]})
    return found


def report(induction: Induction) -> dict[str, Any]:
    """What `induce_metrics` prints."""
    metrics = [
        {
            "name": metric.name,
            "definition": definition_of(metric),
            "good": examples_of(metric, 1),
            "bad": examples_of(metric, -1),
            "aspects": list(
                metric.aspects.order_by("number").values(
                    "feedback", "behaviour", "sign", "trajectory", "step", "comment"
                )
            ),
        }
        for metric in standing(induction)
    ]
    names = ("engine", "coverage", "redundancy", "held_out", "baselines", "warnings", "left_out", "failed")
    return {
        "induction": induction.pk,
        "state": induction.state,
        "metrics": metrics,
        **{name: induction.result.get(name) for name in names},
    }


def is_under_way(project: Project) -> bool:
    return Induction.objects.filter(project=project, state__in=[JobState.QUEUED, JobState.RUNNING]).exists()
