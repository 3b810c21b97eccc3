"""Everything at once under random faults, `rewards` under load and faults, and memory over long work.

    python -m benchmarks.faults [--json] [--quick] [--part random|rewards|memory] [--seeds 0-99] [--seconds 60]

It measures no speed; it counts what was promised and not kept. tests/faults has the harness, and CI runs it shorter.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.faults import chaos, load, memory, scenario
from tests.faults.outside import BROKERS, outside_database, wired
from tests.faults.scenario import installation

PARTS = ("random", "rewards", "memory")


def one_random(seed: int, seconds: float, models: Path) -> dict[str, Any]:
    """Even seeds run embedded, the others on the PostgreSQL of SERVER with Redis and RabbitMQ in turn."""
    broker = ["embedded", "redis", "embedded", "rabbitmq"][seed % 4]
    with contextlib.ExitStack() as stack:
        environment, outside = {}, {}
        if broker != "embedded":
            database = stack.enter_context(outside_database(f"touchstone_faults_{seed}"))
            environment, wires = stack.enter_context(wired(database, BROKERS[broker]))
            outside = {"wires": wires, "direct": database}
        installed = stack.enter_context(installation(models, environment, **outside))
        installed.stack.add("second gpu", "worker", "gpu")
        plan = chaos.plan(seed, seconds, outside=bool(outside))
        ledger = scenario.endure(installed, {seed: plan}, seconds)
        scenario.end(installed, ledger)
    return {"seed": seed, "broker": broker} | ledger.summary()


def _ends_of(text: str) -> str:
    return text if len(text) <= 9000 else f"{text[:1000]} ... {text[-8000:]}"


def random_runs(seeds: list[int], seconds: float, models: Path) -> dict[str, Any]:
    found = []
    for seed in seeds:
        began = time.monotonic()
        try:
            one = one_random(seed, seconds, models)
        except AssertionError as error:
            one = {"seed": seed, "violations": [_ends_of(f"{error}")]}
        found.append(one)
        print(f"{time.monotonic() - began:5.0f} s  {json.dumps(one)}", file=sys.stderr, flush=True)
    names = ("judgements", "trajectories", "runs", "scores", "refused", "faults")
    total = {name: sum(result.get(name, 0) for result in found) for name in names}
    return {
        "seeds": len(found),
        "seconds": seconds,
        **total,
        "violated": [result for result in found if result["violations"]],
    }


def under_load(seconds: float, clients: int, kills: int, away: float, models: Path) -> dict[str, Any]:
    with installation(models, load.environment()) as installed:
        return load.run(installed, clients=clients, seconds=seconds, kills=kills, database_away=away)


def memory_over(scale: float, models: Path) -> dict[str, Any]:
    with installation(models, memory.environment()) as installed:
        return {
            "requests": memory.requests(installed, int(200_000 * scale)),
            "page_views": memory.page_views(installed, int(2_000 * scale)),
            "runs": memory.runs(installed, max(2, int(50 * scale))),
        }


def broken(result: dict[str, Any]) -> bool:
    """Whether something was promised and not kept."""
    load = result.get("rewards", {})
    kept = not load.get("wrong") and not load.get("not_retryable") and not load.get("violations")
    return not kept or bool(result.get("random", {}).get("violated"))


def seeds_of(text: str) -> list[int]:
    """Of `7` or `0-99`. Raises ArgumentTypeError for anything else, and for a range without a seed."""
    first, dash, last = text.partition("-")
    try:
        seeds = list(range(int(first), int(last if dash else first) + 1))
    except ValueError:
        seeds = []
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text!r} is no seed and no range of them, such as 7 or 0-99")
    return seeds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a few seeds, seconds instead of minutes")
    parser.add_argument("--part", choices=PARTS, help="only this one")
    parser.add_argument(
        "--seeds", type=seeds_of, help="a number, or FIRST-LAST: replays the plans of those seeds"
    )
    parser.add_argument("--seconds", type=float, help="of each random run")
    asked = parser.parse_args()
    seeds = asked.seeds or list(range(4 if asked.quick else 100))
    seconds = asked.seconds or (15.0 if asked.quick else 60.0)
    with tempfile.TemporaryDirectory(prefix="touchstone-faults-") as folder:
        models = Path(folder)
        parts = {
            "random": lambda: random_runs(seeds, seconds, models),
            "rewards": lambda: under_load(
                *((30.0, 16, 6, 5.0) if asked.quick else (600.0, 64, 40, 30.0)), models
            ),
            "memory": lambda: memory_over(0.02 if asked.quick else 1.0, models),
        }
        result = {name: part() for name, part in parts.items() if asked.part in (None, name)}
    print(json.dumps(result) if asked.json else json.dumps(result, indent=2))
    return 1 if broken(result) else 0


if __name__ == "__main__":
    sys.exit(main())
