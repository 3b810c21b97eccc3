"""Environments that are recorded: what was seen and done arrives as trajectories."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from pettingzoo import ParallelEnv
from pettingzoo.utils.conversions import parallel_to_aec
from PIL import Image
from touchstone_client.gym import flat_row
from touchstone_client.pettingzoo import RecordParallel, RecordTurns
from touchstone_client.recording import RecordEpisodes, to_file, to_project

from apps.accounts.models import Project
from apps.accounts.services import create_api_key
from apps.trajectories import formats
from apps.trajectories.attachments import detach_attachments
from apps.trajectories.models import Trajectory
from apps.trajectories.services import import_trajectories
from workers import schema
from workers.errors import InvalidRecord


class Line(gymnasium.Env[Any, Any]):
    """Walk to 3. Pays what `pay` says of where one is."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = gymnasium.spaces.Dict(
        {"at": gymnasium.spaces.Box(-9, 9, (1,)), "door": gymnasium.spaces.Discrete(2)}
    )
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, pay: Callable[[int], Any] = float, render_mode: str | None = None) -> None:
        self.pay, self.render_mode, self.at = pay, render_mode, 0

    def _seen(self) -> dict[str, Any]:
        return {"at": np.array([self.at], dtype=np.float32), "door": int(self.at > 1)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.at = 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.at += int(action) - 1
        return self._seen(), self.pay(self.at), self.at == 3, False, {"is_success": self.at == 3}

    def render(self) -> Any:
        picture = np.zeros((40, 400, 3), dtype=np.uint8)
        picture[:, self.at * 100 : self.at * 100 + 50] = 255
        return picture


def walk(env: gymnasium.Env[Any, Any], *actions: int, seed: int | None = None) -> None:
    env.reset(seed=seed)
    for action in actions:
        env.step(action)


def read(episode: dict[str, Any]) -> schema.Trajectory:
    document = json.loads(json.dumps(episode))
    assert formats.detect(document).name == "gymnasium"
    return formats.FORMATS["gymnasium"].read(document)


def test_an_episode_is_what_was_seen_and_done() -> None:
    found: list[dict[str, Any]] = []
    env = RecordEpisodes(Line(), found.append, agent="walker", agent_version="2")
    walk(env, 2, 0, 2, 2, 2, seed=7)
    walk(env, 2)
    env.close()
    first, second = map(read, found)
    assert [step.reward for step in first.steps] == [1, 0, 1, 2, 3]
    assert (first.reward, first.success, first.task.id) == (7, True, "Line 7")
    assert (first.agent, first.agent_version, first.metadata["finished"]) == ("walker", "2", True)
    # As the reward of a step is asked for with (`RewardWrapper`): a model trained on one reads the other.
    seen = {"at": np.array([2], dtype=np.float32), "door": 1}
    assert list(first.steps[4].features or ()) == flat_row(env, seen, 2)
    assert (second.metadata["finished"], second.success, second.task.id) == (False, None, "Line")
    assert len(second.steps) == 1
    assert first.id != second.id


def test_rewards_of_several_objectives() -> None:
    found: list[dict[str, Any]] = []
    env = RecordEpisodes(
        Line(lambda at: np.array([at, -1.0])), found.append, objectives=["near", "time"], weights=[1, 0.5]
    )
    walk(env, 2, 2, 2)
    (one,) = map(read, found)
    assert [step.metrics["rewards"] for step in one.steps] == [{"near": at, "time": -1.0} for at in (1, 2, 3)]
    assert [step.reward for step in one.steps] == [0.5, 1.5, 2.5]
    found[0].pop("reward_weights")
    one = read(found[0])
    assert (one.reward, one.steps[0].reward) == (None, None)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"reward_names": ["a"]}, "/reward_names"),
        ({"reward_names": ["a", "a"]}, "/reward_names"),
        ({"reward_weights": [1]}, "/reward_weights"),
        ({"reward_weights": "no"}, "/reward_weights"),
        ({"rewards": [[1, 2], [1]]}, "/rewards/1"),
        ({"rewards": [[1, 2], 1]}, "/rewards/1"),
        ({"rewards": [[1, 2]]}, "/rewards"),
        ({"success": "yes"}, "/success"),
        ({"clip": 1}, "/clip"),
    ],
)
def test_what_is_not_an_episode(change: dict[str, Any], pointer: str) -> None:
    episode = {"observations": [[0], [1]], "actions": [[1], [1]], "rewards": [[1, 2], [3, 4]]}
    with pytest.raises(InvalidRecord) as error:
        read(episode | change)
    assert error.value.pointer == pointer


