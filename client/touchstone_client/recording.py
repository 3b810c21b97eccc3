"""Episodes of Gymnasium environments as trajectories: `env = RecordEpisodes(env, to_file("runs.jsonl"))`.

Needs `gymnasium` and numpy; for clips and pictures `pillow`. What is recorded is the format `gymnasium`: numbers of
what was seen and done (as `gym.RewardWrapper` sends them for a reward), texts and pictures that were observed, the
environment's rewards, and, of environments that render to pictures, a clip.
"""

import base64
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, SupportsFloat
from uuid import uuid4

import gymnasium
import numpy as np
from gymnasium.core import ActType, ObsType

from touchstone_client.spaces import SpaceReader, SpaceValue
from touchstone_client.trajectories import ingest

Episode = dict[str, Any]
Sink = Callable[[Episode], object]
_LONGEST_SIDE = 320  # pixels of a clip's frame


def to_file(path: str | os.PathLike[str]) -> Sink:
    """Each episode a line at the end of a file, which `import_trajectories --follow` reads as it grows."""
    target = Path(path)

    def write(episode: Episode) -> None:
        line = (json.dumps(episode, allow_nan=False) + "\n").encode()
        with target.open("ab") as file:
            file.write(line)

    return write


def to_project(url: str, project: str, key: str, **options: Any) -> Sink:
    """Each episode to a project as it ends, with the options of `ingest`. Raises RewardServiceError."""
    return lambda episode: ingest(url, project, key, [episode], format="gymnasium", **options)


