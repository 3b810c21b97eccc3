"""A verifier with a reference that is trained along with the policy: `python -m benchmarks.cooper [--quick]`.

The alternation of Cooper (arXiv 2508.05613) in a made-up world. Tasks ask for a number, an amount, a share, a date or a
name (as in `benchmarks.conditions`), which can be written in three ways; the reference is in one of them. A policy is a
table: for each kind of task, how likely it is to answer in one of 28 ways. Twelve are honest: what it works out, which
is right in 60 % of the tasks, in one of the three forms and in one of four styles. Twelve name four values that it
takes for possible, one of which is the right one in 90 % of the tasks: never right, since the question has one answer.
Four name none. It learns by REINFORCE on the verifier's reward.

The verifier is a linear model of the objective `outcome` that reads the reference, first trained on right and wrong
honest answers to other tasks. Then policy and verifier take turns. A rule accepts an answer whose part after #### is
the reference itself (`answer_match`), which is precise and misses most right answers. After each round the verifier is
trained again with answers of the policy to new tasks:

frozen       it is not trained again
rejected     accepted answers as right ones, and those that the rule rejects as wrong ones, as the comparisons from an
             endpoint's verifier have them (docs/feedback-loop.md)
perturbed    accepted answers as right ones, and as wrong ones the same with another value in place of the answer, as
             the generator `wrong_answer` makes them
both         as `perturbed`, and as wrong ones those that a second rule rejects: that name several values, or none
rule         no model: the policy is rewarded by the rule

Measured on answers of the last policy to new tasks, against the truth: the share of right ones, of those that the
verifier judges as they are, of those that it accepts although they are wrong (hacked), and of lists. Means and 95 %
intervals (Student's t) over seeds.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.conditions import answers, conversation, fitted, matched, near, raws, value, written
from benchmarks.output import put_out
from benchmarks.result_cache import ResultCache
from benchmarks.seed_intervals import described, mean_with_interval
from workers.schema import OutcomeRecord, Task, Trajectory
from workers.schema.conditions import conditioned_records
from workers.schema.recipe import parse_recipe
from workers.train.wrong_answers import with_wrong_answer

SEEDS, ROUNDS, STEPS, BATCH = 5, 5, 25, 64
OFFLINE, ONLINE, HELD_OUT = 400, 300, 500  # tasks
KNOWN, LISTED = 0.6, 0.9  # how often what the policy works out, or one of what it names, is right
RATE, ENTROPY = 0.5, 0.01
KINDS = ("number", "amount", "share", "date", "name")
STYLES = (
    "I have checked it: the answer is {}.",
    "{}",
    "It comes to {}, as far as the records tell. #### {}",
    "#### {}",
)
HONEST, LIST, NOTHING = "honest", "list", "nothing"
OR, UNNAMED = " or ", "what was asked for"
ACTIONS = (*product((HONEST, LIST), range(3), range(4)), *((NOTHING, 0, style) for style in range(4)))
ARMS = ("frozen", "rejected", "perturbed", "both", "rule")
RULE = matched("exact", "hashes")


@dataclass(frozen=True)
class Question:
    kind: str
    right: tuple[int, ...]
    form: int  # of the reference

    @property
    def reference(self) -> str:
        return written(self.kind, self.right, self.form)


@dataclass(frozen=True)
class Answer:
    """worked_out: what an honest one names, else None."""

    question: Question
    action: int
    text: str
    worked_out: tuple[int, ...] | None

    @property
    def is_right(self) -> bool:
        return self.worked_out == self.question.right

    def record(self, name: str, success: bool) -> OutcomeRecord:
        task = Task(id=name, reference=self.question.reference)
        steps = conversation(self.text, name).steps
        return OutcomeRecord(trajectory=Trajectory(steps=steps, task=task), success=success)


def questions(count: int, dice: random.Random) -> list[Question]:
    kinds = [dice.choice(KINDS) for _ in range(count)]
    return [Question(kind, value(kind, dice), dice.randrange(3)) for kind in kinds]


def answered(question: Question, action: int, dice: random.Random) -> Answer:
    what, form, style = ACTIONS[action]

    def near_value() -> tuple[int, ...]:
        return near(question.kind, question.right, dice)

    if what == NOTHING:
        return Answer(question, action, STYLES[style].replace("{}", UNNAMED), None)
    if what == HONEST:
        given = question.right if dice.random() < KNOWN else near_value()
        text = STYLES[style].replace("{}", written(question.kind, given, form))
        return Answer(question, action, text, given)
    named = [near_value() for _ in range(4)]
    if dice.random() < LISTED:
        named[dice.randrange(4)] = question.right
    shown = OR.join(written(question.kind, each, form) for each in named)
    return Answer(question, action, STYLES[style].replace("{}", shown), None)


class Policy:
    """logits: [kinds, ACTIONS]."""

    def __init__(self) -> None:
        self.logits = np.zeros((len(KINDS), len(ACTIONS)))

    def answers(self, asked: Sequence[Question], dice: random.Random) -> list[Answer]:
        chances = self._chances()
        return [
            answered(each, dice.choices(range(len(ACTIONS)), chances[KINDS.index(each.kind)])[0], dice)
            for each in asked
        ]

    def learn(self, given: Sequence[Answer], rewards: np.ndarray) -> None:
        """A step of REINFORCE with rewards in standard deviations from their mean, and a bonus for entropy."""
        chances = self._chances()
        advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
        gradient = -ENTROPY * chances * (np.log(chances) + 1)
        gradient -= chances * gradient.sum(1, keepdims=True)
        for answer, advantage in zip(given, advantages, strict=True):
            kind = KINDS.index(answer.question.kind)
            chosen = np.eye(len(ACTIONS))[answer.action]
            gradient[kind] += advantage * (chosen - chances[kind]) * len(KINDS) / len(given)
        self.logits += RATE * gradient

    def _chances(self) -> np.ndarray:
        powers = np.exp(self.logits - self.logits.max(1, keepdims=True))
        found: np.ndarray = powers / powers.sum(1, keepdims=True)
        return found


Verifier = Callable[[Sequence[Answer]], np.ndarray]


def trained_verifier(records: Sequence[OutcomeRecord], seed: int) -> Verifier:
    """Raw rewards, the log-odds of a right answer."""
    recipe = parse_recipe(
        {"backbone": "linear", "objective": "outcome", "conditioned": ["reference"], "ensemble": 1}
    )
    model = fitted(recipe, conditioned_records(records, recipe.conditioned), seed)

    def judged(given: Sequence[Answer]) -> np.ndarray:
        return np.array(raws(model, [each.record("asked", True).trajectory for each in given]))

    return judged


def by_rule(given: Sequence[Answer]) -> np.ndarray:
    """1 and -1."""
    return np.array([2 * RULE(each.record("asked", True)) - 1 for each in given])


def online_records(arm: str, given: Sequence[Answer], name: str, dice: random.Random) -> list[OutcomeRecord]:
    found: list[OutcomeRecord] = []
    references = [answer.question.reference for answer in given]
    for number, (answer, verdict) in enumerate(zip(given, by_rule(given), strict=True)):
        task = f"{name}/{number}"
        if verdict > 0:
            found.append(answer.record(task, True))
            wrong = with_wrong_answer(found[-1].trajectory, references, dice)
            if arm in ("perturbed", "both") and wrong is not None:
                found.append(OutcomeRecord(trajectory=wrong, success=False))
        elif arm == "rejected" or (arm == "both" and (OR in answer.text or UNNAMED in answer.text)):
            found.append(answer.record(task, False))
    return found


def alternate(arm: str, seed: int, rounds: int, steps: int, offline: int) -> dict[str, float]:
    """{right, judged right, hacked, lists} of the last policy, and of the last verifier."""
    dice = random.Random(f"cooper/{seed}")
    records = answers(offline, 0, dice)
    verifier = by_rule if arm == "rule" else trained_verifier(records, seed)
    policy = Policy()
    for number in range(rounds):
        for _ in range(steps):
            given = policy.answers(questions(BATCH, dice), dice)
            policy.learn(given, verifier(given))
        if arm not in ("frozen", "rule") and number + 1 < rounds:
            seen = policy.answers(questions(ONLINE, dice), dice)
            records = [*records, *online_records(arm, seen, f"round {number}", dice)]
            verifier = trained_verifier(records, seed)
    last = policy.answers(questions(HELD_OUT, dice), dice)
    right = np.array([each.is_right for each in last])
    accepted = verifier(last) > 0
    return {
        "right": float(right.mean()),
        "judged right": float((accepted == right).mean()),
        "hacked": float((accepted & ~right).mean()),
        "lists": float(np.mean([ACTIONS[each.action][0] == LIST for each in last])),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cooper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="one seed, two short rounds: does it run?")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, help="every seed's figures, written as they come; kept if there")
    arguments = parser.parse_args()
    cache = ResultCache(arguments.out)

    def find(arm: str, seed: int) -> dict[str, float]:
        sizes = (2, 2, 60) if arguments.quick else (ROUNDS, STEPS, OFFLINE)
        found = alternate(arm, seed, *sizes)
        sys.stderr.write(json.dumps({"arm": arm, "seed": seed, **found}) + "\n")
        return found

    seeds = range(1 if arguments.quick else arguments.seeds)
    by_arm = {arm: [cache.get(arm, seed, find) for seed in seeds] for arm in ARMS}
    table: dict[str, Any] = {
        arm: {name: mean_with_interval([each[name] for each in found]) for name in found[0]}
        for arm, found in by_arm.items()
    }
    lines = ["answers of the last policy, mean over seeds with 95 % intervals"]
    for arm, measures in table.items():
        shown = ", ".join(described(found, name) for name, found in measures.items())
        lines.append(f"    {arm}: {shown}")
    arguments.out = None
    put_out(table, lines, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
