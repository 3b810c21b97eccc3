"""PettingZoo environments that record an episode as one trajectory of the team, or each agent's part as one.

`RecordParallel(env, sink, unit="team")`. A team's trajectory has the steps of all its agents in the order of their
turns, each with its agent as speaker: what people compare is what the team did. Trajectories of agents that belong to
one episode share `episode` and list `agents`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Literal
from uuid import uuid4

import numpy as np
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import BaseParallelWrapper, BaseWrapper

from touchstone_client.recording import Episode, Outbox, Recorder, Sink, clip_of

Unit = Literal["agents", "team"]
Message = Callable[[Any, str, Any], str | None]


def mpe_message(env: Any, agent: str, action: Any) -> str | None:
    """What an agent of a multi-agent particle environment (MPE) with discrete actions tells the others by an action;
    None for agents that move only."""
    world = env.unwrapped.world
    speaker = next(known for known in world.agents if known.name == agent)
    if speaker.silent or np.ndim(action) > 0:
        return None
    moves = 2 * world.dim_p + 1 if speaker.movable else 1
    return f"symbol {int(action) // moves}"


class _EpisodeRecorder:
    """The recorders of an episode's agents. about: of each episode."""

    def __init__(
        self,
        env: Any,
        sink: Sink,
        *,
        unit: Unit,
        task: str | None,
        agent: str | None,
        agent_version: str | None,
        objectives: Sequence[str] | None,
        weights: Sequence[float] | None,
        message: Message | None,
        clip: int | None,
    ) -> None:
        if unit not in ("agents", "team"):
            raise ValueError(f"unit is 'agents' or 'team', not {unit!r}.")
        if clip is not None and env.render_mode != "rgb_array":
            raise ValueError(
                f"clip needs an environment made with render_mode='rgb_array'; its render_mode is {env.render_mode!r}."
            )
        self._env, self._outbox, self._unit = env, Outbox(sink), unit
        self._task, self._agent, self._version = task, agent, agent_version
        self._objectives, self._weights, self._message, self._clip = objectives, weights, message, clip
        self._run, self._numbers = uuid4().hex[:12], count(1)
        self._recorders: dict[str, Recorder] = {}
        self._turns: list[list[str]] = []
        self._last: dict[str, Any] = {}
        self._ends: dict[str, dict[str, bool]] = {}
        self._frames: list[Any] = []
        self.seed: int | None = None

    @property
    def is_started(self) -> bool:
        return bool(self._turns)

    def act(self, acting: Mapping[str, tuple[Any, Any]]) -> None:
        """By agent, an observation and the action taken then, all in one turn."""
        if self._clip is not None and len(self._turns) % self._clip == 0:
            self._frames.append(self._env.render())
        self._turns.append(list(acting))
        for agent, (observation, action) in acting.items():
            if agent not in self._recorders:
                self._recorders[agent] = Recorder(
                    self._env.observation_space(agent),
                    self._env.action_space(agent),
                    self._objectives,
                    self._weights,
                )
            message = None if self._message is None else self._message(self._env, agent, action)
            self._recorders[agent].act(observation, action, message)

    def see(self, observations: Mapping[str, Any]) -> None:
        """What agents observe now: the last one of each is kept."""
        self._last.update(observations)

    def end(self, terminations: Mapping[str, Any], truncations: Mapping[str, Any]) -> None:
        for agent in terminations:
            how = {"terminated": bool(terminations[agent]), "truncated": bool(truncations.get(agent, False))}
            if any(how.values()):
                self._ends.setdefault(agent, how)

    def reward(self, rewards: Mapping[str, Any]) -> None:
        """Each agent's of what it did last; what is paid before it has done anything is not its doing."""
        for agent, reward in rewards.items():
            if agent in self._recorders:
                self._recorders[agent].reward(reward)

    def emit(self, *, finished: bool) -> None:
        recorders, turns, last, ends, frames = (
            self._recorders,
            self._turns,
            self._last,
            self._ends,
            self._frames,
        )
        self._recorders, self._turns, self._last, self._ends, self._frames = {}, [], {}, {}, []
        self._outbox.send()
        if not recorders:
            return
        parts = {
            agent: recorder.episode(last.get(agent), **ends.get(agent, {}))
            for agent, recorder in recorders.items()
        }
        rate = self._env.metadata.get("render_fps")
        about = {
            "episode": f"{self._run}-{next(self._numbers)}",
            "env_id": _name(self._env),
            "seed": self.seed,
            "finished": finished,
            "clip": clip_of(frames, rate, self._clip or 1) if frames else None,
        }
        episodes = self._team(parts, turns, about) if self._unit == "team" else self._agents(parts, about)
        for episode in episodes:
            self._outbox.put({name: value for name, value in episode.items() if value is not None})

    def _team(
        self, parts: dict[str, Episode], turns: list[list[str]], about: dict[str, Any]
    ) -> list[Episode]:
        policy = {"name": self._agent or "", "version": self._version or ""}
        return [
            {
                "id": about["episode"],
                "task": self._task,
                "agent": policy if any(policy.values()) else None,
                "parts": parts,
                "turns": turns,
                **about,
            }
        ]

    def _agents(self, parts: dict[str, Episode], about: dict[str, Any]) -> list[Episode]:
        # What agents see and do may differ in kind: each is compared with its like.
        start = about["env_id"] if self.seed is None else f"{about['env_id']} {self.seed}"
        return [
            {
                "id": f"{about['episode']}/{agent}",
                "task": self._task or f"{start} {agent}",
                "agent": {"name": agent, "version": self._version or ""},
                "agents": sorted(parts),
                **part,
                **about,
            }
            for agent, part in parts.items()
        ]


