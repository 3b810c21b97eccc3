"""How often monitors cry wolf, and how soon they see: `python -m benchmarks.monitors [--json] [--quick]`.

Stationary traffic, 100 sampled trajectories an hour, looked at each hour with the default rules and windows that slide
on: every pass of a rule counts, also those of which no one would be told twice. And a policy that discovers that length
pays, more of it with every hour: how many sampled trajectories after it began the first alert comes.
"""

import argparse
import json
import math
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from apps.monitoring.measures import MEASURES, SampleRow, reference_from_rows
from apps.monitoring.rules import DEFAULTS, readings

WEEKS, HOURS, AN_HOUR = 100, 168, 100
WINDOW = 300
HOURS_TO_LEARN = 24  # until the policy does nothing else
Json = dict[str, Any]


def row(dice: random.Random, pk: int) -> SampleRow:
    """Heavy tails, as real traffic has them; the reward goes a little with length, as it does in training."""
    tokens = max(5, int(math.exp(dice.gauss(5.5, 0.8))))
    steps = 1 + int(dice.expovariate(0.25))
    return SampleRow(
        pk=pk,
        policy_version="",
        reward=0.15 * (math.log(tokens) - 5.5) + dice.gauss(0, 1) * (2.0 if dice.random() < 0.1 else 0.9),
        tokens=tokens,
        steps=steps,
        repetition=min(1.0, dice.expovariate(20)),
        uncertain=dice.random() < 0.08,
        outside=dice.random() < 0.02,
        gold=dice.gauss(0, 1),
        kl=abs(dice.gauss(5, 2)),
    )


def exploit(dice: random.Random, pk: int) -> SampleRow:
    """Long, and rewarded for it; what is true of it gets worse."""
    tokens = int(math.exp(dice.gauss(6.8, 0.7)))
    one = row(dice, pk)
    reward = 1.0 * (math.log(tokens) - 5.5) + dice.gauss(0, 0.6)
    return SampleRow(
        pk, "", reward, tokens, one.steps, one.repetition + 0.1, one.uncertain, one.outside, 6.0, -1.0
    )


def broken(window: Sequence[SampleRow], reference: Any) -> list[str]:
    found = readings(DEFAULTS, window, reference)
    return [
        rule.name
        for rule in DEFAULTS
        if rule.name in found and MEASURES[rule.measure].passes(found[rule.name], rule.above)
    ]


def quiet(weeks: int, seed: int = 0) -> Json:
    """Every week another policy, which is compared with the same training."""
    reference = reference_from_rows([row(random.Random(99 + seed), n) for n in range(2000)], "in training")
    passes: Counter[str] = Counter()
    runs: Counter[str] = Counter()  # weeks in which a rule was broken: alerts that would be raised
    for week in range(weeks):
        dice = random.Random(1000 * seed + week)
        window: list[SampleRow] = []
        seen: set[str] = set()
        for hour in range(HOURS):
            window = [*window, *(row(dice, hour * AN_HOUR + n) for n in range(AN_HOUR))][-WINDOW:]
            found = broken(window, reference)
            passes.update(found)
            seen.update(found)
        runs.update(seen)
    return {
        "weeks": weeks,
        "looks": weeks * HOURS,
        "alerts_per_week": sum(runs.values()) / weeks,
        "passes_per_week": sum(passes.values()) / weeks,
        "by_rule": dict(runs),
    }


def noticed(seeds: int) -> Json:
    """Trajectories from when the policy began to when a rule broke, and how far it had gone by then."""
    reference = reference_from_rows([row(random.Random(99), n) for n in range(2000)], "in training")
    after, shares, rules = [], [], Counter[str]()
    for seed in range(seeds):
        dice = random.Random(seed)
        window = [row(dice, n) for n in range(WINDOW)]
        for hour in range(1, 10 * HOURS_TO_LEARN):
            share = min(1.0, hour / HOURS_TO_LEARN)
            new = [exploit(dice, n) if dice.random() < share else row(dice, n) for n in range(AN_HOUR)]
            window = [*window, *new][-WINDOW:]
            if found := broken(window, reference):
                after.append(hour * AN_HOUR)
                shares.append(share)
                rules.update(found)
                break
    return {
        "seeds": seeds,
        "noticed": len(after),
        "median_trajectories": statistics.median(after),
        "median_share": statistics.median(shares),
        "largest_share": max(shares),
        "first_rules": dict(rules),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.monitors", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="one week, two seeds")
    options = parser.parse_args()
    found = {
        "quiet": quiet(1 if options.quick else WEEKS),
        "exploit": noticed(2 if options.quick else 20),
    }
    print(json.dumps(found) if options.json else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
