"""The reward of a stored trajectory by an endpoint, or by a model that need not be deployed, and what it is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.judges.models import Judge
from apps.rewards import remote
from apps.rewards.selectors import endpoint_of, endpoints_of
from apps.rewards.specs import checked_spec
from apps.training.selectors import models_of
from apps.trajectories.models import Step, Trajectory
from apps.trajectories.outline import HIGH, WIDE, RewardChart, reward_chart

MAX_MODELS = 30  # that are offered: the newest
MAX_JUDGES = 30
_TIMEOUT = 60.0  # seconds
_ENDPOINT, _MODEL = "endpoint:", "model:"


@dataclass(frozen=True, slots=True)
class ScorerChoices:
    """(value, label) of what can score: endpoints that are deployed, models; and judges, which are asked in a run."""

    endpoints: list[tuple[str, str]]
    models: list[tuple[str, str]]
    judges: list[Judge]

    @property
    def is_empty(self) -> bool:
        return not self.endpoints and not self.models


@dataclass(frozen=True, slots=True)
class TrajectoryReward:
    """raw: in the model's own units, as offset and steps are. criteria, components: by name. steps: the reward of each
    agent step by its index among all steps. agents: of several agents, the sum of the step rewards of each. running:
    the points of their running total, in the drawing of `chart`."""

    scorer: str
    reward: float
    raw: float
    std: float | None
    offset: float
    criteria: Mapping[str, float]
    components: Mapping[str, float]
    flags: Sequence[str]
    steps: dict[int, float]
    agents: Mapping[str, float]
    chart: RewardChart | None
    running: str


def scorer_choices(project: Project) -> ScorerChoices:
    endpoints = endpoints_of(project).filter(active__isnull=False, switched_off=False)
    models = models_of(project).select_related("project")[:MAX_MODELS]
    judges = Judge.objects.filter(project=project, llm_connection__isnull=False).exclude(
        mode=Judge.Mode.COMPARE
    )
    return ScorerChoices(
        [(f"{_ENDPOINT}{endpoint.name}", endpoint.name) for endpoint in endpoints],
        [(f"{_MODEL}{model.name}@{model.version}", f"{model.name}@{model.version}") for model in models],
        list(judges.order_by(F("pk").desc())[:MAX_JUDGES]),
    )


def score_trajectory(*, project: Project, trajectory: Trajectory, scorer: str) -> TrajectoryReward:
    """scorer: `endpoint:NAME`, or `model:NAME@VERSION`. Raises NotFound for one that the project has not, DomainError
    where the model cannot be served, RewardServiceError."""
    if scorer.startswith(_ENDPOINT):
        endpoint = endpoint_of(project, scorer.removeprefix(_ENDPOINT))
        body = {"inputs": [{"trajectory_id": str(trajectory.pk)}]}
        reply = remote.ask(endpoint, "score", body, retries=remote.ONCE, timeout=_TIMEOUT)
        name = f"{endpoint.name}, revision {reply['version']}"
        return _trajectory_reward(trajectory, name, reply["results"][0])
    name = scorer.removeprefix(_MODEL)
    model = next((each for each in models_of(project) if f"{each.name}@{each.version}" == name), None)
    if model is None or not scorer.startswith(_MODEL):
        raise NotFound(f"{project} has no {scorer[:100]!r}; choose an endpoint or a model of the list.")
    component = {"name": "model", "type": "reward_model", "model": str(model), "weight": 1.0}
    checked = checked_spec(project=project, spec={"components": [component], "transforms": []})
    (result,) = remote.dry_run(
        project,
        spec=checked.spec.to_builtins(),
        artifacts=checked.artifacts,
        judges={},
        trajectory_ids=[str(trajectory.pk)],
        timeout=_TIMEOUT,
    )
    return _trajectory_reward(trajectory, name, result)


def _trajectory_reward(trajectory: Trajectory, name: str, result: Mapping[str, Any]) -> TrajectoryReward:
    rows = Step.objects.filter(trajectory=trajectory, agent_step__isnull=False).order_by("agent_step")
    acting = list(rows.values_list("index", "speaker"))
    indices = [index for index, _ in acting]
    steps = {indices[step["agent_step"]]: step["reward"] for step in result["steps"] or ()}
    chart = reward_chart(list(steps.items()))
    return TrajectoryReward(
        scorer=name,
        reward=result["reward"],
        raw=result["raw"],
        std=result["std"],
        offset=result["baseline"],
        criteria=result["criteria"] or {},
        components=result["components"] if len(result["components"]) > 1 else {},
        flags=result["flags"],
        steps=steps,
        agents=_by_agent(acting, steps),
        chart=chart,
        running=_running_total(list(steps.values()), result["baseline"], chart.width) if chart else "",
    )


def _by_agent(acting: Sequence[tuple[int, str | None]], steps: Mapping[int, float]) -> dict[str, float]:
    """acting: the index and speaker of each agent step."""
    sums: dict[str, float] = {}
    for index, speaker in acting:
        if speaker is not None and index in steps:
            sums[speaker] = sums.get(speaker, 0.0) + steps[index]
    return sums if len(sums) > 1 else {}


def _running_total(rewards: Sequence[float], offset: float, width: int) -> str:
    """Points of a line, one for each step, between the lowest and the highest value of the running total."""
    totals, total = [], offset
    for reward in rewards:
        total += reward
        totals.append(total)
    low, high = min(totals), max(totals)
    unit = (HIGH - 2) / (high - low) if high > low else 0.0
    across = (width - WIDE) / max(len(totals) - 1, 1)
    return " ".join(
        f"{WIDE / 2 + place * across:.1f},{1 + (high - value) * unit:.1f}"
        for place, value in enumerate(totals)
    )
