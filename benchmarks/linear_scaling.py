"""How training a linear model scales: `python -m benchmarks.linear_scaling [--json] [--quick] [--size N] [--out FILE]`.

Comparisons of trajectories of ten agent steps, whose words follow Zipf's law and whose true reward is linear in their
words (`benchmarks.zipf_world`). Each size is a training run, started as the product starts one. Reported of each:
seconds by the clock and of CPU, by phase; the highest memory; the accuracy on held-out comparisons, and that of who
knows the true rewards. `calibration`: CPU seconds of a fixed loop, by which machines can be compared.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.output import put_out
from benchmarks.zipf_world import ZipfWorld
from workers.errors import RewardError
from workers.schema import write_records

SIZES, QUICK = (1_000, 3_000, 10_000, 30_000, 100_000), (120,)
HELD_OUT, VALIDATION = 3_000, 600
_POLL_SECONDS = 0.05
# By the beginning of the message that a phase begins with; before the first of them, records are read.
_PHASES = {
    "training on ": "features",
    "choosing a ridge penalty": "penalty",
    "fitting ": "fit",
    "drawing ": "heads",
    "scoring ": "statistics",
    "evaluating ": "evaluation",
}
_MODEL_PHASES = ("reading", "features", "penalty", "fit", "heads", "statistics")  # until the model is saved
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class PhaseClock:
    """Seconds of a process by phase, as its event log tells phases. seconds: by the clock; cpu_seconds: of it and of
    the processes that it waited for."""

    process: int
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    _phase: str = "reading"
    _since: float = field(default_factory=time.monotonic)
    _cpu_since: float = 0.0

    def follow(self, events: Iterator[dict[str, Any]]) -> None:
        for event in events:
            if self._phase == "evaluation":  # which fits models, too
                continue
            message = event.get("message") or ""
            for begin, phase in _PHASES.items():
                if message.startswith(begin) and phase not in self.seconds and phase != self._phase:
                    self.enter(phase)

    def enter(self, phase: str, cpu_seconds: float | None = None) -> None:
        """cpu_seconds: so far; None to read them of the process, which still has to be there."""
        now, spent = time.monotonic(), self._read_cpu() if cpu_seconds is None else cpu_seconds
        self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._since
        self.cpu_seconds[self._phase] = self.cpu_seconds.get(self._phase, 0.0) + spent - self._cpu_since
        self._phase, self._since, self._cpu_since = phase, now, spent

    def _read_cpu(self) -> float:
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICK


def measure(size: int, *, quick: bool, backbone: str, folder: Path) -> dict[str, Any]:
    (folder / "data").mkdir()
    world = ZipfWorld()
    attainable = _write(folder, "test", world, 60 if quick else HELD_OUT)
    _write(folder, "validation", world, 60 if quick else VALIDATION)
    _write(folder, "train", world, size)
    config = {"recipe": {"backbone": backbone}, "seed": 0, "device": "cpu"}
    (folder / "config.json").write_text(json.dumps(config))
    return train(folder) | {"attainable": attainable}


def train(folder: Path) -> dict[str, Any]:
    """Of a run directory. Raises RewardError where the run fails."""
    process = subprocess.Popen([sys.executable, "-m", "workers.train", str(folder)])
    clock, log = PhaseClock(process.pid), EventLog(folder / "events.jsonl")
    while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        clock.follow(log.read())
        time.sleep(_POLL_SECONDS)
    _, status, usage = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RewardError(f"the training run ended with status {process.returncode}.")
    clock.enter("end", usage.ru_utime + usage.ru_stime)
    report = json.loads((folder / "report.json").read_bytes())
    found = report["preference"]
    return {
        "comparisons": report["train"]["examples"],
        "seconds": {name: round(seconds, 1) for name, seconds in clock.seconds.items()},
        "cpu_seconds": {name: round(seconds, 1) for name, seconds in clock.cpu_seconds.items()},
        "model_seconds": round(sum(clock.seconds.get(name, 0.0) for name in _MODEL_PHASES), 1),
        "model_cpu_seconds": round(sum(clock.cpu_seconds.get(name, 0.0) for name in _MODEL_PHASES), 1),
        "peak_gb": round(usage.ru_maxrss * 1024 / 1e9, 2),
        "accuracy": found["accuracy"],
        "interval": found["interval"],
        "penalty": next((line for line in log.messages if line.startswith("ridge penalty")), None),
    }


def _write(folder: Path, split: str, world: ZipfWorld, count: int) -> float:
    """How often who knows the rewards is right about them."""
    made = world.comparisons(count)
    write_records(folder / "data" / f"{split}.jsonl.zst", made.records)
    return made.attainable


class EventLog:
    """messages: all that were read."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0
        self.messages: list[str] = []

    def read(self) -> Iterator[dict[str, Any]]:
        """What was written since the last call; whole lines only."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            lines = file.read().rpartition(b"\n")[0]
        self._read += len(lines) + 1 if lines else 0
        for line in lines.splitlines():
            event = json.loads(line)
            if event.get("message"):
                self.messages.append(event["message"])
            yield event


def calibration_seconds() -> float:
    """CPU seconds of ten million additions in a loop."""
    started, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - started


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linear_scaling", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    parser.add_argument("--size", action="append", type=int, help=f"comparisons; without: {SIZES}")
    parser.add_argument("--backbone", default="linear", choices=("linear", "hybrid"))
    parser.add_argument("--out", type=Path, help="write the result as JSON to this file, too")
    arguments = parser.parse_args()
    found: dict[str, Any] = {"calibration": round(calibration_seconds(), 2), "sizes": []}
    lines = [f"calibration: {found['calibration']} CPU seconds"]
    for size in arguments.size or (QUICK if arguments.quick else SIZES):
        with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
            row = measure(size, quick=arguments.quick, backbone=arguments.backbone, folder=Path(scratch))
        found["sizes"].append(row)
        lines.append(_line(row))
        if not arguments.json:
            print(lines[-1], flush=True)
    put_out(found, [lines[0]], arguments)
    return 0


def _line(row: dict[str, Any]) -> str:
    phases = ", ".join(f"{name} {seconds}" for name, seconds in row["cpu_seconds"].items())
    low, high = row["interval"] or (float("nan"), float("nan"))
    return (
        f"{row['comparisons']:,} comparisons: a model after {row['model_seconds']} s ({row['model_cpu_seconds']} s of "
        f"CPU; by phase: {phases}), {row['peak_gb']} GB; {100 * row['accuracy']:.1f} % [{100 * low:.1f}, "
        f"{100 * high:.1f}] of {100 * row['attainable']:.1f} % attainable; {row['penalty']}"
    )


if __name__ == "__main__":
    sys.exit(main())
