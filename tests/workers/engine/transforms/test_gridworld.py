"""Which transforms keep the best policy, on a gridworld whose best policies are computed exactly."""

import random
from statistics import mean
from typing import Any

import pytest

from tests.workers.engine.transforms.gridworld import PIT, START, Grid, Learner
from workers.engine.item_score import ItemScore
from workers.engine.transforms import TransformChain
from workers.schema.transforms import (
    Clip,
    NoRepeats,
    Normalise,
    Redistribute,
    Risk,
    RunningNormalise,
    Shaping,
    Squash,
    StepClip,
    ValueAtRisk,
)

GAMMA = 0.95
GRID = Grid()


def chain(*transforms: Any) -> TransformChain:
    return TransformChain((Normalise(), *transforms))


def plain(cell: Any, action: int, after: Any) -> float:
    return GRID.reward_at(after)


@pytest.mark.parametrize("weight", [0.5, 1.0, 10.0])
@pytest.mark.parametrize(
    "potential", [GRID.nearness, lambda cell: -3 * GRID.nearness(cell), lambda cell: cell[0] % 2]
)
def test_shaping_leaves_the_best_actions_of_every_cell(weight: float, potential: Any) -> None:
    """Helpful, misleading and senseless potentials alike. Transitions go through the engine one by one; phi is 0 where
    the episode ends."""

    def shaped(cell: Any, action: int, after: Any) -> float:
        transform = Shaping(
            component="near", gamma=GAMMA, weight=weight, end="zero" if GRID.ends(after) else "kept"
        )
        (score,) = chain(transform).apply([GRID.item_score([(cell, action, after)], potential)])
        return score.gains[0]

    assert GRID.best_actions(shaped, GAMMA) == GRID.best_actions(plain, GAMMA)


def test_paying_the_potential_itself_changes_the_best_actions() -> None:
    """What shaping is there to avoid: an agent that is paid for being near the goal stays there."""
    paid = GRID.best_actions(
        lambda cell, action, after: (
            GRID.reward_at(after) + (0.0 if GRID.ends(after) else GRID.nearness(after))
        ),
        GAMMA,
    )
    assert paid != GRID.best_actions(plain, GAMMA)


def test_the_best_policy_is_found_in_fewer_episodes_with_shaping() -> None:
    """Where the goal is far. Of 60 seeds, 50 were faster with shaping on 8 x 8 cells, 45 on 6 x 6, 35 on 4 x 4, where
    chance finds the goal nearly as soon. 26 of 40 are significant at 0.05 (sign test, ties counted as slower)."""
    grid, seeds = Grid(8, most_steps=150), range(100, 140)
    shaping = Shaping(component="near", gamma=GAMMA)
    without = [Learner(grid, chain(), seed).episodes_until_best() for seed in seeds]
    shaped = [Learner(grid, chain(shaping), seed).episodes_until_best() for seed in seeds]
    assert max(shaped) < 2000
    assert mean(shaped) < 0.5 * mean(without)
    assert sum(fast < slow for fast, slow in zip(shaped, without, strict=True)) >= 26


@pytest.fixture(scope="module")
def walks() -> list[ItemScore]:
    """The scores of all walks of five moves from the start of 3 x 3 cells; the shortest way to the goal has four."""
    grid = Grid(3)
    return [grid.item_score(walk) for walk in grid.walks(5)]


def best(rewards: list[float]) -> set[int]:
    return {place for place, reward in enumerate(rewards) if reward > max(rewards) - 1e-9}


@pytest.mark.parametrize(
    "transform",
    [
        Redistribute(components=("near",)),
        NoRepeats(),
        Squash(scale=0.5),
        Clip(eta=1.0),
        Shaping(component="near", gamma=0.9),
        RunningNormalise(clip=1e6),
        Risk(k=0.2),
        ValueAtRisk(alpha=1.0),
    ],
)
def test_the_best_walks_stay_the_best(walks: list[ItemScore], transform: Any) -> None:
    """Of all walks, by the reward and, where steps add up to it, by their sum."""
    found = chain(transform).apply(walks, [range(len(walks))])
    expected = best([score.reward for score in walks])
    assert best([score.reward for score in found]) == expected
    if not isinstance(transform, Shaping):
        assert best([sum(score.gains) for score in found]) == expected


def test_step_clip_prefers_shorter_walks_so_the_pit_can_be_best() -> None:
    """The warning in its documentation: with eta every step costs, so that ending early is best."""
    short = [(START, 0, (0, 1)), ((0, 1), 0, (0, 2)), ((0, 2), 1, PIT)]
    long = [((0, 0), 1, (1, 0))] + [((1, 0), 3, (0, 0)), ((0, 0), 1, (1, 0))] * 10
    found = chain(StepClip(eta=0.5)).apply([GRID.item_score(short), GRID.item_score(long)])
    assert found[0].reward == -0.5 - 0.5 - 1.5
    assert found[1].reward == -0.5 * 21


def test_risk_and_cvar_prefer_the_safe_policy_where_outcomes_vary() -> None:
    """A gamble with the better mean (3 or -2) against 0.4 for sure: another policy is the best, as documented."""
    draw = random.Random(0)
    gamble = [3.0 if draw.random() < 0.5 else -2.0 for _ in range(400)]
    assert mean(gamble) > 0.4
    for transform, safe in ((Risk(k=0.5), 0.4), (ValueAtRisk(alpha=0.25), 0.4)):
        scores = [GRID.item_score([(START, 0, (0, 1))]).with_gains([0.0], reward=reward) for reward in gamble]
        found = chain(transform).apply(scores, [range(len(scores))])
        assert mean(score.reward for score in found) < safe
