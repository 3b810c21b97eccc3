"""Agents by what a judge says of their runs."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from apps.judges.agreement import interval_of, resampled
from apps.judges.models import Judge, JudgeResult, JudgeRun

MOST_AGENTS = 30  # those with the most runs


@dataclass(frozen=True, slots=True)
class Standing:
    """An agent by a criterion. value: the mean place of its runs on the scale, 0 to 1; or, where runs are compared, how
    likely its run is the better one of a pair with another agent. interval: 95 %, tasks resampled; None for too few.
    """

    agent: str
    version: str
    criterion: str
    n: int
    value: float
    interval: tuple[float, float] | None


def standings_of(judge_run: JudgeRun) -> list[Standing]:
    """By criterion, the best agent first. Runs without an agent's name are none's."""
    asks, scores = judge_run.judge.criteria, judge_run.judge.mode == Judge.Mode.SCORE
    found: dict[tuple[str, str, str], list[tuple[int, float]]] = defaultdict(list)
    rows = judge_run.results.filter(state=JudgeResult.State.DONE).select_related(
        "trajectory", "other_trajectory"
    )
    for row in rows.iterator(chunk_size=1000):
        run, other = row.trajectory, row.other_trajectory
        for criterion, said in zip(asks, row.answer or (), strict=True):
            value = said["value"] if scores else said["chance"]
            if value is None:
                continue
            name = criterion.name if criterion else "Overall"
            if scores:
                assert criterion is not None
                place = (value - criterion.scale_low) / (criterion.scale_high - criterion.scale_low)
                found[run.agent_name, run.agent_version, name].append((run.task_id, place))
            elif other is not None and (run.agent_name, run.agent_version) != (
                other.agent_name,
                other.agent_version,
            ):
                found[run.agent_name, run.agent_version, name].append((run.task_id, value))
                found[other.agent_name, other.agent_version, name].append((run.task_id, 1 - value))
    named = {key: values for key, values in found.items() if key[0]}
    most = sorted(named, key=lambda key: -len(named[key]))[: MOST_AGENTS * len(asks)]
    order = [one.name if one else "Overall" for one in asks]
    standings = [_standing(*key, named[key]) for key in most]
    return sorted(standings, key=lambda one: (order.index(one.criterion), -one.value, one.agent))


def _standing(agent: str, version: str, criterion: str, said: list[tuple[int, float]]) -> Standing:
    tasks = [task for task, _ in said]
    values = np.array([value for _, value in said])
    drawn = [float(values[rows].mean()) for rows in resampled(tasks)]
    interval = interval_of(drawn, len(set(tasks)))
    return Standing(agent, version, criterion, len(said), float(values.mean()), interval)
