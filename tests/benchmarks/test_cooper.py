"""The world of the alternation: what is right, what the rule accepts, and what is wrong for certain."""

import random

import numpy as np

from benchmarks.cooper import (
    ACTIONS,
    HONEST,
    LIST,
    Policy,
    Question,
    alternate,
    answered,
    by_rule,
    online_records,
    questions,
)

QUESTION = Question("date", (3, 4, 2021), 0)


def test_the_rule_accepts_right_answers_alone() -> None:
    dice = random.Random(0)
    given = [answered(each, action, dice) for each in questions(20, dice) for action in range(len(ACTIONS))]
    accepted = [answer for answer, verdict in zip(given, by_rule(given), strict=True) if verdict > 0]
    assert accepted and all(answer.is_right for answer in accepted)
    assert sum(answer.is_right for answer in given) > 2 * len(accepted)  # and misses most of them


def test_a_perturbed_answer_differs_in_its_value_and_is_wrong() -> None:
    dice = random.Random(1)
    action = ACTIONS.index((HONEST, 0, 2))
    right = next(found for found in (answered(QUESTION, action, dice) for _ in range(50)) if found.is_right)
    accepted, other = online_records("perturbed", [right], "r", dice)
    assert (accepted.success, other.success) == (True, False)
    assert "3 May 2021" in right.text and "3 May 2021" not in other.trajectory.steps[-1].text
    assert len(other.trajectory.steps[-1].text.split()) == len(right.text.split())


def test_what_is_learnt_from_by_arm() -> None:
    dice = random.Random(2)
    actions = ((HONEST, 0, 3), (HONEST, 0, 3), (LIST, 0, 3), (HONEST, 2, 3))
    given = [answered(QUESTION, ACTIONS.index(action), random.Random(3)) for action in actions]
    assert [answer.is_right for answer in given] == [True, True, False, True]
    successes = {
        arm: [record.success for record in online_records(arm, given, "r", dice)]
        for arm in ("rejected", "perturbed", "both")
    }
    assert successes["rejected"] == [True, True, False, False]  # the last one is right, in another form
    assert successes["perturbed"] == [True, False, True, False]
    assert successes["both"] == [True, False, True, False, False]


def test_the_policy_learns_what_is_rewarded() -> None:
    dice, policy = random.Random(4), Policy()
    for _ in range(150):
        given = policy.answers(questions(64, dice), dice)
        policy.learn(given, np.array([float(ACTIONS[each.action][0] == LIST) for each in given]))
    lists = [ACTIONS[each.action][0] == LIST for each in policy.answers(questions(200, dice), dice)]
    assert np.mean(lists) > 0.9


def test_it_runs() -> None:
    found = alternate("both", 0, 2, 1, 40)
    assert set(found) == {"right", "judged right", "hacked", "lists"}
