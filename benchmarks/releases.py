"""How often release rules pass bad candidates: `python -m benchmarks.releases [--json] [--quick]`.

Simulated releases of every kind, decided every 20 items up to 5,000, as an installation decides them. `bad` candidates
break one default rule: at most 5 % may pass. Of `equal` ones at most 1 % may be rolled back, and at most 20 % may be
undecided after 5,000 items. Ends with 1 where one of these does not hold.
"""

import argparse
import json
import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.rewards.pair_statistics import PairStatistics
from apps.rewards.releases import ReleaseRules, decide_release

RELEASES, MOST_ITEMS, STEP = 2000, 5000, 20
_PRODUCTS = ((0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3))


@dataclass(frozen=True, slots=True)
class Candidate:
    """failed: share of items. uncertain: of active and candidate. agreement, length: correlations, as the rules have
    them. heavy: rewards of Student's t with 5 degrees of freedom in place of normal ones."""

    is_bad: bool
    failed: float = 0.0
    uncertain: tuple[float, float] = (0.1, 0.1)
    agreement: float = 0.9
    length: tuple[float, float] = (0.0, 0.0)
    heavy: bool = False


CANDIDATES = {
    "equal": Candidate(False),
    "equal, heavy tails": Candidate(False, heavy=True),
    "equal, fails on 0.2 %": Candidate(False, failed=0.002),
    "equal, 30 % uncertain": Candidate(False, uncertain=(0.3, 0.3)),
    "equal, rewards by length (0.5)": Candidate(False, length=(0.5, 0.5)),
    "equal, less by length (0.6 to 0.2)": Candidate(False, length=(0.6, 0.2), agreement=0.8),
    "fails on 1.2 % (1 % allowed)": Candidate(True, failed=0.012),
    "fails on 1.5 %": Candidate(True, failed=0.015),
    "fails on 2 %": Candidate(True, failed=0.02),
    "uncertain 10 % to 16 % (+5 allowed)": Candidate(True, uncertain=(0.1, 0.16)),
    "uncertain 10 % to 20 %": Candidate(True, uncertain=(0.1, 0.2)),
    "uncertain 0 % to 6 %": Candidate(True, uncertain=(0.0, 0.06)),
    "length 0 to 0.12 (+0.1 allowed)": Candidate(True, length=(0.0, 0.12)),
    "length 0 to 0.15, heavy tails": Candidate(True, length=(0.0, 0.15), heavy=True),
    "length -0.6 to +0.6": Candidate(True, length=(-0.6, 0.6), agreement=0.2),
    "length 0.5 to 0.65": Candidate(True, length=(0.5, 0.65)),
    "agreement 0.45 (0.5 required)": Candidate(True, agreement=0.45),
    "agreement 0": Candidate(True, agreement=0.0),
    "agreement 0.4, heavy tails": Candidate(True, agreement=0.4, heavy=True),
}


def draw(candidate: Candidate, items: int, dice: np.random.Generator) -> NDArray[np.float64]:
    """[items, 7]: failed, uncertain of active and candidate, then active, candidate, log length, steps."""
    first, second = candidate.length
    own = (candidate.agreement - first * second) / math.sqrt((1 - first**2) * (1 - second**2))
    own = max(-1.0, min(1.0, own))
    length, shared, noise = dice.normal(size=(3, items))
    if candidate.heavy:
        scale = np.sqrt(3 / dice.chisquare(5, size=items))  # t with 5 degrees of freedom has variance 5/3
        shared, noise = shared * scale, noise * scale
    active = first * length + math.sqrt(1 - first**2) * shared
    residual = own * shared + math.sqrt(1 - own**2) * noise
    rewards = second * length + math.sqrt(1 - second**2) * residual
    flags = [dice.random(items) < share for share in (candidate.failed, *candidate.uncertain)]
    return np.stack([*flags, active, rewards, 5 + length, np.full(items, 1.4)], axis=1)


def decide(candidate: Candidate, dice: np.random.Generator, *, items: int = MOST_ITEMS) -> tuple[str, int]:
    """`passes`, `fails` or `waits`, and the items it took."""
    rows = draw(candidate, items, dice)
    scored = rows[:, 0] == 0
    kept = np.where(scored[:, None], rows[:, 1:], 0.0)
    numbers = kept[:, 2:]
    sums = np.concatenate(
        [kept[:, :2], numbers, *(numbers[:, i : i + 1] * numbers[:, j : j + 1] for i, j in _PRODUCTS)], 1
    )
    sums, pairs = np.cumsum(sums, 0), np.cumsum(scored)
    rules = ReleaseRules()
    for end in range(STEP, items + 1, STEP):
        total = sums[end - 1]
        statistics = PairStatistics(
            pairs=int(pairs[end - 1]),
            failed=end - int(pairs[end - 1]),
            uncertain_active=int(total[0]),
            uncertain_candidate=int(total[1]),
            moments=[float(value) for value in total[2:]],
        )
        says = decide_release(statistics, rules).says
        if says != "waits":
            return says, end
    return "waits", items


def measure(releases: int, seed: int = 0) -> dict[str, dict[str, float]]:
    """{candidate: {passes, fails, waits: shares, items: median}}"""
    found = {}
    for number, (name, candidate) in enumerate(CANDIDATES.items()):
        dice = np.random.default_rng([seed, number])
        decisions = [decide(candidate, dice) for _ in range(releases)]
        shares = {
            kind: float(np.mean([says == kind for says, _ in decisions]))
            for kind in ("passes", "fails", "waits")
        }
        found[name] = shares | {"items": float(np.median([items for _, items in decisions]))}
    return found


def holds(name: str, shares: dict[str, float]) -> bool:
    if CANDIDATES[name].is_bad:
        return shares["passes"] <= 0.05
    return shares["fails"] <= 0.01 and shares["waits"] <= 0.2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.releases", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="20 releases of each kind")
    options = parser.parse_args()
    found = measure(20 if options.quick else RELEASES)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"{'candidate':40} passes  rolled back  undecided  median items")
        for name, shares in found.items():
            mark = "" if holds(name, shares) else "  does not hold"
            print(
                f"{name:40} {shares['passes']:6.1%}  {shares['fails']:11.1%}  {shares['waits']:9.1%}  "
                f"{shares['items']:12.0f}{mark}"
            )
    return int(not options.quick and not all(holds(name, shares) for name, shares in found.items()))


if __name__ == "__main__":
    sys.exit(main())
