"""Better answers without training anybody: the best of n, and plans mended where the endpoint pays least.

python -m docs.examples.best_of_n --url http://127.0.0.1:8000 --endpoint desk --key tsk_...

A scripted agent plans without thinking (see desk.py). Best of n takes the plan with the highest reward. Refinement
spends three tries of four on the best plan so far: it writes the move anew that the endpoint gave least for, leaves it
out, puts one in, or replies otherwise, and keeps what is paid better. What both cost is plans scored; what counts is
the hidden reward of what was taken, and both may find what the endpoint pays for by mistake.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from touchstone_client import RewardClient
from touchstone_client.values import Result

from apps.demo.world import TASKS, Task
from docs.examples.asking import asking
from docs.examples.desk import MOST_MOVES, MOVES, REPLIES, Played, play, thoughtless

TRIES = (1, 2, 4, 8, 16, 32)
_FRESH = 0.25  # of the tries
_OTHERS = tuple(name for name in MOVES if name not in REPLIES)


@dataclass(frozen=True)
class Tried:
    moves: tuple[str, ...]
    played: Played
    result: Result


def best_of_n(client: RewardClient, *, seed: int, tries: Sequence[int] = TRIES) -> list[float]:
    """By number of tries, the mean hidden reward of the best plans over all requests."""
    plans = thoughtless(random.Random(seed))
    tried = {
        task.id: _scored(client, task, [next(plans)[1].split() for _ in range(max(tries))])
        for task in TASKS.values()
    }
    return [_mean([_best(some[:count]) for some in tried.values()]) for count in tries]


def refined(client: RewardClient, *, seed: int, tries: Sequence[int] = TRIES) -> list[float]:
    """The same with plans that are mended: a request's tries one after another, all requests at once."""
    dice, plans = random.Random(seed), thoughtless(random.Random(seed))
    best: dict[str, Tried] = {}
    found = []
    for count in range(1, max(tries) + 1):
        asked = []
        for task in TASKS.values():
            fresh = next(plans)[1].split()
            anew = task.id not in best or dice.random() < _FRESH
            asked.append((task, fresh if anew else _mended(best[task.id], dice)))
        for (task, _), tried in zip(asked, _scored_all(client, asked), strict=True):
            if task.id not in best or tried.result.reward > best[task.id].result.reward:
                best[task.id] = tried
        if count in tries:
            found.append(_mean(list(best.values())))
    return found


def _mended(one: Tried, dice: random.Random) -> list[str]:
    """Another plan, that differs in one move."""
    moves, steps = list(one.moves), one.result.steps or (0.0,)
    *others, last = range(min(len(steps), len(moves)))
    worst = min(others, key=lambda place: steps[place], default=None)
    how = dice.choice(
        ("put in", "reply") if worst is None else ("put in", "reply", "write anew", "leave out")
    )
    if how == "put in" and len(moves) < MOST_MOVES:
        moves.insert(dice.randrange(len(moves)), dice.choice(_OTHERS))
    elif how == "write anew" and worst is not None:
        moves[worst] = dice.choice(_OTHERS)
    elif how == "leave out" and worst is not None:
        del moves[worst]
    else:
        moves[last] = dice.choice(REPLIES)
    return moves


def _scored(client: RewardClient, task: Task, plans: Sequence[Sequence[str]]) -> list[Tried]:
    return _scored_all(client, [(task, plan) for plan in plans])


def _scored_all(client: RewardClient, plans: Sequence[tuple[Task, Sequence[str]]]) -> list[Tried]:
    played = [play(task, moves) for task, moves in plans]
    results = client.score([{"messages": one.messages} for one in played], uncertainty=False).results
    return [
        Tried(tuple(moves), one, result)
        for (_, moves), one, result in zip(plans, played, results, strict=True)
    ]


def _best(tried: Sequence[Tried]) -> Tried:
    return max(tried, key=lambda one: one.result.reward)


def _mean(taken: Sequence[Tried]) -> float:
    return sum(one.played.reward for one in taken) / len(taken)


def main() -> None:
    options = asking(__doc__, seed=0).parse_args()
    with RewardClient(options.url, options.endpoint, options.key) as client:
        plain = best_of_n(client, seed=options.seed)
        mended = refined(client, seed=options.seed)
    print("tries  best of n  refined    true reward")
    for count, one, other in zip(TRIES, plain, mended, strict=True):
        print(f"{count:5}  {one:9.3f}  {other:7.3f}")


if __name__ == "__main__":
    main()
