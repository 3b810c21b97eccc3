"""Search without training: best of n, refinement, beam search and tree search on one endpoint.

python -m docs.examples.search --url http://127.0.0.1:8000 --endpoint desk --key tsk_...

A scripted agent draws random plans (see desk.py); every method spends the same number of scored plans for a customer.
The result is the hidden reward of the chosen plans, and all methods may exploit errors of the endpoint.
"""

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from touchstone_client import RewardClient
from touchstone_client.search import BeamSearch, BestOfN, Refinement, Scored, Scorer, Search, TreeSearch, run
from touchstone_client.search.running import Allocation

from apps.demo.world import TASKS
from docs.examples.command_line import argument_parser
from docs.examples.desk import MOVES, REPLIES, play

BUDGETS = (8, 16, 32)  # scored plans for a customer
_BEFORE = 4  # moves before the reply, at most
_FRESH = 0.25  # of the plans that refinement tries
_OTHERS = tuple(name for name in MOVES if name not in REPLIES)
DIVIDED = "best of n, divided"
Moves = tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """Of the chosen plans, means over customers. paid: by the endpoint. true: the hidden reward, 0 without a plan."""

    paid: float
    true: float


def searched(
    score: Callable[[Sequence[tuple[str, Moves]]], Sequence[Scored[Moves]]],
    method: str,
    *,
    seed: int,
    budgets: Sequence[int] = BUDGETS,
) -> dict[int, Found]:
    """By budget, what a search of every customer's plan found. budgets: scored plans for a customer, ascending."""
    searches = {name: METHODS[method](random.Random(f"{seed} {name}")) for name in TASKS}
    allocation: Allocation = "improvement" if method == DIVIDED else "even"
    found, spent = {}, 0
    for budget in budgets:
        best = run(searches, score, budget=(budget - spent) * len(searches), allocation=allocation)
        spent = budget
        plans = {name: plan for name, plan in best.items() if plan is not None}
        found[budget] = Found(
            paid=statistics.mean(plan.reward for plan in plans.values()) if plans else math.nan,
            true=sum(play(TASKS[name], plan.value).reward for name, plan in plans.items()) / len(searches),
        )
    return found


def endpoint_score(client: RewardClient) -> Scorer[str, Moves]:
    """What an endpoint says of the conversation that a plan leads to."""
    return Scorer(client, lambda name, moves: {"messages": play(TASKS[name], moves).messages})


def random_plan(dice: random.Random, start: Moves = ()) -> Moves:
    """A random plan that begins with `start`, a reply at its end: as the untrained policy writes them."""
    if start and start[-1] in REPLIES:
        return start
    count = dice.randint(0, _BEFORE - len(start))
    return (*start, *(dice.choice(_OTHERS) for _ in range(count)), dice.choice(REPLIES))


def next_moves(moves: Moves) -> tuple[str, ...]:
    if moves and moves[-1] in REPLIES:
        return ()
    return MOVES if len(moves) < _BEFORE else REPLIES


def _revised(plan: Scored[Moves], dice: random.Random) -> Moves:
    """The plan with one move changed: the one with the lowest step reward, or the reply, or one more."""
    moves, steps = list(plan.value), plan.result.steps or ()
    *others, last = range(min(len(steps), len(moves)) or 1)
    worst = min(others, key=lambda place: steps[place], default=None)
    how = dice.choice(("insert", "reply") if worst is None else ("insert", "reply", "replace", "remove"))
    if how == "insert" and len(moves) <= _BEFORE:
        moves.insert(dice.randrange(len(moves)), dice.choice(_OTHERS))
    elif how == "replace" and worst is not None:
        moves[worst] = dice.choice(_OTHERS)
    elif how == "remove" and worst is not None:
        del moves[worst]
    else:
        moves[last] = dice.choice(REPLIES)
    return tuple(moves)


def _tree(dice: random.Random, **options: float) -> Search[Moves]:
    return TreeSearch(next_moves, lambda moves: random_plan(dice, moves), dice=dice, **options)


METHODS: Mapping[str, Callable[[random.Random], Search[Moves]]] = {
    "best of n": lambda dice: BestOfN(lambda: random_plan(dice)),
    DIVIDED: lambda dice: BestOfN(lambda: random_plan(dice)),
    "refinement": lambda dice: Refinement(
        lambda: random_plan(dice), lambda plan: _revised(plan, dice), fresh=_FRESH, dice=dice
    ),
    "beam": lambda dice: BeamSearch(next_moves, width=2, branch=4, dice=dice),
    "tree": _tree,
    "tree, step values": lambda dice: _tree(dice, step_share=0.5),
}


def main() -> None:
    options = argument_parser(__doc__, seed=0).parse_args()
    print("plans scored      " + "".join(f"{budget:>8}" for budget in BUDGETS) + "   true reward")
    with RewardClient(options.url, options.endpoint, options.key) as client:
        for name in METHODS:
            found = searched(endpoint_score(client), name, seed=options.seed)
            print(f"{name:18}" + "".join(f"{found[budget].true:8.3f}" for budget in BUDGETS))


if __name__ == "__main__":
    main()
