"""Better answers without training: best of n, and refinement of the step with the lowest reward.

python -m docs.examples.best_of_n --url http://127.0.0.1:8000 --endpoint desk --key tsk_...

A scripted agent draws random plans (see desk.py). Best of n takes the plan with the highest reward. Refinement spends
three tries of four on the best plan so far: it replaces or removes the move with the lowest reward, adds one, or
changes the reply, and keeps a plan with a higher reward. The cost of both is the number of plans scored; the result is
the hidden reward of the chosen plans, and both may exploit errors of the endpoint.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from touchstone_client import RewardClient
from touchstone_client.values import Result

from apps.demo.world import TASKS, DeskTask
from docs.examples.command_line import argument_parser
from docs.examples.desk import MOST_MOVES, MOVES, REPLIES, DeskEpisode, play, random_plans

TRIES = (1, 2, 4, 8, 16, 32)
_FRESH = 0.25  # of the tries
_OTHERS = tuple(name for name in MOVES if name not in REPLIES)


@dataclass(frozen=True)
class ScoredPlan:
    moves: tuple[str, ...]
    played: DeskEpisode
    result: Result


def best_of_n(client: RewardClient, *, seed: int, tries: Sequence[int] = TRIES) -> list[float]:
    """By number of tries, the mean hidden reward of the best plans over all requests."""
    plans = random_plans(random.Random(seed))
    tried = {
        task.id: _scored(client, task, [next(plans)[1].split() for _ in range(max(tries))])
        for task in TASKS.values()
    }
    return [_mean([_best(some[:count]) for some in tried.values()]) for count in tries]


def refine(client: RewardClient, *, seed: int, tries: Sequence[int] = TRIES) -> list[float]:
    """The same by refinement: the tries of a request one after another, all requests in parallel."""
    dice, plans = random.Random(seed), random_plans(random.Random(seed))
    best: dict[str, ScoredPlan] = {}
    found = []
    for count in range(1, max(tries) + 1):
        asked = []
        for task in TASKS.values():
            fresh = next(plans)[1].split()
            is_fresh = task.id not in best or dice.random() < _FRESH
            asked.append((task, fresh if is_fresh else _changed_plan(best[task.id], dice)))
        for (task, _), tried in zip(asked, _scored_all(client, asked), strict=True):
            if task.id not in best or tried.result.reward > best[task.id].result.reward:
                best[task.id] = tried
        if count in tries:
            found.append(_mean(list(best.values())))
    return found


def _changed_plan(best: ScoredPlan, dice: random.Random) -> list[str]:
    """A plan that differs in one move."""
    moves, steps = list(best.moves), best.result.steps or (0.0,)
    *others, last = range(min(len(steps), len(moves)))
    worst = min(others, key=lambda place: steps[place], default=None)
    how = dice.choice(("insert", "reply") if worst is None else ("insert", "reply", "replace", "remove"))
    if how == "insert" and len(moves) < MOST_MOVES:
        moves.insert(dice.randrange(len(moves)), dice.choice(_OTHERS))
    elif how == "replace" and worst is not None:
        moves[worst] = dice.choice(_OTHERS)
    elif how == "remove" and worst is not None:
        del moves[worst]
    else:
        moves[last] = dice.choice(REPLIES)
    return moves


def _scored(client: RewardClient, task: DeskTask, plans: Sequence[Sequence[str]]) -> list[ScoredPlan]:
    return _scored_all(client, [(task, plan) for plan in plans])


def _scored_all(client: RewardClient, plans: Sequence[tuple[DeskTask, Sequence[str]]]) -> list[ScoredPlan]:
    played = [play(task, moves) for task, moves in plans]
    results = client.score([{"messages": episode.messages} for episode in played], uncertainty=False).results
    return [
        ScoredPlan(tuple(moves), episode, result)
        for (_, moves), episode, result in zip(plans, played, results, strict=True)
    ]


def _best(tried: Sequence[ScoredPlan]) -> ScoredPlan:
    return max(tried, key=lambda plan: plan.result.reward)


def _mean(taken: Sequence[ScoredPlan]) -> float:
    return sum(plan.played.reward for plan in taken) / len(taken)


def main() -> None:
    options = argument_parser(__doc__, seed=0).parse_args()
    with RewardClient(options.url, options.endpoint, options.key) as client:
        plain = best_of_n(client, seed=options.seed)
        refined = refine(client, seed=options.seed)
    print("tries  best of n  refined    true reward")
    for count, best, other in zip(TRIES, plain, refined, strict=True):
        print(f"{count:5}  {best:9.3f}  {other:7.3f}")


if __name__ == "__main__":
    main()
