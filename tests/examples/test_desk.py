"""The support desk that example policies act in."""

import random

import pytest

from apps.demo.world import TASKS
from docs.examples.desk import (
    MOST_MOVES,
    MOVES,
    new_policy,
    play,
    random_plans,
    sampled,
    tokenizer,
    words,
)


@pytest.mark.parametrize(
    ("case", "moves"),
    [
        ("damaged.refund", "look refund_item reply"),
        ("late.coupon", "look coupon reply"),
        ("tracking.eta", "track reply"),
        ("cancel.done", "look cancel reply"),
        ("address.done", "ask verify move reply"),
        ("billing.duplicate", "charges refund_all reply"),
        ("wrong.replace", "look replace reply"),
        ("damaged.escalate", "look escalate reply"),
    ],
)
def test_the_right_moves_are_worth_most(case: str, moves: str) -> None:
    task = next(entry for entry in TASKS.values() if entry.case == case and not entry.values["hidden"])
    right = play(task, moves.split())
    assert right.reward > 0.9
    assert right.reward > play(task, ["reply"]).reward > play(task, ["reply_rude"]).reward
    assert (
        len(right.states)
        == len(moves.split())
        == sum(message["role"] == "assistant" for message in right.messages)
    )


def test_whatever_is_written_can_be_played() -> None:
    task = next(iter(TASKS.values()))
    nothing = play(task, [])
    assert nothing.messages[-1] == {"role": "assistant", "content": "..."} and len(nothing.states) == 1
    words_only = play(task, ["hello", "order", "<unknown>"])
    assert all(
        message["content"].startswith("error") for message in words_only.messages if message["role"] == "tool"
    )
    assert len(play(task, ["look"] * 50).states) == MOST_MOVES
    assert len(play(task, ["reply", "refund_all"]).states) == 1  # it is over
    again = play(task, ["look", "rules", "look"]).states
    other = play(task, ["rules", "look", "track"]).states
    assert again[2] == other[2] and again[1] != other[1]  # in whatever order it was looked at


@pytest.mark.slow
def test_a_new_policy_writes_moves_at_random() -> None:
    reads = tokenizer()
    policy = new_policy(reads, seed=0)
    assert sum(parameter.numel() for parameter in policy.parameters()) < 200_000
    tried = sampled(policy, reads, 1)
    assert len(tried) == len(TASKS) and len({str(entry.messages) for _, entry in tried}) > 30
    assert 0.1 < sum(entry.reward for _, entry in tried) / len(tried) < 0.6
    plans = random_plans(random.Random(0))
    request, plan = next(plans)
    assert request in {words(task) for task in TASKS.values()} and set(plan.split()) <= set(MOVES)
