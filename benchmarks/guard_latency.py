"""How long an endpoint's guard takes to decide by policy checks alone, on real conversations of tau-bench.

    python -m benchmarks.guard_latency --url URL --key KEY --endpoint NAME [--most N]

The endpoint has the checks of benchmarks/policy_checks_airline.yaml as its only component. Each call of a tool in the
airline trajectories is asked about with what came before it, one after the other over one connection, by `guard()` and,
for comparison, by `score()` of the same input, in turns. The first 20 are left out.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from touchstone_client import RewardClient

from benchmarks.policy_checks import DOMAINS, clean_messages
from benchmarks.policy_texts import runs_of

_WARM_UP = 20


def proposals() -> Iterator[tuple[list[dict[str, Any]], dict[str, Any]]]:
    for run in runs_of(DOMAINS["airline"]):
        messages = clean_messages(run["traj"])
        for place, message in enumerate(messages):
            if message.get("tool_calls"):
                yield messages[:place], message


def measure_latency(client: RewardClient, most: int) -> dict[str, Any]:
    """Milliseconds at the client, by quantile; decisions by kind."""
    guard, score, decisions = list[float](), list[float](), dict[str, int]()
    for number, (messages, action) in enumerate(proposals()):
        if number == most + _WARM_UP:
            break
        started = time.perf_counter()
        found = client.guard(messages, action)
        between = time.perf_counter()
        client.score([{"messages": [*messages, action]}])
        ended = time.perf_counter()
        decisions[found.decision] = decisions.get(found.decision, 0) + 1
        if number >= _WARM_UP:
            guard.append(1000 * (between - started))
            score.append(1000 * (ended - between))
    return {
        "calls": len(guard),
        "decisions": decisions,
        "guard": _quantiles(guard),
        "score": _quantiles(score),
    }


def _quantiles(values: list[float]) -> dict[str, float]:
    levels = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return {name: round(float(np.quantile(values, level)), 2) for name, level in levels.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--url", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--most", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("guard_latency.json"))
    options = parser.parse_args()
    with RewardClient(options.url, options.endpoint, options.key) as client:
        found = measure_latency(client, options.most)
    options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
