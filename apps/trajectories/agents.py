"""Comparison of two agents, or of two versions of one agent, on their common tasks."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from django.db import connection

from apps.accounts.models import Project

_Z = 1.96  # of a normal interval of 95 %
_BY_TASK = """
    SELECT task_id, count(*), avg(success::int), avg(step_count), avg(token_count), avg(outcome_reward),
        avg(('tool-error' = ANY(patterns))::int), avg(cost.cost), min(trajectory.id),
        min(trajectory.id) FILTER (WHERE success), min(trajectory.id) FILTER (WHERE NOT success)
    FROM trajectories_trajectory AS trajectory
    LEFT JOIN LATERAL (
        SELECT sum((metrics ->> 'cost_usd')::float) AS cost FROM trajectories_step AS step
        WHERE step.trajectory_id = trajectory.id AND json_typeof(metrics -> 'cost_usd') = 'number'
    ) AS cost ON true
    WHERE project_id = %s AND agent_name = %s AND agent_version = %s
    GROUP BY task_id
"""
MEASURES = {
    "success": "Success",
    "reward": "Reward",
    "steps": "Steps",
    "tokens": "Tokens",
    "tool_errors": "Trajectories with a failed tool call",
    "cost": "Cost, US dollars",
}
SHARES = ("success", "tool_errors")


@dataclass(frozen=True, slots=True)
class TaskMeans:
    """Means over an agent's trajectories of one task, None where no trajectory has the value; and primary keys of any
    trajectory, of a success and of a failure."""

    trajectory_count: int
    success: float | None
    steps: float
    tokens: float
    reward: float | None
    tool_errors: float | None
    cost: float | None
    any_trajectory: int
    successful_trajectory: int | None
    failed_trajectory: int | None


@dataclass(frozen=True, slots=True)
class MeasureComparison:
    """Means over n tasks of both, and their difference, b - a, with its 95 % interval (normal, paired by task)."""

    name: str
    title: str
    is_share: bool
    n: int
    a: float
    b: float
    difference: float
    interval: tuple[float, float] | None

    @property
    def is_clear(self) -> bool:
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)

    @property
    def words(self) -> dict[str, str]:
        """The numbers, formatted for the page."""
        low, high = self.interval or (None, None)
        numbers = {"a": self.a, "b": self.b, "low": low, "high": high}
        words = {
            name: _format_number(value, self.is_share) for name, value in numbers.items() if value is not None
        }
        return words | {
            "difference": f"{'+' if self.difference > 0 else ''}{_format_number(self.difference, self.is_share)}"
        }


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """A task where one agent succeeds more often; with the primary keys of trajectories that show it."""

    task: str
    a: float
    b: float
    trajectory_a: int
    trajectory_b: int

    @property
    def words(self) -> tuple[str, str]:
        return _format_number(self.a, True), _format_number(self.b, True)


@dataclass(frozen=True, slots=True)
class AgentComparison:
    """shared: tasks of both; only_a, only_b: tasks of one. better: b succeeds more often; worse: less often."""

    shared: int
    only_a: int
    only_b: int
    measures: list[MeasureComparison]
    better: list[OutcomeChange]
    worse: list[OutcomeChange]


def _format_number(value: float, is_share: bool) -> str:
    return (f"{100 * value:.1f} %" if is_share else f"{value:,.2f}".removesuffix(".00")).replace("-", "−")


def compare_agents(project: Project, a: tuple[str, str], b: tuple[str, str]) -> AgentComparison:
    """a, b: (name, version) of the agents."""
    ours, theirs = _means_by_task(project, a), _means_by_task(project, b)
    shared = ours.keys() & theirs.keys()
    pairs = [(ours[task], theirs[task]) for task in shared]
    measures = (
        _compare_measure(name, [(getattr(x, name), getattr(y, name)) for x, y in pairs]) for name in MEASURES
    )
    names = dict(project.tasks.filter(pk__in=shared).values_list("pk", "external_id"))
    changes = sorted(
        _outcome_changes((names[task], ours[task], theirs[task]) for task in shared),
        key=lambda change: change.task,
    )
    return AgentComparison(
        shared=len(shared),
        only_a=len(ours) - len(shared),
        only_b=len(theirs) - len(shared),
        measures=[measure for measure in measures if measure is not None],
        better=sorted(
            (change for change in changes if change.b > change.a), key=lambda change: change.a - change.b
        ),
        worse=sorted(
            (change for change in changes if change.b < change.a), key=lambda change: change.b - change.a
        ),
    )


def _means_by_task(project: Project, agent: tuple[str, str]) -> dict[int, TaskMeans]:
    with connection.cursor() as cursor:
        cursor.execute(_BY_TASK, [project.pk, *agent])
        return {task: _task_means(*row) for task, *row in cursor.fetchall()}


def _task_means(trajectory_count: int, *columns: Any) -> TaskMeans:
    success, steps, tokens, reward, tool_errors, cost = (
        None if mean is None else float(mean) for mean in columns[:6]
    )
    assert steps is not None and tokens is not None
    return TaskMeans(trajectory_count, success, steps, tokens, reward, tool_errors, cost, *columns[6:])


def _compare_measure(
    name: str, values: Iterable[tuple[float | None, float | None]]
) -> MeasureComparison | None:
    known = [(a, b) for a, b in values if a is not None and b is not None]
    if not known:
        return None
    differences = [b - a for a, b in known]
    mean, n = fmean(differences), len(known)
    half = _Z * stdev(differences) / sqrt(n) if n > 1 else None
    return MeasureComparison(
        name=name,
        title=MEASURES[name],
        is_share=name in SHARES,
        n=n,
        a=fmean(a for a, _ in known),
        b=fmean(b for _, b in known),
        difference=mean,
        interval=None if half is None else (mean - half, mean + half),
    )


def _outcome_changes(tasks: Iterable[tuple[str, TaskMeans, TaskMeans]]) -> Iterable[OutcomeChange]:
    for task, a, b in tasks:
        if a.success is None or b.success is None or a.success == b.success:
            continue
        if b.success > a.success:
            trajectory_a, trajectory_b = a.failed_trajectory, b.successful_trajectory
        else:
            trajectory_a, trajectory_b = a.successful_trajectory, b.failed_trajectory
        yield OutcomeChange(
            task, a.success, b.success, trajectory_a or a.any_trajectory, trajectory_b or b.any_trajectory
        )