def test_what_could_be_seen_is_a_clip() -> None:
    found: list[dict[str, Any]] = []
    walk(RecordEpisodes(Line(render_mode="rgb_array"), found.append, clip=2), 2, 2, 1, 2)
    (one,) = map(read, found)
    one, (blob,) = detach_attachments(one)
    assert blob.media.media_type == "image/webp"
    picture = Image.open(io.BytesIO(blob.data))
    assert (picture.size, picture.n_frames) == ((320, 32), 3)  # type: ignore[attr-defined]
    assert one.steps[0].source == "environment"
    assert len(one.agent_steps) == 4
    with pytest.raises(ValueError, match="render_mode='rgb_array'"):
        RecordEpisodes(Line(), found.append, clip=1)


def test_to_a_file_and_to_a_project(live_server: Any, project: Project, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    env = RecordEpisodes(Line(), to_file(path))
    walk(env, 2, 2, 2)
    walk(env, 2, 1, 2, 2)
    with path.open("rb") as stream:
        import_trajectories(project=project, stream=stream, by=None)
    key = create_api_key(project=project, scopes=["ingest"], by=None)[1]
    walk(RecordEpisodes(Line(), to_project(live_server.url, "desk", key)), 2, 0, 2, 2, 2)
    rows = Trajectory.objects.order_by("pk").values_list("source_format", "agent_step_count", "success")
    assert list(rows) == [("gymnasium", steps, True) for steps in (3, 4, 5)]


def test_an_episode_that_could_not_be_sent_waits() -> None:
    found: list[dict[str, Any]] = []
    down = True

    def sink(episode: dict[str, Any]) -> None:
        if down:
            raise ConnectionError("nobody there")
        found.append(episode)

    env = RecordEpisodes(Line(), sink)
    env.reset()
    env.step(2)
    env.step(2)
    with pytest.raises(ConnectionError):
        env.step(2)
    with pytest.raises(ConnectionError):
        walk(env, 2, 2, 2)
    down = False
    env.close()
    assert [(len(entry["actions"]), entry["finished"]) for entry in found] == [(3, True), (3, True)]
    assert len({entry["id"] for entry in found}) == 2


class Guessing(ParallelEnv[str, Any, Any]):
    """Two say a number; who says less is paid and leaves after `rounds`, the other one a round later."""

    metadata = {"name": "guessing", "render_modes": []}

    def __init__(self, rounds: int = 2) -> None:
        self.possible_agents = ["anna", "bert"]
        self.rounds, self.render_mode = rounds, None

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Discrete(5)

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        return gymnasium.spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.round = list(self.possible_agents), 0
        return dict.fromkeys(self.agents, 0), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        self.round += 1
        least = min(actions.values())
        rewards = {agent: float(actions[agent] == least) for agent in self.agents}
        ends = {agent: self.round >= self.rounds + (agent == "bert") for agent in self.agents}
        seen = dict.fromkeys(self.agents, self.round)
        infos: dict[str, Any] = {agent: {} for agent in self.agents}
        self.agents = [agent for agent in self.agents if not ends[agent]]
        return seen, rewards, ends, dict.fromkeys(ends, False), infos


def of_both(found: list[dict[str, Any]]) -> None:
    anna, bert = map(read, found)
    assert [step.reward for step in anna.steps] == [1, 0]
    assert [step.reward for step in bert.steps] == [0, 1, 1]
    assert (anna.agent, bert.agent) == ("anna", "bert")
    assert anna.metadata["episode"] == bert.metadata["episode"]
    assert (anna.metadata["agents"], anna.task.id) == (["anna", "bert"], "guessing 3 anna")
    assert list(bert.steps[2].features or ()) == [0, 0, 1, 0, 0, 0, 0, 1]  # saw 2, said 2


def test_agents_that_act_at_once() -> None:
    found: list[dict[str, Any]] = []
    env = RecordParallel(Guessing(), found.append)
    env.reset(seed=3)
    for said in ({"anna": 0, "bert": 1}, {"anna": 2, "bert": 1}, {"bert": 2}):
        env.step(said)
    of_both(found)
    env.reset()
    env.step({"anna": 0, "bert": 1})
    env.close()
    assert [entry["finished"] for entry in found] == [True, True, False, False]


def test_agents_that_take_turns() -> None:
    found: list[dict[str, Any]] = []
    env = RecordTurns(parallel_to_aec(Guessing()), found.append)
    env.reset(seed=3)
    saying = {"anna": iter([0, 2]), "bert": iter([1, 1, 2])}
    for agent in env.agent_iter():
        _, _, terminated, truncated, _ = env.last()
        env.step(None if terminated or truncated else next(saying[agent]))
    of_both(found)
    env.close()
    assert len(found) == 2
