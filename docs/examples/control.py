"""A control task without a written reward: learnt from comparisons of clips, and solved by a stock agent.

python -m docs.examples.control --url http://127.0.0.1:8000 --endpoint pendulum --key tsk_... [--by steps|trajectories]

Christiano et al. (2017), "Deep Reinforcement Learning from Human Preferences": an annotator sees two clips of a
pendulum and says which is better; a model of the numbers alone learns what each step is worth, so that its sums explain
what was said. A stock SAC of stable-baselines3 then swings the pendulum up for that reward. The environment's own
reward decides what the scripted annotator says, is measured by, and goes nowhere else.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, SupportsFloat

import gymnasium
import numpy as np
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from touchstone_client import RewardClient
from touchstone_client.gym import RewardWrapper, flat_row

from docs.examples.command_line import argument_parser
from docs.examples.people import FeedbackLoop

ENVIRONMENT = "Pendulum-v1"
CLIP = 15  # steps
COMPARISONS = 600
STEPS = 6000
EVERY = 1000  # steps between measurements
EPISODES = 10  # of a measurement
RECIPE = {
    "objective": "bradley_terry",
    "backbone": "features",
    "layers": 0,  # a step is worth what it is, whatever went before
    "aggregation": "sum",
    "width": 64,
    "ensemble": 3,
    "dropout": 0.0,
}
By = Literal["steps", "trajectories"]
_TASKS = 30  # names that comparisons are divided among, so that some can be held out
_SOFT = 5.0  # of true reward: the difference of two clips of which one pair in four is judged wrongly


@dataclass
class Clip:
    """rows: observation and action of each step, as the model reads them. reward: the true one, summed."""

    rows: list[list[float]]
    reward: float


@dataclass
class Solved:
    """returns: by steps, the mean true return of an episode; steps 0 is before it learnt anything."""

    returns: dict[int, float] = field(default_factory=dict)


def clips(seed: int) -> Iterator[Clip]:
    """Of a pendulum that is pushed to and fro by chance, from wherever that has brought it."""
    env, dice = gymnasium.make(ENVIRONMENT), random.Random(seed)
    push = np.zeros(1, dtype=np.float32)
    for number in range(1_000_000):
        observation, _ = env.reset(seed=1_000_000 * seed + number)
        rows, total, lead = [], 0.0, dice.randrange(60)
        for step in range(lead + CLIP):
            if step % 5 == 0:
                push = np.array([dice.uniform(-2.0, 2.0)], dtype=np.float32)
            row = flat_row(env, observation, push)
            observation, reward, *_ = env.step(push)
            if step >= lead:
                rows.append(row)
                total += float(reward)
        yield Clip(rows, total)


def comparisons(seed: int, count: int = COMPARISONS) -> Iterator[dict[str, Any]]:
    """Which of two clips is better; the closer they are, the more often by mistake."""
    found, dice = clips(seed), random.Random(seed)
    for number in range(count):
        a, b = next(found), next(found)
        is_a = dice.random() < 1 / (1 + math.exp((b.reward - a.reward) / _SOFT))
        task = {"id": f"{ENVIRONMENT} {seed} {number % _TASKS}"}
        yield {
            "task": task,
            "a": {"trajectory": _trajectory(a)},
            "b": {"trajectory": _trajectory(b)},
            "choice": "a" if is_a else "b",
            "annotator": "sim-watcher",
            "origin": "simulated",
        }


def _trajectory(clip: Clip) -> dict[str, Any]:
    """ATIF, whose steps hold numbers under `extra`."""
    steps = [
        {"step_id": number, "source": "agent", "message": "", "extra": {"features": row}}
        for number, row in enumerate(clip.rows, 1)
    ]
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "chance", "version": "1"}, "steps": steps}


class AtTheEnd(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One reward an episode, when it is over: the sum of what its steps are worth."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self._sum = 0.0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._sum += float(reward)
        over = terminated or truncated
        return observation, self._sum if over else 0.0, terminated, truncated, info


def solve(client: RewardClient | None, *, seed: int, steps: int = STEPS, by: By = "steps") -> Solved:
    """A stock SAC, the endpoint its only reward; without one, the environment's own, for comparison.

    by: a reward for each step, or their sum at the end. Raises RewardServiceError where the endpoint gives none.
    """
    torch.manual_seed(seed)
    env: gymnasium.Env[Any, Any] = gymnasium.make(ENVIRONMENT)
    if client is not None:
        # An endpoint's rewards have the spread 1 over whole clips; SAC is at home where that of a step is about 1.
        env = gymnasium.wrappers.TransformReward(
            RewardWrapper(env, client), lambda reward: CLIP * float(reward)
        )
    if by == "trajectories":
        env = AtTheEnd(env)
    agent = SAC("MlpPolicy", env, seed=seed, device="cpu", learning_rate=1e-3)
    solved = Solved({0: true_return(agent)})
    agent.learn(steps, callback=_Measured(solved))
    return solved


def true_return(agent: BaseAlgorithm) -> float:
    """Over EPISODES episodes, by the environment's own reward; about -150 is solved, -1200 is chance."""
    env, total = gymnasium.make(ENVIRONMENT), 0.0
    for episode in range(EPISODES):
        observation, _ = env.reset(seed=10_000 + episode)
        ended = False
        while not ended:
            action, _ = agent.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            ended = terminated or truncated
    return total / EPISODES


class _Measured(BaseCallback):
    def __init__(self, solved: Solved) -> None:
        super().__init__()
        self._solved = solved

    def _on_step(self) -> bool:
        if self.num_timesteps % EVERY == 0:
            assert isinstance(self.model, SAC)
            self._solved.returns[self.num_timesteps] = true_return(self.model)
        return True


def main() -> None:
    parser = argument_parser(__doc__, seed=0)
    parser.add_argument("--project", default="sample")
    parser.add_argument("--by", choices=("steps", "trajectories"), default="steps")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    torch.set_num_threads(1)  # it is too small for more
    feedback_loop = FeedbackLoop(
        options.url, options.project, options.endpoint, options.key, own=(), recipe=RECIPE
    )
    print(f"{feedback_loop.submit(list(comparisons(options.seed)))} comparisons of clips; training ...")
    print(f"{feedback_loop.retrain()} is deployed on {options.endpoint}")
    with RewardClient(options.url, options.endpoint, options.key, run=f"control-{options.seed}") as client:
        solved = solve(client, seed=options.seed, steps=options.steps, by=options.by)
        for steps, mean in solved.returns.items():
            print(f"{steps:6} steps: true return {mean:8.1f}")


if __name__ == "__main__":
    main()
