"""Two agents, or two versions of one, over the tasks both were given."""

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
    "tool_errors": "Runs in which a tool failed",
    "cost": "Cost, US dollars",
}
SHARES = ("success", "tool_errors")


@dataclass(frozen=True, slots=True)
class OnTask:
    """Means over an agent's runs of one task, None where no run says; keys of a run, a success, a failure."""

    runs: int
    success: float | None
    steps: float
    tokens: float
    reward: float | None
    tool_errors: float | None
    cost: float | None
    any_run: int
    good_run: int | None
    bad_run: int | None


@dataclass(frozen=True, slots=True)
class Compared:
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
        """Its numbers as they are read."""
        low, high = self.interval or (None, None)
        numbers = {"a": self.a, "b": self.b, "low": low, "high": high}
        words = {name: _words(value, self.is_share) for name, value in numbers.items() if value is not None}
        return words | {
            "difference": f"{'+' if self.difference > 0 else ''}{_words(self.difference, self.is_share)}"
        }


@dataclass(frozen=True, slots=True)
class Flipped:
    """A task one of them succeeds at more than the other; keys of the runs that show it."""

    task: str
    a: float
    b: float
    run_a: int
    run_b: int

    @property
    def words(self) -> tuple[str, str]:
        return _words(self.a, True), _words(self.b, True)


@dataclass(frozen=True, slots=True)
class AgentComparison:
    """shared: tasks of both; only_a, only_b: tasks of one. better: b succeeds more often; worse: less often."""

    shared: int
    only_a: int
    only_b: int
    measures: list[Compared]
    better: list[Flipped]
    worse: list[Flipped]


def _words(value: float, is_share: bool) -> str:
    return f"{100 * value:.0f} %" if is_share else f"{value:,.2f}".removesuffix(".00")


def compare(project: Project, a: tuple[str, str], b: tuple[str, str]) -> AgentComparison:
    """a, b: (name, version) of agents."""
    ours, theirs = _on_tasks(project, a), _on_tasks(project, b)
    shared = ours.keys() & theirs.keys()
    pairs = [(ours[task], theirs[task]) for task in shared]
    measures = (
        _compared(name, [(getattr(x, name), getattr(y, name)) for x, y in pairs]) for name in MEASURES
    )
    names = dict(project.tasks.filter(pk__in=shared).values_list("pk", "external_id"))
    flipped = sorted(
        _flipped((names[task], ours[task], theirs[task]) for task in shared), key=lambda one: one.task
    )
    return AgentComparison(
        shared=len(shared),
        only_a=len(ours) - len(shared),
        only_b=len(theirs) - len(shared),
        measures=[one for one in measures if one is not None],
        better=sorted((one for one in flipped if one.b > one.a), key=lambda one: one.a - one.b),
        worse=sorted((one for one in flipped if one.b < one.a), key=lambda one: one.b - one.a),
    )


def _on_tasks(project: Project, agent: tuple[str, str]) -> dict[int, OnTask]:
    with connection.cursor() as cursor:
        cursor.execute(_BY_TASK, [project.pk, *agent])
        return {task: _on_task(*row) for task, *row in cursor.fetchall()}


def _on_task(runs: int, *found: Any) -> OnTask:
    success, steps, tokens, reward, tool_errors, cost = (
        None if one is None else float(one) for one in found[:6]
    )
    assert steps is not None and tokens is not None
    return OnTask(runs, success, steps, tokens, reward, tool_errors, cost, *found[6:])


def _compared(name: str, values: Iterable[tuple[float | None, float | None]]) -> Compared | None:
    known = [(a, b) for a, b in values if a is not None and b is not None]
    if not known:
        return None
    differences = [b - a for a, b in known]
    mean, n = fmean(differences), len(known)
    half = _Z * stdev(differences) / sqrt(n) if n > 1 else None
    return Compared(
        name=name,
        title=MEASURES[name],
        is_share=name in SHARES,
        n=n,
        a=fmean(a for a, _ in known),
        b=fmean(b for _, b in known),
        difference=mean,
        interval=None if half is None else (mean - half, mean + half),
    )


def _flipped(tasks: Iterable[tuple[str, OnTask, OnTask]]) -> Iterable[Flipped]:
    for task, a, b in tasks:
        if a.success is None or b.success is None or a.success == b.success:
            continue
        if b.success > a.success:
            run_a, run_b = a.bad_run, b.good_run
        else:
            run_a, run_b = a.good_run, b.bad_run
        yield Flipped(task, a.success, b.success, run_a or a.any_run, run_b or b.any_run)
