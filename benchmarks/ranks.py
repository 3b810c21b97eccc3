"""Training speed of several processes next to one: `python -m benchmarks.ranks [--json] [--quick] [--data NAME]`.

The same decoder (random weights), the same batches of real comparisons, float32: one process with one thread, two
processes with one thread each, one process with two threads. Processes are started as
`python -m workers.train --processes` starts them. `cpu_speedup` compares the CPU seconds of one process with those of
the busiest rank in each step: what the speedup is where no other work takes the cores (`disturbed`: the share of time
in which other work did). Ratios are of the seconds of the same steps; the intervals, 95 %, are
bootstrapped over steps.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.by_data_set import measure_each
from benchmarks.public_data import PAIRS, data_folder
from benchmarks.small_decoder import save_decoder, trajectory_texts
from workers.errors import RewardError
from workers.models import renderer_of
from workers.objectives import Examples, collect
from workers.schema import read_records, write_records
from workers.schema.recipe import parse_recipe
from workers.train.batches import TrainingBatch
from workers.train.distributed import join_process_group
from workers.train.distributed.launch import train_together
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.trainer import RewardTrainer

# Comparisons, how many in a batch, the longest trajectory in tokens, and epochs.
SIZES = {"hh": (384, 16, 2048, 1), "tau_bench": (57, 16, 2048, 1)}
QUICK = {"hh": (4, 2, 128, 1), "tau_bench": (4, 2, 128, 1)}
SETTINGS = {"one": (1, 1), "two_ranks": (2, 1), "two_threads": (1, 2)}  # processes, threads of each


def measure(name: str, *, quick: bool, folder: Path, pairs: int | None = None) -> dict[str, Any]:
    count, batch, longest, epochs = (QUICK if quick else SIZES)[name]
    records = [pair for pair in PAIRS[name](data_folder()) if pair.choice in ("a", "b")][: pairs or count]
    recipe = {
        "backbone": "decoder",
        "decoder": str(
            save_decoder(folder / "base", trajectory_texts(records), vocabulary=8192, width=192, layers=4)
        ),
        "lora_rank": 0,
        "max_tokens": longest,
        "epochs": epochs,
        "batch_pairs": batch,
        "batch_tokens": 10**6,
        "patience": 0,
        "precision": "float32",
    }
    (folder / "recipe.json").write_text(json.dumps(recipe))
    write_records(folder / "records.jsonl.zst", records)
    found = {setting: _train(folder, setting) for setting in SETTINGS}
    one = found["one"]
    return {
        "pairs": len(records),
        "batch_pairs": batch,
        "steps": len(one["losses"]),
        "seconds": {setting: sum(each["seconds"]) for setting, each in found.items()},
        "spent": {setting: each["spent"] for setting, each in found.items()},
        "speedup": _ratio(one["seconds"], found["two_ranks"]["seconds"]),
        "cpu_speedup": _ratio(one["cpu_seconds"], found["two_ranks"]["cpu_seconds"]),
        "disturbed": sum(one["seconds"]) / sum(one["cpu_seconds"]) - 1,
        "vs_two_threads": _ratio(found["two_threads"]["seconds"], found["two_ranks"]["seconds"]),
        "loss_difference": float(np.abs(np.subtract(one["losses"], found["two_ranks"]["losses"])).max()),
    }


def _ratio(slow: list[float], fast: list[float]) -> dict[str, Any]:
    """Of the sums over the same steps, with its interval over steps drawn with replacement."""
    drawn = np.random.default_rng(0).integers(len(slow), size=(2000, len(slow)))
    ratios = np.asarray(slow)[drawn].sum(1) / np.asarray(fast)[drawn].sum(1)
    return {"ratio": sum(slow) / sum(fast), "interval": np.quantile(ratios, [0.025, 0.975]).tolist()}


def _train(folder: Path, setting: str) -> dict[str, Any]:
    processes, threads = SETTINGS[setting]
    out = folder / f"{setting}.json"
    command = [sys.executable, "-m", "benchmarks.ranks", "--rank", str(folder), str(out), str(threads)]
    if status := train_together(command, processes):
        raise RewardError(f"a training process ended with status {status}.")
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def train_rank(folder: Path, out: Path, threads: int) -> None:
    """One process. The first writes the seconds and the loss of each step, and what its time was spent on."""
    torch.set_num_threads(threads)
    recipe = parse_recipe(json.loads((folder / "recipe.json").read_text()))
    records = [*read_records(folder / "records.jsonl.zst")]
    process_group = join_process_group(torch.device("cpu"))
    torch.manual_seed(0)
    module = MultiObjectiveModule(recipe, collect(records, renderer_of(recipe), recipe), seed=0)
    trainer = TimedTrainer(
        module, recipe, Examples(), seed=0, report=lambda **event: None, process_group=process_group
    )
    trainer.run()
    spent = [trainer.process_group.all_reduce_max(part)[0] for part in trainer.spent.values()]
    by_rank = trainer.process_group.all_gather(trainer.cpu_seconds)
    if process_group.is_main_process:
        busiest = [max(step) for step in zip(*by_rank, strict=True)]
        result = {"seconds": trainer.seconds, "losses": trainer.losses, "cpu_seconds": busiest}
        out.write_text(json.dumps(result | {"spent": dict(zip(trainer.spent, spent, strict=True))}))
    process_group.destroy()


class TimedTrainer(RewardTrainer):
    """seconds: of each step. cpu_seconds: that the process computed in it. spent: seconds of all steps, by what they
    were spent on; `exchange` is with the waiting for the slower rank."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seconds: list[float] = []
        self.cpu_seconds: list[float] = []
        self.spent = dict.fromkeys(("compute", "exchange", "optimiser"), 0.0)
        self._time("compute", self, "_backward")
        self._time("exchange", self.process_group, "sum_gradients")
        self._time("optimiser", self.optimiser, "step")

    def _time(self, name: str, owner: Any, method: str) -> None:
        inner = getattr(owner, method)

        def timed(*values: Any) -> Any:
            started = time.perf_counter()
            result = inner(*values)
            self.spent[name] += time.perf_counter() - started
            return result

        setattr(owner, method, timed)

    def _train_step(self, batch: TrainingBatch) -> float:
        self.process_group.all_reduce_max(0.0)  # all begin together
        started, cpu_started = time.perf_counter(), time.process_time()
        loss = super()._train_step(batch)
        self.seconds.append(time.perf_counter() - started)
        self.cpu_seconds.append(time.process_time() - cpu_started)
        return loss


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few comparisons: does it run?")
    parser.add_argument("--data", action="append", choices=SIZES, help="only these (all without)")
    parser.add_argument("--pairs", type=int, help="of each data set, instead of its number")
    parser.add_argument("--rank", nargs=3, metavar=("FOLDER", "OUT", "THREADS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        folder, out, threads = arguments.rank
        train_rank(Path(folder), Path(out), int(threads))
        return 0
    return measure_each(
        arguments.data or SIZES,
        lambda name, folder: measure(name, quick=arguments.quick, folder=folder, pairs=arguments.pairs),
        _lines,
        as_json=arguments.json,
    )


def _lines(name: str, one: dict[str, Any]) -> list[str]:
    seconds = ", ".join(f"{setting} {value:.1f}" for setting, value in one["seconds"].items())
    ratios = [
        f"{each['ratio']:.2f} [{each['interval'][0]:.2f}, {each['interval'][1]:.2f}]"
        for each in (one["speedup"], one["vs_two_threads"], one["cpu_speedup"])
    ]
    return [
        f"{name}: two ranks {ratios[0]} times as fast as one with one thread, {ratios[1]} times as one with two",
        f"    {one['pairs']} pairs, {one['steps']} steps of {one['batch_pairs']}; seconds: {seconds}; losses differ "
        f"by at most {one['loss_difference']:.1e}",
        f"    by CPU seconds of the busiest rank: {ratios[2]}; one thread waited {100 * one['disturbed']:.0f} % longer "
        "than it computed",
        *(
            f"    {setting}: " + ", ".join(f"{part} {seconds:.2f} s" for part, seconds in spent.items())
            for setting, spent in one["spent"].items()
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
