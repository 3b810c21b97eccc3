"""The report of a reward analysis: plain values, from the scores of trajectories by a spec. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apps.reward_studies.component_analysis import (
    FACTORS,
    Floats,
    Ints,
    PairConflict,
    correlations,
    probe_gain,
    rank_correlation,
    sensitivity,
    step_conflicts,
    task_bootstrap,
    variance_shares,
)

MAX_DRAWN = 12  # trajectories whose steps are drawn
MAX_DRAWN_STEPS = 300


@dataclass(frozen=True)
class StudiedTrajectory:
    """key: of the stored trajectory. contributions: by component, what it adds, before transforms; steps: the same by
    agent step. step_indices: of the agent steps among all steps. features: of `text_features`."""

    key: int
    task: str
    reward: float
    contributions: Mapping[str, float]
    steps: Mapping[str, Sequence[float]]
    step_indices: Sequence[int]
    features: Mapping[str, float]


@dataclass(frozen=True)
class ProbedTrajectory:
    """The reward and what components add, of a trajectory that a probe has changed. place: among the scored ones."""

    place: int
    reward: float
    contributions: Mapping[str, float]


@dataclass(frozen=True)
class AnalysedReward:
    """names: of the components, in their order. probes: by name; skipped: trajectories that have no words to change."""

    names: Sequence[str]
    scored: Sequence[StudiedTrajectory]
    probes: Mapping[str, Sequence[ProbedTrajectory]] = field(default_factory=dict)


def analysis_report(analysed: AnalysedReward) -> dict[str, Any]:
    """Plain values, as docs/reward-design.md describes them."""
    scored, names = analysed.scored, analysed.names
    contributions = np.array([[row.contributions[name] for name in names] for row in scored])
    rewards = np.array([row.reward for row in scored])
    tasks = np.unique([row.task for row in scored], return_inverse=True)[1]
    by_trajectory = [_steps(row, names) for row in scored]
    conflicts = step_conflicts(by_trajectory)
    return {
        "trajectories": len(scored),
        "tasks": len(np.unique(tasks)),
        "steps": int(sum(map(len, by_trajectory))),
        "reward": {"mean": float(rewards.mean()), "std": float(rewards.std())},
        "components": _components(names, contributions, tasks),
        "correlations": correlations(contributions),
        "conflicts": [_conflict(pair, names, scored) for pair in conflicts],
        "drawn": _drawn(conflicts, scored, names, by_trajectory),
        "format": _format(scored, rewards, contributions, names, tasks),
        "probes": {
            name: _probe(found, scored, names, rewards, tasks) for name, found in analysed.probes.items()
        },
    }


def _steps(row: StudiedTrajectory, names: Sequence[str]) -> Floats:
    """[steps, components]"""
    return np.array([row.steps[name] for name in names], dtype=float).T.reshape(-1, len(names))


def _components(names: Sequence[str], contributions: Floats, tasks: Ints) -> list[dict[str, Any]]:
    shares = variance_shares(contributions)
    changes = sensitivity(contributions, tasks)
    found = []
    for place, name in enumerate(names):

        def share(rows: Ints, place: int = place) -> float:
            return float(variance_shares(contributions[rows])[place])

        interval = task_bootstrap(share, tasks)
        found.append(
            {
                "name": name,
                "mean": float(contributions[:, place].mean()),
                "std": float(contributions[:, place].std()),
                "share": float(shares[place]),
                "low": interval[0] if interval else None,
                "high": interval[1] if interval else None,
                "sensitivity": changes[place],
            }
        )
    return found


def _conflict(
    pair: PairConflict, names: Sequence[str], scored: Sequence[StudiedTrajectory]
) -> dict[str, Any]:
    return {
        "first": names[pair.first],
        "second": names[pair.second],
        "correlation": pair.correlation,
        "share": pair.share,
        "steps": [
            {
                "trajectory": scored[step.trajectory].key,
                "step": _index(scored[step.trajectory], step.agent_step),
                "first": step.first_reward,
                "second": step.second_reward,
            }
            for step in pair.steps
        ],
    }


def _index(row: StudiedTrajectory, agent_step: int) -> int:
    return row.step_indices[agent_step] if agent_step < len(row.step_indices) else agent_step


def _drawn(
    conflicts: Sequence[PairConflict],
    scored: Sequence[StudiedTrajectory],
    names: Sequence[str],
    by_trajectory: Sequence[Floats],
) -> list[dict[str, Any]]:
    """Trajectories with the strongest conflicts first, then the longest."""
    strongest = sorted((step for pair in conflicts for step in pair.steps), key=lambda step: -step.strength)
    longest = sorted(range(len(scored)), key=lambda place: -len(by_trajectory[place]))
    places = list(dict.fromkeys([*(step.trajectory for step in strongest), *longest]))[:MAX_DRAWN]
    return [
        {
            "trajectory": scored[place].key,
            "task": scored[place].task,
            "indices": [_index(scored[place], step) for step in range(min(len(rows), MAX_DRAWN_STEPS))],
            "steps": {name: rows[:MAX_DRAWN_STEPS, column].tolist() for column, name in enumerate(names)},
        }
        for place in places
        if len(rows := by_trajectory[place])
    ]


def _format(
    scored: Sequence[StudiedTrajectory],
    rewards: Floats,
    contributions: Floats,
    names: Sequence[str],
    tasks: Ints,
) -> list[dict[str, Any]]:
    """Spearman correlations with each feature; features that do not vary are left out."""
    found = []
    for feature in scored[0].features:
        column = np.array([row.features[feature] for row in scored])
        value = rank_correlation(column, rewards)
        if value is None:
            continue
        interval = task_bootstrap(
            lambda rows, column=column: rank_correlation(column[rows], rewards[rows]),  # type: ignore[misc]
            tasks,
        )
        found.append(
            {
                "feature": feature,
                "reward": value,
                "low": interval[0] if interval else None,
                "high": interval[1] if interval else None,
                "components": {
                    name: rank_correlation(column, contributions[:, place])
                    for place, name in enumerate(names)
                },
            }
        )
    return sorted(found, key=lambda row: -abs(row["reward"]))


def _probe(
    found: Sequence[ProbedTrajectory],
    scored: Sequence[StudiedTrajectory],
    names: Sequence[str],
    rewards: Floats,
    tasks: Ints,
) -> dict[str, Any] | None:
    """None where no trajectory could be changed."""
    if not found:
        return None
    places = np.array([each.place for each in found])
    gain = probe_gain(rewards[places], np.array([each.reward for each in found]), tasks[places])
    by_component = {
        name: float(
            np.mean([each.contributions[name] - scored[each.place].contributions[name] for each in found])
        )
        for name in names
    }
    spread = float(rewards.std())
    return gain | {"components": by_component, "spreads": gain["mean"] / spread if spread > 1e-9 else None}


__all__ = ["FACTORS", "AnalysedReward", "ProbedTrajectory", "StudiedTrajectory", "analysis_report"]