class RecordParallel(BaseParallelWrapper[str, Any, Any]):
    """A parallel environment whose episodes go to `sink` when the last of its agents ends, or it is reset or closed.

    unit: `agents`, a trajectory for each agent; or `team`, one of all of them. task: the name under which episodes
    are compared, by default the environment's, its seed and, of single agents, the agent's name. agent: of the policy,
    with its version. objectives, weights: names and weights of rewards that are several numbers. message: what an agent
    tells the others by an action, from (env, agent, action), such as `mpe_message`: text of its step. clip: keep every
    so many frames of an environment whose render mode is `rgb_array`.
    """

    def __init__(
        self,
        env: ParallelEnv[str, Any, Any],
        sink: Sink,
        *,
        unit: Unit = "agents",
        task: str | None = None,
        agent: str | None = None,
        agent_version: str | None = None,
        objectives: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
        message: Message | None = None,
        clip: int | None = None,
    ) -> None:
        super().__init__(env)
        self._episode = _EpisodeRecorder(
            env,
            sink,
            unit=unit,
            task=task,
            agent=agent,
            agent_version=agent_version,
            objectives=objectives,
            weights=weights,
            message=message,
            clip=clip,
        )
        self._seen: dict[str, Any] = {}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._episode.emit(finished=False)
        self._seen, infos = self.env.reset(seed=seed, options=options)
        self._episode.seed = seed
        return self._seen, infos

    def step(self, actions: dict[str, Any]) -> Any:
        self._episode.act({agent: (self._seen[agent], action) for agent, action in actions.items()})
        self._seen, rewards, terminations, truncations, infos = self.env.step(actions)
        self._episode.see(self._seen)
        self._episode.reward(rewards)
        self._episode.end(terminations, truncations)
        if not self.env.agents:
            self._episode.emit(finished=True)
        return self._seen, rewards, terminations, truncations, infos

    def close(self) -> None:
        self._episode.emit(finished=False)
        super().close()


class RecordTurns(BaseWrapper[str, Any, Any]):
    """The same of an environment whose agents take turns (AEC)."""

    def __init__(
        self,
        env: AECEnv[str, Any, Any],
        sink: Sink,
        *,
        unit: Unit = "agents",
        task: str | None = None,
        agent: str | None = None,
        agent_version: str | None = None,
        objectives: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
        message: Message | None = None,
        clip: int | None = None,
    ) -> None:
        super().__init__(env)
        self._episode = _EpisodeRecorder(
            env,
            sink,
            unit=unit,
            task=task,
            agent=agent,
            agent_version=agent_version,
            objectives=objectives,
            weights=weights,
            message=message,
            clip=clip,
        )

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        if self._episode.is_started:
            self._episode.see(self._observed())
        self._episode.emit(finished=False)
        super().reset(seed=seed, options=options)
        self._episode.seed = seed

    def step(self, action: Any) -> None:
        agent = self.env.agent_selection
        acts = not (self.env.terminations[agent] or self.env.truncations[agent])
        if acts:
            self._episode.act({agent: (self.env.observe(agent), action)})
        super().step(action)
        if acts:
            self._episode.reward(self.env.rewards)
            self._episode.end(self.env.terminations, self.env.truncations)
            self._episode.see(self._observed(only_ended=True))
        if not self.env.agents:
            self._episode.emit(finished=True)

    def _observed(self, *, only_ended: bool = False) -> dict[str, Any]:
        return {
            agent: self.env.observe(agent)
            for agent in self.env.agents
            if not only_ended or self.env.terminations[agent] or self.env.truncations[agent]
        }

    def close(self) -> None:
        if self._episode.is_started:
            self._episode.see(self._observed())
        self._episode.emit(finished=False)
        super().close()


def _name(env: Any) -> str:
    return str(env.metadata.get("name") or type(env.unwrapped).__name__)