class Outbox:
    """Passes episodes on in order. One for which `sink` raised waits, and is sent before the next."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._waiting: list[Episode] = []

    def put(self, episode: Episode) -> None:
        self._waiting.append(episode)
        self.send()

    def send(self) -> None:
        while self._waiting:
            self._sink(self._waiting[0])
            del self._waiting[0]


_MOST_NAMES = 512  # of numbers of a step that are named in each episode


class Recorder:
    """One episode of one agent. objectives, weights: names and weights of several rewards."""

    def __init__(
        self,
        observations: gymnasium.Space[Any],
        actions: gymnasium.Space[Any],
        objectives: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        self._readers = SpaceReader(observations, "observation"), SpaceReader(actions, "action")
        self.objectives, self.weights = objectives, weights
        self.observations: list[SpaceValue] = []
        self.actions: list[SpaceValue] = []
        self.rewards: list[Any] = []
        self.messages: list[str | None] = []

    def act(self, observation: Any, action: Any, message: str | None = None) -> None:
        """An observation, the action taken then, and what the agent told others by it."""
        seen, done = self._readers
        self.observations.append(seen.read(observation))
        self.actions.append(done.read(action))
        self.messages.append(message)
        self.rewards.append(0.0)

    def reward(self, value: Any) -> None:
        """Of the last action; rewards of several calls are added."""
        given = np.asarray(value, dtype=float)
        self.rewards[-1] = (np.asarray(self.rewards[-1]) + given).tolist()

    def episode(self, last: Any, **about: Any) -> Episode:
        """last: the observation after the last action, or None."""
        width = next((len(reward) for reward in self.rewards if isinstance(reward, list)), None)
        rewards = self.rewards
        if width is not None:  # of several objectives; a plain number is a step without a reward
            rewards = [reward if isinstance(reward, list) else [reward] * width for reward in rewards]
        seen = self.observations + ([self._readers[0].read(last)] if last is not None else [])
        found: Episode = {
            "observations": [value.numbers for value in seen],
            "actions": [value.numbers for value in self.actions],
            "rewards": rewards,
            "observation_parts": _parts(seen),
            "action_parts": _parts(self.actions),
            "number_names": self._names(),
            "sets": self._sets(),
            "messages": self.messages if any(self.messages) else None,
        } | about
        if width is not None and self.objectives is not None:
            found["reward_names"] = list(self.objectives)
        if width is not None and self.weights is not None:
            found["reward_weights"] = list(self.weights)
        return {name: value for name, value in found.items() if value is not None}

    def _names(self) -> list[str] | None:
        names = [name for reader in self._readers for name in reader.names]
        return names if 0 < len(names) <= _MOST_NAMES else None

    def _sets(self) -> list[dict[str, Any]] | None:
        sets = [item for reader in self._readers for item in reader.sets.items()]
        return [{"name": name, "numbers": list(numbers)} for name, numbers in sets] or None


def _parts(values: Sequence[SpaceValue]) -> list[dict[str, Any]] | None:
    """What is no number, by step; None where there is nothing of it."""
    parts = [value.parts for value in values]
    return parts if any(parts) else None


class RecordEpisodes(gymnasium.Wrapper[ObsType, ActType, ObsType, ActType]):
    """Passes every episode of a Gymnasium environment to `sink` when it ends, is reset or closed.

    What `sink` raises, the environment raises; the episode waits, and is passed on again with the next one, or by
    `close`.

    task: the name under which episodes are compared; by default the environment's id, and its seed where reset with
    one. agent: of the policy, with its version. clip: keep every so many frames of an environment whose render mode is
    `rgb_array`, as an animated WebP of at most 320 pixels; None for none. objectives, weights: names and
    weights of a reward that is several numbers.
    """

    def __init__(
        self,
        env: gymnasium.Env[ObsType, ActType],
        sink: Sink,
        *,
        task: str | None = None,
        agent: str | None = None,
        agent_version: str | None = None,
        clip: int | None = None,
        objectives: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(env)
        if clip is not None and env.render_mode != "rgb_array":
            raise ValueError(
                f"clip needs an environment made with render_mode='rgb_array'; its render_mode is {env.render_mode!r}."
            )
        self._outbox, self._clip = Outbox(sink), clip
        self._about = {"task": task, "agent": _agent(agent, agent_version), **dict(metadata or {})}
        self._new = lambda: Recorder(env.observation_space, env.action_space, objectives, weights)
        self._recorder, self._frames = self._new(), [np.zeros(0)][:0]
        self._observation: Any = None
        self._seed: int | None = None
        self._run, self._numbers = uuid4().hex[:12], count(1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        self._emit(finished=False)
        self._observation, info = self.env.reset(seed=seed, options=options)
        self._seed = seed
        self._look()
        return self._observation, info

    def step(self, action: ActType) -> tuple[ObsType, SupportsFloat, bool, bool, dict[str, Any]]:
        self._recorder.act(self._observation, action)
        self._observation, reward, terminated, truncated, info = self.env.step(action)
        self._recorder.reward(reward)
        self._look()
        if terminated or truncated:
            self._emit(finished=True, terminated=bool(terminated), truncated=bool(truncated), info=info)
        return self._observation, reward, terminated, truncated, info

    def close(self) -> None:
        self._emit(finished=False)
        self._outbox.send()
        super().close()

    def _look(self) -> None:
        if self._clip is not None and len(self._recorder.actions) % self._clip == 0:
            frame = self.env.render()
            assert isinstance(frame, np.ndarray)
            self._frames.append(frame)

    def _emit(self, *, finished: bool, info: Mapping[str, Any] | None = None, **how: bool) -> None:
        recorder, frames = self._recorder, self._frames
        self._recorder, self._frames = self._new(), []
        if not recorder.actions:
            return
        spec = self.env.spec
        self._outbox.put(
            recorder.episode(
                self._observation,
                id=f"{self._run}-{next(self._numbers)}",
                env_id=spec.id if spec is not None else type(self.env.unwrapped).__name__,
                seed=self._seed,
                success=_success(info or {}),
                finished=finished,
                clip=clip_of(frames, self.env.metadata.get("render_fps"), self._clip or 1)
                if frames
                else None,
                **self._about,
                **how,
            )
        )


def _agent(name: str | None, version: str | None) -> dict[str, str] | None:
    return {"name": name or "", "version": version or ""} if name or version else None


def _success(info: Mapping[str, Any]) -> bool | None:
    """Of what environments call it."""
    for name in ("is_success", "success"):
        if isinstance(info.get(name), bool | np.bool_ | int | float):
            return bool(info[name])
    return None


def clip_of(frames: Sequence[Any], per_second: float | None, every: int = 1) -> str:
    """Frames (height, width, 3), bytes, as a data URL of an animated WebP in the environment's time."""
    from PIL import Image

    pictures = []
    for frame in frames:
        picture = Image.fromarray(np.asarray(frame, dtype=np.uint8))
        picture.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
        pictures.append(picture)
    out = io.BytesIO()
    pictures[0].save(
        out,
        "WEBP",
        save_all=True,
        append_images=pictures[1:],
        duration=max(int(1000 * every / (per_second or 30)), 20),
        loop=0,
        quality=70,
    )
    return "data:image/webp;base64," + base64.b64encode(out.getvalue()).decode()
