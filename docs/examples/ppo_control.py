"""A stock PPO of stable-baselines3 on the pendulum of control.py, with the same learnt reward.

python -m docs.examples.control --url http://127.0.0.1:8000 --endpoint pendulum --key tsk_... --steps 0
python -m docs.examples.ppo_control --url http://127.0.0.1:8000 --endpoint pendulum --key tsk_...

The first command has the reward learnt from comparisons. PPO needs more steps than SAC, which can read old ones again,
so sixteen pendulums are stepped together, and their steps are scored in one request.
"""

from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from touchstone_client import RewardClient
from touchstone_client.gym import flat

from docs.examples.command_line import argument_parser
from docs.examples.control import CLIP, ENVIRONMENT, Solved, true_return

ENVIRONMENTS = 16
STEPS = 64_000
EVERY = 8_000  # steps between measurements
_LONG = 128  # steps of each environment between two updates


class EndpointRewards(VecEnvWrapper):
    """Each step's reward is the endpoint's for its numbers, observation and action. One step is sent at a time: the
    model of control.py has no layers between steps, so that a step is worth the same whatever went before."""

    def __init__(self, venv: VecEnv, client: RewardClient) -> None:
        super().__init__(venv)
        self._client = client

    def reset(self) -> Any:
        self._observations = self.venv.reset()
        return self._observations

    def step_async(self, actions: np.ndarray) -> None:
        spaces = ((self.observation_space, self._observations), (self.action_space, actions))
        parts = [[flat(space, value) for value in values] for space, values in spaces]
        self._items = [{"features": [seen + done]} for seen, done in zip(*parts, strict=True)]
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Raises RewardServiceError where the endpoint gives no rewards."""
        self._observations, own, ended, infos = self.venv.step_wait()
        results = self._client.score(self._items, uncertainty=False).results
        # As control.py scales it: the endpoint's rewards have the spread 1 over whole clips.
        rewards = np.array([CLIP * result.steps[-1] for result in results if result.steps], dtype=np.float32)
        assert rewards.shape == own.shape
        return self._observations, rewards, ended, infos


def solve(client: RewardClient | None, *, seed: int, steps: int = STEPS) -> Solved:
    """A stock PPO, the endpoint its only reward; without one, the environment's own, for comparison."""
    torch.manual_seed(seed)
    env: VecEnv = make_vec_env(lambda: gymnasium.make(ENVIRONMENT), ENVIRONMENTS, seed=seed)
    if client is not None:
        env = EndpointRewards(env, client)
    agent = PPO(
        "MlpPolicy",
        env,
        seed=seed,
        device="cpu",
        n_steps=_LONG,
        batch_size=256,
        learning_rate=1e-3,
        gamma=0.9,
        use_sde=True,
        sde_sample_freq=4,
    )
    solved = Solved({0: true_return(agent)})
    agent.learn(steps, callback=_Measured(solved))
    return solved


class _Measured(BaseCallback):
    def __init__(self, solved: Solved) -> None:
        super().__init__()
        self._solved = solved

    def _on_step(self) -> bool:
        if self.num_timesteps % EVERY == 0:
            assert isinstance(self.model, PPO)
            self._solved.returns[self.num_timesteps] = true_return(self.model)
        return True


def main() -> None:
    parser = argument_parser(__doc__, seed=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    torch.set_num_threads(1)  # it is too small for more
    run = f"ppo-control-{options.seed}"
    with RewardClient(options.url, options.endpoint, options.key, run=run) as client:
        solved = solve(client, seed=options.seed, steps=options.steps)
        for steps, mean in solved.returns.items():
            print(f"{steps:6} steps: true return {mean:8.1f}")


if __name__ == "__main__":
    main()
