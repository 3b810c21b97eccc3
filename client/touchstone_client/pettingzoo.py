"""PettingZoo environments that record: every agent's part in an episode is a separate trajectory."""

from collections.abc import Mapping
from itertools import count
from typing import Any
from uuid import uuid4

from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import BaseParallelWrapper, BaseWrapper

from touchstone_client.gym import flat
from touchstone_client.recording import Outbox, Recorder, Sink


class _AgentRecorders:
    """The recorders of an episode's agents. Trajectories of one episode share `episode` and list `agents`."""

    def __init__(self, env: Any, sink: Sink, task: str | None, agent_version: str | None) -> None:
        self._env, self._outbox, self._task, self._version = env, Outbox(sink), task, agent_version
        self._run, self._numbers = uuid4().hex[:12], count(1)
        self._recorders: dict[str, Recorder] = {}
        self.seed: int | None = None

    def act(self, agent: str, observation: Any, action: Any) -> None:
        recorder = self._recorders.setdefault(agent, Recorder())
        recorder.act(
            flat(self._env.observation_space(agent), observation), flat(self._env.action_space(agent), action)
        )

    def reward(self, rewards: Mapping[str, Any]) -> None:
        """Each agent's of what it did last; what is paid before it has done anything is not its doing."""
        for agent, reward in rewards.items():
            if agent in self._recorders:
                self._recorders[agent].reward(reward)

    def emit(self, *, finished: bool) -> None:
        recorders, self._recorders = self._recorders, {}
        self._outbox.send()
        if not recorders:
            return
        episode, name = f"{self._run}-{next(self._numbers)}", _name(self._env)
        for agent, recorder in recorders.items():
            self._outbox.put(
                recorder.episode(
                    None,
                    id=f"{episode}/{agent}",
                    env_id=name,
                    # What agents see and do may differ in kind: each is compared with its like.
                    task=self._task
                    or (f"{name} {agent}" if self.seed is None else f"{name} {self.seed} {agent}"),
                    agent={"name": agent, "version": self._version or ""},
                    episode=episode,
                    agents=sorted(recorders),
                    seed=self.seed,
                    finished=finished,
                )
            )


class RecordParallel(BaseParallelWrapper[str, Any, Any]):
    """A parallel environment whose episodes go to `sink`: a trajectory for each agent, when the last of them ends."""

    def __init__(
        self,
        env: ParallelEnv[str, Any, Any],
        sink: Sink,
        *,
        task: str | None = None,
        agent_version: str | None = None,
    ) -> None:
        super().__init__(env)
        self._parts = _AgentRecorders(env, sink, task, agent_version)
        self._seen: dict[str, Any] = {}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._parts.emit(finished=False)
        self._seen, infos = self.env.reset(seed=seed, options=options)
        self._parts.seed = seed
        return self._seen, infos

    def step(self, actions: dict[str, Any]) -> Any:
        for agent, action in actions.items():
            self._parts.act(agent, self._seen[agent], action)
        self._seen, rewards, terminations, truncations, infos = self.env.step(actions)
        self._parts.reward(rewards)
        if not self.env.agents:
            self._parts.emit(finished=True)
        return self._seen, rewards, terminations, truncations, infos

    def close(self) -> None:
        self._parts.emit(finished=False)
        super().close()


class RecordTurns(BaseWrapper[str, Any, Any]):
    """The same of an environment whose agents take turns (AEC)."""

    def __init__(
        self,
        env: AECEnv[str, Any, Any],
        sink: Sink,
        *,
        task: str | None = None,
        agent_version: str | None = None,
    ) -> None:
        super().__init__(env)
        self._parts = _AgentRecorders(env, sink, task, agent_version)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self._parts.emit(finished=False)
        super().reset(seed=seed, options=options)
        self._parts.seed = seed

    def step(self, action: Any) -> None:
        agent = self.env.agent_selection
        acts = not (self.env.terminations[agent] or self.env.truncations[agent])
        if acts:
            self._parts.act(agent, self.env.observe(agent), action)
        super().step(action)
        if acts:
            self._parts.reward(self.env.rewards)
        if not self.env.agents:
            self._parts.emit(finished=True)

    def close(self) -> None:
        self._parts.emit(finished=False)
        super().close()


def _name(env: Any) -> str:
    return str(env.metadata.get("name") or type(env.unwrapped).__name__)
