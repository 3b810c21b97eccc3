"""Every environment that the installed packages register: recorded, imported, exported and imported again, equal."""

import io
import json
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from pettingzoo import ParallelEnv
from touchstone_client.pettingzoo import RecordParallel, RecordTurns, Unit
from touchstone_client.recording import RecordEpisodes

from apps.accounts.models import Project
from apps.trajectories.attachments import detach_attachments
from apps.trajectories.models import Trajectory
from apps.trajectories.serialization import to_schema
from apps.trajectories.services import import_trajectories
from tests.client.environments import catalogue
from workers import schema

STEPS = 6
_SAMPLE = ("CartPole-v1", "Blackjack-v1", "Taxi-v4", "MiniGrid-Empty-5x5-v0", "BabyAI-GoToRedBall-v0")
_TEAM_SAMPLE = ("mpe2.simple_speaker_listener_v4", "mpe2.simple_spread_v3", "pettingzoo.classic.rps_v2")


@pytest.fixture(autouse=True)
def _warnings_of_environments() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def play(name: str, unit: Unit = "team") -> list[dict[str, Any]]:
    """Episodes of random actions, at most STEPS of each agent."""
    found: list[dict[str, Any]] = []
    if name in catalogue.FAILING:
        pytest.skip(f"{name} needs {catalogue.FAILING[name]}.")
    try:
        env = catalogue.start(name)
    except Exception as error:
        why = catalogue.reason(error)
        if why is None:
            raise
        pytest.skip(f"{name} needs {why}.")
    if isinstance(env, gymnasium.Env):
        record: Any = RecordEpisodes(env, found.append)
        record.reset(seed=3)
        record.action_space.seed(3)
        for _ in range(STEPS):
            if any(record.step(record.action_space.sample())[2:4]):
                break
    elif isinstance(env, ParallelEnv):
        record = RecordParallel(env, found.append, unit=unit)
        record.reset(seed=3)
        for _ in range(STEPS):
            if record.agents:
                record.step({agent: record.action_space(agent).sample() for agent in record.agents})
    else:
        record = RecordTurns(env, found.append, unit=unit)
        record.reset(seed=3)
        for _ in range(STEPS * len(record.agents)):
            if record.agents:
                record.step(_legal(record))
    record.close()
    return found


def _legal(env: Any) -> Any:
    """An action of the agent whose turn it is; None of one that has ended."""
    observation, _, terminated, truncated, info = env.last()
    if terminated or truncated:
        return None
    mask = observation.get("action_mask") if isinstance(observation, dict) else None
    mask = info.get("action_mask", mask)
    space = env.action_space(env.agent_selection)
    return space.sample() if mask is None else int(np.flatnonzero(mask)[0])


def stored(project: Project, documents: list[Any], format: str) -> list[schema.Trajectory]:
    lines = "\n".join(json.dumps(document) for document in documents).encode()
    known = set(Trajectory.objects.values_list("pk", flat=True))
    report = import_trajectories(project=project, stream=io.BytesIO(lines), by=None, format=format)
    assert not report.rejected, report
    rows = Trajectory.objects.exclude(pk__in=known).order_by("pk")
    return [to_schema(row, list(row.steps.order_by("index"))) for row in rows]


def check(project: Project, episodes: list[dict[str, Any]]) -> None:
    read = stored(project, episodes, "gymnasium")
    assert len(read) == len(episodes)
    for episode, trajectory in zip(episodes, read, strict=True):
        _check_numbers(episode, trajectory)
        document = json.loads(json.dumps(schema.to_atif(trajectory)))
        same = schema.from_atif(document)
        assert same == trajectory and same.content_hash == trajectory.content_hash
    Trajectory.objects.all().delete()
    exported = [schema.to_atif(trajectory) for trajectory in read]
    again = stored(project, exported, "atif")
    assert [each.content_hash for each in again] == [each.content_hash for each in read]


def _check_numbers(episode: dict[str, Any], trajectory: schema.Trajectory) -> None:
    """What was recorded is all there: as many numbers in each step as in the document."""
    parts = episode.get("parts") or {trajectory.agent: episode}
    for agent, part in parts.items():
        steps = [
            step
            for step in trajectory.steps
            if step.source == "agent" and ("parts" not in episode or step.speaker == agent)
        ]
        assert len(steps) == len(part["actions"])
        assert len(part["observations"]) == len(part["actions"]) + 1  # the last one is kept
        assert not any(len(row) > 20_000 for row in part["observations"])  # pictures are none of them
        for step, seen, done in zip(steps, part["observations"], part["actions"], strict=False):
            assert list(step.features or ())[: len(seen) + len(done)] == seen + done
    assert detach_attachments(trajectory)[1] == []  # pictures are stored already


@pytest.mark.django_db
@pytest.mark.parametrize("name", [name for name in _SAMPLE if name in catalogue.gymnasium_names()])
def test_environments_of_one_agent(project: Project, name: str) -> None:
    check(project, play(name))


@pytest.mark.django_db
@pytest.mark.parametrize("unit", ["agents", "team"])
@pytest.mark.parametrize("name", [name for name in _TEAM_SAMPLE if name in catalogue.pettingzoo_names()])
def test_environments_of_several_agents(project: Project, name: str, unit: Unit) -> None:
    check(project, play(name, unit))


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("name", catalogue.gymnasium_names())
def test_every_environment_of_gymnasium(project: Project, name: str) -> None:
    check(project, play(name))


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("unit", ["agents", "team"])
@pytest.mark.parametrize("name", catalogue.pettingzoo_names())
def test_every_environment_of_pettingzoo(project: Project, name: str, unit: Unit) -> None:
    check(project, play(name, unit))
