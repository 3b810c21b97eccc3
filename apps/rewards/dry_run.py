"""The effect of a spec before it is deployed: stored trajectories scored by it and by the active revision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.accounts.models import Project
from apps.rewards import remote
from apps.rewards.models import Endpoint
from apps.rewards.specs import CheckedSpec, checked_spec
from apps.trajectories.models import Trajectory

MOST, MOST_TOKENS = 60, 120_000
MOST_JUDGED = 12  # where a judge is asked: each run is a call that costs something
MOVERS = 8


@dataclass(frozen=True, slots=True)
class DryRunRow:
    """before: None where nothing is deployed yet. Rewards are final; components are what each adds."""

    trajectory: Trajectory
    before: float | None
    after: float
    components: Mapping[str, float]
    flags: Sequence[str]

    @property
    def moved(self) -> float:
        return 0.0 if self.before is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class DryRun:
    """rows: those that moved most first. drawing: a chart of `apps.core.charts`."""

    rows: list[DryRunRow]
    count: int
    turned: int  # pairs whose order changes
    pairs: int
    drawing: dict[str, Any]


def dry_run(*, project: Project, endpoint: Endpoint | None, spec: Any) -> DryRun | None:
    """None where the project has no trajectories. Raises as `put_spec` and `remote.dry_run` do."""
    wanted = checked_spec(project=project, spec=spec)
    now = None
    if endpoint is not None and endpoint.active is not None:
        now = checked_spec(project=project, spec=endpoint.active.spec)
    judged = wanted.judges or (now and now.judges)
    chosen = _chosen(project, MOST_JUDGED if judged else MOST)
    if not chosen:
        return None
    after = _scored(project, wanted, chosen)
    before = _scored(project, now, chosen) if now is not None else None
    rows = [
        DryRunRow(
            trajectory,
            before[place]["reward"] if before else None,
            after[place]["reward"],
            after[place]["components"],
            after[place]["flags"],
        )
        for place, trajectory in enumerate(chosen)
    ]
    turned, pairs = _turned(rows)
    return DryRun(
        sorted(rows, key=lambda row: -abs(row.moved))[:MOVERS], len(rows), turned, pairs, _drawing(rows)
    )


def _chosen(project: Project, most: int) -> list[Trajectory]:
    """The newest, up to as many tokens as are scored while a person waits."""
    found: list[Trajectory] = []
    tokens = 0
    for trajectory in project.trajectories.select_related("task").order_by("-pk")[:most]:
        tokens += trajectory.token_count
        if found and tokens > MOST_TOKENS:
            break
        found.append(trajectory)
    return found


def _scored(project: Project, checked: CheckedSpec, chosen: Sequence[Trajectory]) -> list[dict[str, Any]]:
    return remote.dry_run(
        project,
        spec=checked.spec.to_builtins(),
        artifacts=checked.artifacts,
        judges={name: judge.pk for name, judge in checked.judges.items()},
        trajectory_ids=[str(trajectory.pk) for trajectory in chosen],
    )


def _turned(rows: Sequence[DryRunRow]) -> tuple[int, int]:
    """Pairs whose order changes, and all that had an order."""
    known = [(row.before, row.after) for row in rows if row.before is not None]
    pairs = [
        ((first[0] - second[0]), (first[1] - second[1]))
        for place, first in enumerate(known)
        for second in known[:place]
        if first[0] != second[0]
    ]
    return sum(before * after <= 0 for before, after in pairs), len(pairs)


def _drawing(rows: Sequence[DryRunRow]) -> dict[str, Any]:
    """Active revision across, this spec up: on the diagonal nothing changes."""
    if rows[0].before is None:
        ordered = sorted(row.after for row in rows)
        return {
            "kind": "line",
            "x": {"name": "trajectories, from the lowest reward to the highest"},
            "y": {"name": "reward"},
            "series": [
                {"name": "reward", "points": [[place, reward] for place, reward in enumerate(ordered, 1)]}
            ],
        }
    ends = [min(row.before for row in rows if row.before is not None)]
    ends.append(max(row.before for row in rows if row.before is not None))
    return {
        "kind": "scatter",
        "x": {"name": "reward by the active revision"},
        "y": {"name": "reward by this spec"},
        "series": [
            {"name": "trajectories", "points": [[row.before, row.after] for row in rows]},
            {"name": "no change", "kind": "line", "dashed": True, "points": [[end, end] for end in ends]},
        ],
    }
