"""A Gymnasium wrapper that takes its rewards from an endpoint: `env = RewardWrapper(env, client)`.

Needs `gymnasium` and numpy, which nothing else here does.
"""

from collections.abc import Callable, Sequence
from typing import Any, SupportsFloat

import gymnasium
from gymnasium.core import ActType, ObsType

from touchstone_client.rewards import RewardClient
from touchstone_client.spaces import SpaceReader, SpaceValue
from touchstone_client.values import Item

Row = Callable[[Any, Any], Sequence[float]]


class RewardWrapper(gymnasium.Wrapper[ObsType, ActType, ObsType, ActType]):
    """Each step's reward is the endpoint's for that agent step.

    row: one step's numbers from (observation before it, action), by default both flattened, one after the other: what
    the model was trained on. The environment's own reward is kept in `info["environment_reward"]`. The endpoint is
    asked once per step, with the whole episode as `session`, so that a step costs its new part only. Texts and pictures
    that are observed are not sent: an environment that has them needs a `row`.
    """

    def __init__(
        self, env: gymnasium.Env[ObsType, ActType], client: RewardClient, *, row: Row | None = None
    ) -> None:
        super().__init__(env)
        self._client = client
        if row is None and (unread := unread_parts(env)):
            raise ValueError(
                f"{' and '.join(unread)} of this environment hold text or pictures, which are not sent for a reward. "
                "Give `row`, which makes the numbers of a step."
            )
        self._row = row or (lambda observation, action: flat_row(env, observation, action))
        self._rows: list[list[float]] = []
        self._observation: Any = None
        self._episode = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        self._observation, info = self.env.reset(seed=seed, options=options)
        self._rows, self._episode = [], self._episode + 1
        return self._observation, info

    def step(self, action: ActType) -> tuple[ObsType, SupportsFloat, bool, bool, dict[str, Any]]:
        """Raises RewardServiceError where the endpoint gives none: there is no reward to go on with."""
        self._rows.append([float(number) for number in self._row(self._observation, action)])
        self._observation, own, terminated, truncated, info = self.env.step(action)
        item: Item = {"features": self._rows, "session": f"{id(self)}-{self._episode}"}
        (result,) = self._client.score([item], uncertainty=False).results
        assert result.steps is not None
        return (
            self._observation,
            result.steps[-1],
            terminated,
            truncated,
            info | {"environment_reward": own, "trajectory_reward": result.reward},
        )


def flat(space: gymnasium.Space[Any], value: Any) -> list[float]:
    """A value of a space as one list of numbers; discrete values are one-hot. Without its texts and pictures; the
    sets of a space follow, each as its count and its rows, as `workers.text.numeric` reads them."""
    return packed(SpaceReader(space).read(value))


def flat_row(env: gymnasium.Env[Any, Any], observation: Any, action: Any) -> list[float]:
    """Observation and action as one list of numbers: a step of a recorded episode."""
    spaces = zip((env.observation_space, env.action_space), (observation, action), strict=True)
    return packed(*(SpaceReader(space).read(value) for space, value in spaces))


def unread_parts(env: gymnasium.Env[Any, Any]) -> list[str]:
    """Which of its observations and actions hold text or pictures."""
    spaces = {"observations": env.observation_space, "actions": env.action_space}
    return [name for name, space in spaces.items() if SpaceReader(space).has_text_or_pictures]


def packed(*values: SpaceValue) -> list[float]:
    """All numbers, then all sets: of each the count of its rows, and these."""
    row = [number for value in values for number in value.numbers]
    for value in values:
        for rows in value.sets.values():
            row += [float(len(rows)), *(number for element in rows for number in element)]
    return row
