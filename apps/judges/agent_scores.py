"""Agents ranked by a judge's answers on their trajectories."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from apps.judges.bootstrap import bootstrap_interval, bootstrap_rows
from apps.judges.models import Judge, JudgeResult, JudgeRun

MOST_AGENTS = 30  # those with the most trajectories


@dataclass(frozen=True, slots=True)
class AgentScore:
    """An agent's score by a criterion, over n trajectories.

    value: the mean position of its trajectories on the scale, 0 to 1; where trajectories are compared, the chance that
    the agent's is the better one of a pair with another agent. interval: 95 %, tasks resampled; None for too few.
    """

    agent: str
    version: str
    criterion: str
    n: int
    value: float
    interval: tuple[float, float] | None


def agent_scores(judge_run: JudgeRun) -> list[AgentScore]:
    """By criterion, the best agent first. Trajectories without an agent's name are left out."""
    criteria, scores = judge_run.judge.criteria, judge_run.judge.mode == Judge.Mode.SCORE
    values: dict[tuple[str, str, str], list[tuple[int, float]]] = defaultdict(list)
    rows = judge_run.results.filter(state=JudgeResult.State.DONE).select_related(
        "trajectory", "other_trajectory"
    )
    for row in rows.iterator(chunk_size=1000):
        a, b = row.trajectory, row.other_trajectory
        for criterion, answer in zip(criteria, row.answer or (), strict=True):
            value = answer["value"] if scores else answer["chance"]
            if value is None:
                continue
            name = criterion.name if criterion else "Overall"
            if scores:
                assert criterion is not None
                position = (value - criterion.scale_low) / (criterion.scale_high - criterion.scale_low)
                values[a.agent_name, a.agent_version, name].append((a.task_id, position))
            elif b is not None and (a.agent_name, a.agent_version) != (b.agent_name, b.agent_version):
                values[a.agent_name, a.agent_version, name].append((a.task_id, value))
                values[b.agent_name, b.agent_version, name].append((a.task_id, 1 - value))
    by_agent = {key: found for key, found in values.items() if key[0]}
    shown = sorted(by_agent, key=lambda key: -len(by_agent[key]))[: MOST_AGENTS * len(criteria)]
    order = [criterion.name if criterion else "Overall" for criterion in criteria]
    found = [_agent_score(*key, by_agent[key]) for key in shown]
    return sorted(found, key=lambda score: (order.index(score.criterion), -score.value, score.agent))


def _agent_score(
    agent: str, version: str, criterion: str, task_values: list[tuple[int, float]]
) -> AgentScore:
    tasks = [task for task, _ in task_values]
    values = np.array([value for _, value in task_values])
    means = [float(values[rows].mean()) for rows in bootstrap_rows(tasks)]
    interval = bootstrap_interval(means, len(set(tasks)))
    return AgentScore(agent, version, criterion, len(task_values), float(values.mean()), interval)
