"""Policies that are trained on a generated reward program, against those trained on the hand-written reward.

The language model is scripted, so that the run can be repeated: its first draft crashes, its second pays for standing
still. The trial must find the first, and the critic the second. The critic's script knows no answer: it compares the
values that it is shown. Pendulum-v1 and CartPole-v1 of gymnasium; the policy is linear in a few features and learnt by
the cross-entropy method, from returns alone. Both policies are judged by the hand-written reward of fresh episodes.

    python -m benchmarks.text2reward [--json] [--quick] [--seeds N]
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from benchmarks.output import put_out
from workers.programs.drafting import Attempt, TrialTrajectory, draft_program
from workers.programs.plain_items import plain_item
from workers.programs.sandbox import ProgramResult, run_program
from workers.programs.source import read_program
from workers.prompts.templates import Prompt
from workers.schema import Features, ScoreInput

T = TypeVar("T")
Row = tuple[float, ...]
Floats = NDArray[np.float64]
CRASHES = """
def reward(trajectory):
    rows = [step["features"] for step in trajectory["steps"]]
    return sum(row["angle"] for row in rows) / len(rows)
"""
STANDING_STILL = """
def reward(trajectory):
    rows = [step["features"] for step in trajectory["steps"]]
    return -sum(row[{speed}] ** 2 for row in rows)
"""
PENDULUM = """
def reward(trajectory):
    total = 0.0
    for step in trajectory["steps"]:
        cosine, sine, speed, torque = step["features"]
        total += 1.0 + cosine
        if cosine > 0.8:
            total -= 0.05 * abs(speed)
    return total / 200
"""
CARTPOLE = """
def reward(trajectory):
    total = 0.0
    for step in trajectory["steps"]:
        place, speed, angle, turning, action = step["features"]
        total += 1.0 - abs(angle) / 0.21 / 4 - abs(place) / 2.4 / 4
    return total / 500
