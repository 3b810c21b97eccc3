"""How often 95 % intervals hold the truth: `python -m benchmarks.interval_coverage [--json] [--quick]`.

Comparisons in tasks of unequal size whose accuracies differ (beta-binomial, intraclass correlation 0.2), for an
accuracy and for the paired difference of two models. Ends with 1 where fewer
than 93 % do, from 10 tasks on.
"""

import argparse
import json
import sys

import numpy as np

from workers.evaluate.bootstrap import difference_interval, mean_interval

REPEATS, TASKS = 2000, (3, 5, 10, 20, 50)
ACCURACIES = (0.6, 0.7, 0.8, 0.9)
_CORRELATION, _PER_TASK = 0.2, 4


def accuracy_coverage(accuracy: float, tasks: int, repeats: int, seed: int = 0) -> tuple[float, float]:
    """Share of intervals that contain the accuracy, and their mean width."""
    dice = np.random.default_rng([seed, tasks])
    strength = (1 - _CORRELATION) / _CORRELATION
    inside, widths = 0, []
    for _ in range(repeats):
        sizes = dice.integers(1, 2 * _PER_TASK, size=tasks)
        chances = dice.beta(accuracy * strength, (1 - accuracy) * strength, size=tasks)
        names = [str(name) for name in np.repeat(np.arange(tasks), sizes)]
        right = (dice.random(len(names)) < np.repeat(chances, sizes)).astype(float)
        _, (low, high) = mean_interval(list(right), names)
        inside += low <= accuracy <= high
        widths.append(high - low)
    return inside / repeats, float(np.mean(widths))


def difference_coverage(difference: float, tasks: int, repeats: int, seed: int = 0) -> tuple[float, float]:
    """The same of a paired difference: in every task, 30 % of comparisons on average are decided differently."""
    dice = np.random.default_rng([seed, tasks])
    inside, widths = 0, []
    for _ in range(repeats):
        sizes = dice.integers(1, 2 * _PER_TASK, size=tasks)
        shares = dice.dirichlet(np.array([0.15 + difference / 2, 0.15 - difference / 2, 0.7]) * 4, size=tasks)
        names = [str(name) for name in np.repeat(np.arange(tasks), sizes)]
        drawn = dice.random(len(names))
        wins, losses = np.repeat(shares[:, 0], sizes), np.repeat(shares[:, 1], sizes)
        ours = (drawn < wins).astype(float)
        theirs = ((drawn >= wins) & (drawn < wins + losses)).astype(float)
        _, (low, high) = difference_interval(list(ours), list(theirs), names)
        inside += low <= difference <= high
        widths.append(high - low)
    return inside / repeats, float(np.mean(widths))


def measure(repeats: int) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = []
    for tasks in TASKS:
        for accuracy in ACCURACIES:
            coverage, width = accuracy_coverage(accuracy, tasks, repeats)
            rows.append({"of": f"accuracy {accuracy}", "tasks": tasks, "coverage": coverage, "width": width})
        for difference in (0.0, 0.1):
            coverage, width = difference_coverage(difference, tasks, repeats)
            rows.append(
                {"of": f"difference {difference}", "tasks": tasks, "coverage": coverage, "width": width}
            )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interval_coverage", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="100 repeats")
    options = parser.parse_args()
    rows = measure(100 if options.quick else REPEATS)
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            print(
                f"{row['of']:16} {row['tasks']:3} tasks  covers {row['coverage']:6.1%}  width {row['width']:.2f}"
            )
    short = [row for row in rows if float(row["tasks"]) >= 10 and float(row["coverage"]) < 0.93]
    return int(bool(short) and not options.quick)


if __name__ == "__main__":
    sys.exit(main())
