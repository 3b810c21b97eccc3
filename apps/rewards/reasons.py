"""Why a model gives a stored trajectory its reward: the words and events that moved it, from the reward service."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.rewards import remote
from apps.rewards.specs import checked_spec
from apps.training.models import RewardModel
from apps.training.selectors import models_of
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import load_trajectories
from workers.schema.recipe import CONVEX

MAX_STEPS = 5  # of an event
_TIMEOUT = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """count: of a word; None for an event. steps: indices among all steps. has_more: whether others are not named.

    bar: its size in percent of the largest.
    """

    text: str
    count: int | None
    steps: list[int]
    has_more: bool
    by: float
    bar: int


@dataclass(frozen=True, slots=True)
class ExplainedReward:
    """reward: on the reward scale. reasons: the largest first."""

    reward: float
    words: list[ReasonRow]
    events: list[ReasonRow]


def models_with_reasons(project: Project) -> QuerySet[RewardModel]:
    """Newest first: those with a linear or hybrid backbone."""
    return models_of(project).filter(manifest__backbone__kind__in=CONVEX)


def explain_reward(*, model: RewardModel, trajectory: Trajectory) -> ExplainedReward:
    """By a model that need not be deployed. Raises RewardServiceError, DomainError where the model cannot be served."""
    component = {"name": "model", "type": "reward_model", "model": str(model), "weight": 1.0}
    checked = checked_spec(project=model.project, spec={"components": [component], "transforms": []})
    (result,) = remote.dry_run(
        model.project,
        spec=checked.spec.to_builtins(),
        artifacts=checked.artifacts,
        judges={},
        trajectory_ids=[str(trajectory.pk)],
        reasons=True,
        timeout=_TIMEOUT,
    )
    found = result["reasons"]["model"]
    indices = load_trajectories([trajectory.pk])[trajectory.pk].agent_steps
    largest = max((abs(reason["by"]) for reason in found), default=1.0)
    rows: dict[str, list[ReasonRow]] = {"word": [], "event": []}
    for reason in found:
        rows[reason["kind"]].append(_reason_row(reason, indices, largest))
    return ExplainedReward(result["reward"], rows["word"], rows["event"])


def _reason_row(reason: dict[str, Any], indices: list[int], largest: float) -> ReasonRow:
    if reason["kind"] == "word":
        text, agent_steps = reason["text"], [] if reason["step"] is None else [reason["step"]]
    else:
        text, agent_steps = reason["name"], reason["steps"]
    return ReasonRow(
        text,
        reason.get("count"),
        [indices[step] for step in agent_steps[:MAX_STEPS]],
        len(agent_steps) > MAX_STEPS,
        reason["by"],
        round(100 * abs(reason["by"]) / largest),
    )
