"""Does the explorer answer as quickly among many trajectories as among few, and do imports cost the same per row?

`python -m benchmarks.explorer [--json] [--quick]` prints {trajectories, import_seconds_per_1000, p95_ms: {question:
[..]}, ratio: {question: ..}}: 10,000 and then 100,000 trajectories of 20 steps in a database of its own, and the page
of fifty of each question asked many times, counting included. ratio: the second p95 over the first. The same number
match whatever is rare; what is frequent matches a tenth, a third or all.
"""

import argparse
import io
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import django

from benchmarks.import_scaling import own_database, server

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")

FULL, QUICK = (10_000, 100_000), (200, 800)
ASKED, QUICK_ASKED = 200, 5
CHUNK = 2_000  # trajectories a file
RARE = 5  # trajectories that hold each rare word
WORDS = 20_000  # others there are


def record(number: int, random: Random) -> dict[str, Any]:
    """Twenty steps of forty words; every number below 10,000 hides a rare word in one of them."""

    def text() -> str:
        return " ".join(f"word{int(random.paretovariate(0.6)) % WORDS}" for _ in range(40))

    messages = [{"role": "user" if step % 2 == 0 else "assistant", "content": text()} for step in range(20)]
    if number < FULL[0]:
        messages[random.randrange(20)]["content"] += f" rare{number // RARE}"
    return {
        "task": {"id": f"task-{number // 4}"},
        "agent": {"name": f"agent-{number % 10}", "version": str(number % 3)},
        "success": number % 3 == 0,
        "reward": number % 1000 / 1000,
        "metadata": {"group": number // 10},
        "messages": messages,
    }


def add(project: Any, start: int, stop: int) -> float:
    """Seconds a thousand."""
    from apps.trajectories.services import import_trajectories

    seconds = 0.0
    for first in range(start, stop, CHUNK):
        random = Random(first)
        numbers = range(first, min(first + CHUNK, stop))
        lines = b"".join(json.dumps(record(number, random)).encode() + b"\n" for number in numbers)
        since = time.perf_counter()
        import_trajectories(project=project, stream=io.BytesIO(lines), by=None)
        seconds += time.perf_counter() - since
    return 1000 * seconds / (stop - start)


def questions(few: int) -> dict[str, Callable[[Random], dict[str, Any]]]:
    """few: trajectories there were first."""
    return {
        "all": lambda random: {},
        "all, the last page": lambda random: {"page": 2_000},
        "all by reward": lambda random: {"sort": "outcome_reward"},
        "all by steps": lambda random: {"sort": "step_count"},
        "an agent by reward": lambda random: {
            "agent": f"agent-{random.randrange(10)}",
            "sort": "outcome_reward",
        },
        "a rare word": lambda random: {"text": f"rare{random.randrange(few // RARE)}"},
        "a frequent word": lambda random: {"text": "word1"},
        "two frequent words": lambda random: {
            "text": f"word{random.randrange(1, 6)} word{random.randrange(6, 12)}"
        },
        "a phrase": lambda random: {"text": f'"word1 word{random.randrange(1, 6)}"'},
        "a task": lambda random: {"task": f"task-{random.randrange(few // 4)}"},
        "an agent": lambda random: {"agent": f"agent-{random.randrange(10)}"},
        "failures of an agent": lambda random: {"agent": f"agent-{random.randrange(10)}", "success": False},
        "rewards": lambda random: {"reward_from": 0.5, "reward_to": 0.6},
        "metadata": lambda random: {"metadata": f"group={random.randrange(few // 10)}"},
        "a tool": lambda random: {"tool": f"tool-{random.randrange(50)}"},
        "failed calls of a tool": lambda random: {"failed_tool": "tool-7"},
        "not annotated": lambda random: {"annotated": "no"},
        "in no campaign, of an agent": lambda random: {"agent": "agent-3", "in_campaign": "no"},
        "a pattern nobody shows": lambda random: {"pattern": "error-loop"},
    }


def ask(project: Any, few: int, times: int) -> Iterator[tuple[str, float]]:
    """The 95th percentile of milliseconds of each question."""
    from apps.core.tables.displays import DEFAULT_PAGE_SIZE
    from apps.core.tables.row_pages import RowOrder, StoredRows
    from apps.trajectories.filter_queries import filter_trajectories

    for name, question in questions(few).items():
        random, waits = Random(1), []
        for _ in range(times):
            values = question(random)
            order = RowOrder(values.pop("sort", "created_at"), is_descending=True)
            page = values.pop("page", 1)
            rows = filter_trajectories(project, values)
            since = time.perf_counter()
            found = StoredRows(rows, order, lambda shown: shown.select_related("task"))
            start = min((page - 1) * DEFAULT_PAGE_SIZE, found.count - DEFAULT_PAGE_SIZE)
            found.page(max(0, start), max(0, start) + DEFAULT_PAGE_SIZE)
            waits.append(1000 * (time.perf_counter() - since))
        yield name, statistics.quantiles(waits, n=20)[-1]


def measure(sizes: tuple[int, int], times: int) -> dict[str, Any]:
    from django.db import connection

    from apps.accounts.models import Project

    found: dict[str, Any] = {"trajectories": list(sizes), "import_seconds_per_1000": [], "p95_ms": {}}
    with own_database("explorer"):
        project = Project.objects.create(slug="explorer")
        there = 0
        for size in sizes:
            found["import_seconds_per_1000"].append(round(add(project, there, size), 3))
            there = size
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")
            for name, p95 in ask(project, sizes[0], times):
                found["p95_ms"].setdefault(name, []).append(round(p95, 2))
    found["ratio"] = {name: round(many / few, 2) for name, (few, many) in found["p95_ms"].items()}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explorer", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few trajectories: does it run?")
    options = parser.parse_args()
    with server():
        django.setup()
        found = measure(QUICK, QUICK_ASKED) if options.quick else measure(FULL, ASKED)
    if options.json:
        print(json.dumps(found))
        return 0
    few, many = found["trajectories"]
    print(f"import, seconds a thousand: {found['import_seconds_per_1000']}")
    print(f"{'p95, ms':24}{few:>10,}{many:>10,}  ratio")
    for name, (one, other) in found["p95_ms"].items():
        print(f"{name:24}{one:10}{other:10}{found['ratio'][name]:7}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