"""


@dataclass(frozen=True)
class World:
    """features: of an observation, what the policy is linear in. act: the action of its output. speed: the place of a
    speed in a row, which the second draft pays to keep low. idle: an action that moves nothing, or little."""

    name: str
    task: str
    features: Callable[[Floats], list[float]]
    act: Callable[[float], Any]
    speed: int
    idle: Callable[[Floats, int], float]
    good: str
    steps: int


def _pendulum(seen: Floats) -> list[float]:
    cosine, sine, speed = (float(each) for each in seen)
    energy = speed**2 / 2 + 15 * (cosine - 1)
    up = float(cosine > 0.8)
    return [speed * energy * (1 - up), sine * up, speed * up, math.copysign(1 - up, speed)]


WORLDS = (
    World(
        "Pendulum-v1",
        "Swing the pendulum up and keep it upright with little torque. A row: cosine and sine of the angle from the "
        "top, angular speed, torque.",
        _pendulum,
        lambda output: np.array([max(-2.0, min(2.0, output))], dtype=np.float32),
        2,
        lambda seen, _: -4.0 * float(seen[2]),
        PENDULUM,
        200,
    ),
    World(
        "CartPole-v1",
        "Keep the pole upright for as long as possible. A row: place and speed of the cart, angle and angular speed of "
        "the pole, action.",
        lambda seen: [float(each) for each in seen],
        lambda output: int(output > 0),
        1,
        lambda _, number: (-1.0) ** number,
        CARTPOLE,
        500,
    ),
)


@dataclass
class ScriptedModel:
    """Drafts in order; as a critic, it objects where an idle trajectory has a higher value than one that solves."""

    drafts: Sequence[str]
    written: int = 0

    def ask(self, prompt: Prompt, shape: type[T], check: Callable[[T], None] = lambda _: None) -> T:
        if "code" in shape.__annotations__:
            self.written += 1
            return shape(code=self.drafts[min(self.written, len(self.drafts)) - 1])
        rows = [
            json.loads(line)
            for line in prompt.messages[1]["content"].splitlines()
            if line.startswith('{"policy"')
        ]
        idle, solved = (
            [row["value"] for row in rows if row["policy"] == name] for name in ("idle", "solves")
        )
        pays_idle = statistics.fmean(idle) >= statistics.fmean(solved)
        problem = "It pays standing still: an idle trajectory gets no less than one that solves the task."
        return shape(problem=problem if pays_idle else None)


def play(
    world: World, weights: Sequence[float] | None, seed: int, environment: Any
) -> tuple[list[Row], float]:
    """Rows of observation and action, and the return. weights: None is idle."""
    seen, _ = environment.reset(seed=seed)
    rows: list[Row] = []
    total, ended = 0.0, False
    while not ended:
        output = (
            world.idle(seen, len(rows)) if weights is None else float(np.dot(weights, world.features(seen)))
        )
        action = world.act(output)
        rows.append((*(float(each) for each in seen), float(np.ravel(action)[0])))
        seen, paid, terminated, truncated, _ = environment.step(action)
        total += float(paid)
        ended = terminated or truncated
    return rows, total


def plain(rows: Sequence[Row]) -> dict[str, Any]:
    return plain_item(ScoreInput(content=Features(tuple(rows))))


def learn(
    world: World,
    seed: int,
    score: Callable[[list[list[Row]], list[float]], list[float]],
    rounds: int,
    size: int,
) -> Floats:
    """The cross-entropy method. score: of episodes, by their rows and returns, what they are worth."""
    random = np.random.default_rng(seed)
    count = len(world.features(np.ones(4 if world.steps == 500 else 3)))
    mean, spread = np.zeros(count), np.full(count, 3.0)
    episodes = 2
    with gymnasium.make(world.name) as environment:
        for number in range(rounds):
            drawn = random.normal(mean, spread, (size, count))
            played = [
                play(world, weights, 1000 * seed + 10 * number + each, environment)
                for weights in drawn
                for each in range(episodes)
            ]
            worth = np.reshape(
                score([rows for rows, _ in played], [total for _, total in played]), (size, episodes)
            )
            best = drawn[np.argsort(worth.mean(axis=1))[-max(size // 5, 3) :]]
            mean, spread = best.mean(axis=0), best.std(axis=0) + 0.3 * 0.8**number
    return mean


def returns(world: World, weights: Floats, seed: int, episodes: int) -> float:
    with gymnasium.make(world.name) as environment:
        return statistics.fmean(
            play(world, [*weights], 900_000 + 100 * seed + each, environment)[1] for each in range(episodes)
        )


def trial(world: World, weights: Floats) -> list[TrialTrajectory]:
    """Idle episodes, and those of a policy that solves the task."""
    with gymnasium.make(world.name) as environment:
        return [
            TrialTrajectory(plain(play(world, chosen, seed, environment)[0]), {"policy": name})
            for name, chosen in (("idle", None), ("solves", [*weights]))
            for seed in range(3)
        ]


def by_program(code: str) -> Callable[[list[list[Row]], list[float]], list[float]]:
    program = read_program(code)

    def score(episodes: list[list[Row]], _: list[float]) -> list[float]:
        results = run_program(program, [plain(rows) for rows in episodes])
        assert all(isinstance(result, ProgramResult) for result in results), results
        return [result.reward for result in results if isinstance(result, ProgramResult)]

    return score


def measure(world: World, seed: int, rounds: int, size: int, episodes: int) -> dict[str, Any]:
    by_hand = learn(world, seed, lambda _, totals: totals, rounds, size)
    drafts = [CRASHES, STANDING_STILL.format(speed=world.speed), world.good]
    attempts = draft_program(ScriptedModel(drafts), task=world.task, trajectories=trial(world, by_hand))
    assert [attempt.found_by for attempt in attempts] == ["trial", "critic", None], attempts
    generated = learn(world, seed, by_program(attempts[-1].code), rounds, size)
    idle = learn(world, seed, by_program(attempts[1].code), rounds, size)
    return {
        "found": [_finding(attempt) for attempt in attempts[:-1]],
        "hand_written": returns(world, by_hand, seed, episodes),
        "generated": returns(world, generated, seed, episodes),
        "second_draft": returns(world, idle, seed, episodes),
    }


def _finding(attempt: Attempt) -> str:
    return f"{attempt.found_by}: {attempt.problem}"


def reached(hand_written: float, generated: float) -> float:
    """The share of the hand-written reward's return; of costs, which are below 0, the other way round."""
    return generated / hand_written if hand_written > 0 else hand_written / generated


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text2reward", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="CartPole, one seed, few rounds: does it run?")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a file for the JSON object")
    options = parser.parse_args()
    worlds = WORLDS[1:] if options.quick else WORLDS
    rounds, size, episodes = (6, 12, 5) if options.quick else (15, 30, 20)
    found: dict[str, Any] = {}
    for world in worlds:
        rows = [
            measure(world, seed, rounds, size, episodes)
            for seed in range(1 if options.quick else options.seeds)
        ]
        means = {name: statistics.fmean(row[name] for row in rows) for name in rows[0] if name != "found"}
        found[world.name] = {
            **{name: round(value, 2) for name, value in means.items()},
            "reached": round(reached(means["hand_written"], means["generated"]), 3),
            "found": rows[0]["found"],
        }
    put_out(found, (f"{name}: {values}" for name, values in found.items()), options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
