"""Trajectories a second that a simple reward program scores, in the sandbox and by a process of CPython for each batch.

Both score the same plain items with the same code. The peer is what people do without a sandbox inside of the process:
`python -I` as a child, given JSON, with limits of memory and processor time; once for a batch, and once for each item.

    python -m benchmarks.reward_programs [--json] [--quick]
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.output import put_out
from workers.programs.plain_items import plain_item
from workers.programs.sandbox import ProgramResult, run_program
from workers.programs.source import read_program
from workers.schema import parse_item

CODE = """
WORDS = ("please", "thanks", "sorry")

def polite(text):
    return sum(word in text.lower() for word in WORDS)

def reward(trajectory):
    agent = [step for step in trajectory["steps"] if step["source"] == "agent"]
    return polite(agent[-1]["message"]) - 0.1 * len(agent)
"""
CHILD = """
import json, sys
given = json.load(sys.stdin)
found = []
for trajectory in given["trajectories"]:
    names = {}
    exec(given["code"], names)
    found.append(names["reward"](trajectory))
json.dump(found, sys.stdout)
"""
MEGABYTES = 512


def item() -> dict[str, Any]:
    call = {"name": "search", "arguments": '{"to": "Rome", "date": "2026-05-01"}'}
    made = {"id": "c", "type": "function", "function": call}
    return {
        "messages": [
            {"role": "user", "content": "Book a flight to Rome, please."},
            {"role": "assistant", "content": "I look.", "tool_calls": [made]},
            {"role": "tool", "tool_call_id": "c", "content": "3 flights, the first at 9:00"},
            {"role": "assistant", "content": "Thanks, it is booked."},
        ]
    }


def sandboxed(plain: list[dict[str, Any]]) -> list[float]:
    results = run_program(read_program(CODE), plain)
    assert all(isinstance(result, ProgramResult) for result in results)
    return [result.reward for result in results if isinstance(result, ProgramResult)]


def in_a_child(plain: list[dict[str, Any]]) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-I", "-c", CHILD],
        input=json.dumps({"code": CODE, "trajectories": plain}),
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=_limit,
    )
    found: list[float] = json.loads(done.stdout)
    return found


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES * 2**20, MEGABYTES * 2**20))
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))


def rate(run: Callable[[list[dict[str, Any]]], list[float]], plain: list[dict[str, Any]], size: int) -> float:
    """The best of three, in trajectories a second, `size` of them in a call."""
    best = 0.0
    for _ in range(3):
        start = time.perf_counter()
        for first in range(0, len(plain), size):
            run(plain[first : first + size])
        best = max(best, len(plain) / (time.perf_counter() - start))
    return best


def measure(count: int) -> dict[str, Any]:
    parsed = [parse_item(item()) for _ in range(count)]
    start = time.perf_counter()
    plain = [plain_item(each) for each in parsed]
    made = time.perf_counter() - start
    assert sandboxed(plain[:3]) == in_a_child(plain[:3])
    ours = {size: rate(sandboxed, plain, size) for size in (1, 100, count)}
    theirs = {1: rate(in_a_child, plain[: count // 50], 1), 100: rate(in_a_child, plain, 100)}
    return {
        "sandbox_per_second": {str(size): round(speed) for size, speed in ours.items()},
        "with_plain_items_per_second": round(count / (made + count / ours[count])),
        "child_per_second": {str(size): round(speed) for size, speed in theirs.items()},
        "sandbox_vs_child": {str(size): round(ours[size] / theirs[size], 2) for size in theirs},
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reward_programs", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="500 trajectories: does it run?")
    parser.add_argument("--out", type=Path, help="a file for the JSON object")
    options = parser.parse_args()
    found = measure(500 if options.quick else 5_000)
    put_out(found, (f"{name}: {value}" for name, value in found.items()), options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
