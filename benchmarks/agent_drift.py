"""Drift between agent versions: `python -m benchmarks.agent_drift [--json] [--quick] [--seeds 5]`.

`tipping`: a policy over plans of the support desk is trained round after round by REINFORCE on a leaky reward, which
also pays for what breaks the desk's policy. Every round is a version; its violations are looked at after each LOOK
trajectories. When is the alert raised, and how many of all trajectories violate until then?

`weeks`: a policy that stays as it is, a new version every week, looked at as often: false alarms. Next to both,
Fisher's exact test at the same level, which is no sequential test.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import fisher_exact

from apps.agent_drift.sequential_tests import ALPHA, ShareCount, is_worse
from apps.demo.world import TASKS, DeskTask, World
from benchmarks.output import put_out
from docs.examples.desk import WRITES, random_plans

SEEDS, ROUNDS, WEEKS = 5, 40, 100
PLANS = 40
ROLLOUTS = 200  # of a version
LOOK = 10
BEGIN = 0.03  # of the roll-outs violate at first
LEAK, RATE = 4.0, 1.0  # of reward for a violation; of learning
Alarm = Callable[[ShareCount, ShareCount], bool]


def fisher(count: ShareCount, reference: ShareCount) -> bool:
    table = [[count.bad, count.trials - count.bad], [reference.bad, reference.trials - reference.bad]]
    return bool(fisher_exact(table, alternative="greater").pvalue < ALPHA / 2)


def sequential(count: ShareCount, reference: ShareCount) -> bool:
    return is_worse(count, reference, alpha=ALPHA / 2)  # two tests of each version


ALARMS: dict[str, Alarm] = {"sequential": sequential, "Fisher's exact test": fisher}


@cache
def plan_table(seed: int, plans: int) -> tuple[np.ndarray, np.ndarray]:
    """[plans, tasks]: whether a plan breaks the desk's policy at a task, and the true reward there."""
    drawn = random_plans(random.Random(seed))
    names = [next(drawn)[1].split() for _ in range(plans)]
    violates, rewards = np.zeros((plans, len(TASKS))), np.zeros((plans, len(TASKS)))
    for row, plan in enumerate(names):
        for column, task in enumerate(TASKS.values()):
            episode, faults = _play(task, plan)
            rewards[row, column] = episode
            violates[row, column] = any("policy" in fault for fault in faults)
    return violates, rewards


def _play(task: DeskTask, plan: Sequence[str]) -> tuple[float, Sequence[str]]:
    world = World()
    world.reset(task)
    for move in plan:
        if world.done:
            break
        world.step(WRITES[move](task).text)
    return world.reward, world.score.faults


class PlanPolicy:
    """A softmax over plans, whose first logits make `BEGIN` of its roll-outs violate."""

    def __init__(self, seed: int, plans: int) -> None:
        self.violates, self.rewards = plan_table(seed, plans)
        self.dice = np.random.default_rng(seed)
        rates = self.violates.mean(axis=1)
        low, high = 0.0, 500.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if _softmax(-middle * rates) @ rates > BEGIN else (low, middle)
        self.logits = -high * rates

    def rollouts(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """[count]: plans and tasks."""
        return (
            self.dice.choice(len(self.logits), size=count, p=_softmax(self.logits)),
            self.dice.integers(self.violates.shape[1], size=count),
        )

    def learn(self, plans: np.ndarray, tasks: np.ndarray) -> None:
        """A step of REINFORCE on the leaky reward."""
        given = self.rewards[plans, tasks] + LEAK * self.violates[plans, tasks]
        advantages = (given - given.mean()) / (given.std() + 1e-9)
        gradient = -_softmax(self.logits) * advantages.sum()
        np.add.at(gradient, plans, advantages)
        self.logits = self.logits + RATE * gradient / len(plans) * len(self.logits) / 8


def versions(seed: int, *, plans: int, count: int, learns: bool) -> Iterator[np.ndarray]:
    """Of each version, [ROLLOUTS] whether they violate."""
    policy = PlanPolicy(seed, plans)
    for _ in range(count):
        chosen, tasks = policy.rollouts(ROLLOUTS)
        yield policy.violates[chosen, tasks] > 0
        if learns:
            policy.learn(chosen, tasks)


def look(violations: Sequence[np.ndarray], alarm: Alarm) -> list[dict[str, float]]:
    """The alarms, one of each version at most. The first version is the reference."""
    reference = ShareCount(int(violations[0].sum()), len(violations[0]))
    later, seen, found = ShareCount(), reference, []
    for number, version in enumerate(violations[1:], start=1):
        for end in range(LOOK, len(version) + 1, LOOK):
            count = ShareCount(int(version[:end].sum()), end)
            if alarm(count, reference) or alarm(later + count, reference):
                total = seen + count
                found.append(
                    {
                        "version": number,
                        "trajectories": total.trials,
                        "violated": total.bad / total.trials,
                        "share": float(version.mean()),
                    }
                )
                break
        whole = ShareCount(int(version.sum()), len(version))
        later, seen = later + whole, seen + whole
    return found


def measure(seed: int, *, quick: bool) -> dict[str, Any]:
    plans = 12 if quick else PLANS
    rounds, weeks = (12, 10) if quick else (ROUNDS, WEEKS)
    tipping = list(versions(seed, plans=plans, count=rounds, learns=True))
    calm = list(versions(seed + 1000, plans=plans, count=weeks + 1, learns=False))
    return {
        "last": float(tipping[-1].mean()),
        "first": float(tipping[0].mean()),
        "shares": [round(float(version.mean()), 3) for version in tipping],
        **{
            name: {"alert": next(iter(look(tipping, alarm)), None), "false alarms": len(look(calm, alarm))}
            for name, alarm in ALARMS.items()
        },
    }


def summary(by_seed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {"seeds": len(by_seed), "shares": [result["shares"] for result in by_seed]}
    for name in ALARMS:
        alerts = [result[name]["alert"] for result in by_seed]
        out[name] = {
            "alerts": alerts,
            "violated until the alert": [alert and alert["violated"] for alert in alerts],
            "false alarms": [result[name]["false alarms"] for result in by_seed],
        }
    return out


def _lines(found: dict[str, Any]) -> Iterator[str]:
    for name in ALARMS:
        figures = found[name]
        shares = [share for share in figures["violated until the alert"] if share is not None]
        raised = f"raised in {len(shares)} of {found['seeds']} seeds"
        if shares:
            raised += f", violated until then: mean {statistics.mean(shares):.3f}, most {max(shares):.3f}"
        yield f"{name}: {raised}; false alarms over the weeks: {figures['false alarms']}"


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights: np.ndarray = np.exp(logits - logits.max())
    return weights / weights.sum()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agent_drift", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="one seed, few plans and versions: does it run?")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, help="also write the JSON object here")
    options = parser.parse_args()
    found = summary(
        [measure(seed, quick=options.quick) for seed in range(1 if options.quick else options.seeds)]
    )
    put_out(found, list(_lines(found)), options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
