"""The tasks of a project with the chance that agents succeed at them, from known outcomes and from their texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Case, Count, F, FloatField, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Greatest, Least

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import parse_filter
from apps.trajectories.models import Task, Trajectory
from workers.task_difficulty import (
    ORDERS,
    SuccessEstimate,
    TaskOutcomes,
    fit_success_model,
    ordered_tasks,
)

MOST_TASKS = 5000  # those that were added last
MOST_REPLAYED = 20  # failed trajectories that are named of a task, the newest
_LONGEST_TEXT = 4000  # characters of an instruction that are read
CHOICES = {"all": "All tasks", "failures": "Tasks with failures", "untried": "Tasks without outcomes"}


@dataclass(slots=True)
class TaskEstimate:
    """trials: outcomes that are known. successes: how many succeeded; a reward in [0, 1] counts as its part of one.
    failures: trajectories that did not succeed."""

    task: Task
    trials: int
    successes: float
    failures: int
    estimate: SuccessEstimate

    @property
    def pk(self) -> int:
        return self.task.pk

    @property
    def interval(self) -> tuple[float, float]:
        return self.estimate.low, self.estimate.high

    @property
    def success_rate(self) -> float | None:
        return self.successes / self.trials if self.trials else None


def estimate_tasks(
    project: Project, *, source: str = "", order: str, choice: str = "all"
) -> list[TaskEstimate]:
    """In that order. source: of the trajectories whose outcomes count, as `TrajectoryFilter.query`; the tasks are all
    of the project. None where no outcome is known. Raises DomainError."""
    _require_known("order", order, ORDERS)
    _require_known("only", choice, CHOICES)
    outcomes = _outcomes(filter_trajectories(project, parse_filter(source)))
    if not any(trials for trials, _, _ in outcomes.values()):
        return []
    tasks = list(Task.objects.filter(project=project).order_by("-pk")[:MOST_TASKS])[::-1]
    tried = [outcomes.get(task.pk, (0, 0.0, 0)) for task in tasks]
    if not any(trials for trials, _, _ in tried):
        return []
    _, estimates = fit_success_model(
        [
            TaskOutcomes(task.instruction[:_LONGEST_TEXT], trials, successes)
            for task, (trials, successes, _) in zip(tasks, tried, strict=True)
        ]
    )
    rows = [
        TaskEstimate(tasks[place], *tried[place], estimates[place])
        for place in ordered_tasks(estimates, order)
    ]
    if choice == "failures":
        return [row for row in rows if row.failures]
    return [row for row in rows if not row.trials] if choice == "untried" else rows


def failed_trajectories(
    project: Project, tasks: Sequence[int], *, source: str = ""
) -> dict[int, list[Trajectory]]:
    """By key of the task, the newest MOST_REPLAYED that did not succeed, newest first: what to replay."""
    rows = filter_trajectories(project, parse_filter(source)).filter(_FAILED, task__in=tasks)
    found: dict[int, list[Trajectory]] = {}
    for trajectory in rows.order_by("-pk").only("pk", "number", "external_id", "task_id"):
        replayed = found.setdefault(trajectory.task_id, [])
        if len(replayed) < MOST_REPLAYED:
            replayed.append(trajectory)
    return found


_FAILED = Q(success=False) | Q(success=None, outcome_reward__lt=0.5)
_KNOWN = Q(success__isnull=False) | Q(outcome_reward__isnull=False)
_CREDIT = Case(
    When(success=True, then=Value(1.0)),
    When(success=False, then=Value(0.0)),
    default=Greatest(0.0, Least(1.0, F("outcome_reward"))),
    output_field=FloatField(),
)


def _outcomes(rows: QuerySet[Trajectory]) -> dict[int, tuple[int, float, int]]:
    """By key of the task: trials, successes, failures."""
    groups = (
        rows.filter(_KNOWN)
        .order_by()
        .values("task_id")
        .annotate(trials=Count("pk"), credit=Sum(_CREDIT), failures=Count("pk", filter=_FAILED))
    )
    return {
        task: (trials, min(credit, trials), failures)
        for task, trials, credit, failures in groups.values_list("task_id", "trials", "credit", "failures")
    }


def _require_known(name: str, value: str, known: Mapping[str, object]) -> None:
    if value not in known:
        raise DomainError(f"{name} is {value!r}; it must be one of {', '.join(known)}.", pointer=f"/{name}")
