"""How inductions grow: `python -m benchmarks.induction_growth [--json] [--quick]`.

The embedded engine on 1,000, 3,000 and 10,000 comments, every one worded differently, on as many conversations of the
sample world as they need, each in a process of its own: seconds, and peak memory.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apps.demo import annotators
from apps.demo.agents import STYLES, Conversation, converse
from apps.demo.world import TASKS
from benchmarks.docs_writer import write_between
from workers.schema import Task, Trajectory, from_messages, write_trajectories

SIZES = (1_000, 3_000, 10_000)
_QUICK = (30, 90)


def conversations() -> Iterator[Conversation]:
    """Without end, of every task and style in turn."""
    dice, number = random.Random(0), 0
    while True:
        for task in sorted(TASKS):
            yield converse(TASKS[task], dice.choice(list(STYLES)), f"{task}-growth-{number}")
            number += 1


def write_folder(folder: Path, comments: int) -> int:
    """An induction's folder with so many comments; how many trajectories they are on."""
    spoken, said = conversations(), list[dict[str, Any]]()
    kept: list[Conversation] = []
    while len(said) < comments:
        part = [next(spoken) for _ in range(100)]
        kept += part
        for raw in annotators.comments(part):
            number = len(said)
            steps = raw["anchor"]["steps"] if raw.get("anchor") else None
            said.append(
                {
                    "id": str(number),
                    "trajectory": raw["trajectory"]["trajectory_id"],
                    "text": f"{raw['text'].rstrip('.')} in case {number}.",
                    "sign": raw.get("sign"),
                    "steps": steps,
                }
            )
    said = said[:comments]
    with (folder / "comments.jsonl").open("w") as out:
        out.writelines(json.dumps(comment) + "\n" for comment in said)
    meant = {comment["trajectory"] for comment in said}
    runs = [conversation for conversation in kept if conversation.id in meant]
    write_trajectories(folder / "trajectories.jsonl.zst", map(_trajectory, runs))
    (folder / "config.json").write_text(json.dumps({"seed": 0}))
    return len(runs)


def measure(comments: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        runs = write_folder(folder, comments)
        started = time.monotonic()
        child = subprocess.Popen([sys.executable, "-m", "workers.induce", str(folder)])
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - started
        if status:
            raise SystemExit(f"the induction of {comments} comments ended with status {status}")
        result = json.loads((folder / "result.json").read_text())
    return {
        "comments": comments,
        "trajectories": runs,
        "points": result["aspects"],
        "metrics": len(result["metrics"]),
        "seconds": seconds,
        "peak_mb": used.ru_maxrss / 1024,
    }


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| comments | runs | points | metrics | seconds | per 1,000 | peak memory |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        each = row["seconds"] / row["comments"] * 1000
        lines.append(
            f"| {row['comments']:,} | {row['trajectories']:,} | {row['points']:,} | {row['metrics']} "
            f"| {row['seconds']:.0f} | {each:.0f} | {row['peak_mb']:.0f} MB |"
        )
    return "\n".join(lines)


def _trajectory(one: Conversation) -> Trajectory:
    return Trajectory(steps=from_messages(one.messages), task=Task(id=one.task.id), id=one.id)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.induction_growth", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few comments: does it run?")
    parser.add_argument("--write", type=Path, help="put the table into this Markdown file, between its marks")
    options = parser.parse_args()
    rows = [measure(size) for size in (_QUICK if options.quick else SIZES)]
    if options.write:
        write_between(options.write, "induction_growth", table(rows).split("\n"))
    print(json.dumps({"sizes": rows}) if options.json else table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
