"""How often our reward models prefer what people preferred: `python -m benchmarks.results [--json] [--quick]`.

Five folds by task, pooled: every comparison is predicted by a model that saw nothing of its task. Beside it stand
rules that need no model, and a bag of bigrams trained on the same folds.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.bag_of_bigrams import bag_of_bigrams
from benchmarks.preference_data import DATA, data_folder
from workers.errors import RewardError
from workers.evaluate import accuracy_report
from workers.evaluate.comparison import compare_predictions
from workers.evaluate.preference import predictions
from workers.models import build
from workers.schema.recipe import Recipe
from workers.train.folds import Folds
from workers.train.run import choose_device

_CACHE_BYTES = 1024**3
_QUICK_TASKS = 60

_FROZEN = Recipe(folds=5)
_UNFROZEN = Recipe(
    folds=5,
    unfrozen=True,
    epochs=2,
    encoder_learning_rate=5e-5,
    learning_rate=5e-4,
    batch_pairs=16,
    batch_tokens=8192,
    max_tokens=768,
)


@dataclass(frozen=True, slots=True)
class Case:
    data: str
    recipe: Recipe


CASES = {
    "hh-frozen": Case("hh", _FROZEN),
    "hh-unfrozen": Case("hh", _UNFROZEN),
    "fine-grained-frozen": Case("fine_grained", _FROZEN),
    "fine-grained-unfrozen": Case("fine_grained", replace(_UNFROZEN, epochs=1, max_tokens=2048)),
    "tau-bench-frozen": Case("tau_bench", _FROZEN),
}


def measure(case: Case, *, quick: bool, seed: int, say: Callable[..., None]) -> dict[str, Any]:
    """{accuracy, interval, n, baselines, verdict, folds, pairs, seconds}"""
    started = time.monotonic()
    records = list(DATA[case.data](data_folder()))
    recipe = case.recipe
    if quick:
        tasks = set(list(dict.fromkeys(record.a.task.id for record in records))[:_QUICK_TASKS])
        records = [record for record in records if record.a.task.id in tasks]
        recipe = replace(recipe, epochs=1, folds=2)
    like = None if recipe.unfrozen else build(recipe)
    cache = like.backbone.new_cache(_CACHE_BYTES) if like else None
    folds = Folds(recipe, seed, choose_device("auto"), say, cache=cache, like=like)
    found = predictions(folds.judge(records), recipe.criterion)
    peer = bag_of_bigrams(found, [folds.fold_of(one.record, recipe.folds, 0) for one in found])
    report = accuracy_report([one for one in found if one.is_strict])
    against = compare_predictions(found, peer)
    report["baselines"]["bag of bigrams"] = {
        "accuracy": report["accuracy"] - against["difference"],
        "difference": against["difference"],
        "interval": against["interval"],
    }
    return report | {"folds": recipe.folds, "pairs": len(records), "seconds": time.monotonic() - started}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.results", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few tasks, two folds, one epoch: does it run?")
    parser.add_argument("--case", action="append", choices=CASES, help="only these (all without)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="for torch; its own choice without")
    parser.add_argument("--out", type=Path, help="also write the JSON object here, after every case")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    results: dict[str, Any] = {}
    try:
        for name in arguments.case or CASES:
            results[name] = measure(CASES[name], quick=arguments.quick, seed=arguments.seed, say=_say)
            if arguments.out:
                arguments.out.write_text(json.dumps(results, indent=2) + "\n")
            if not arguments.json:
                print(*_lines(name, results[name]), sep="\n", flush=True)
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    if arguments.json:
        print(json.dumps(results))
    return 0


def _say(**event: Any) -> None:
    if event.get("message") or "validation" in event:
        sys.stderr.write(json.dumps(event) + "\n")


def _lines(name: str, result: dict[str, Any]) -> Iterator[str]:
    low, high = (100 * bound for bound in result["interval"])
    yield f"{name}: {100 * result['accuracy']:.1f} % [{low:.1f}, {high:.1f}] of {result['n']} strict comparisons"
    for rule, one in result["baselines"].items():
        low, high = (100 * bound for bound in one["interval"])
        gain = 100 * one["difference"]
        yield f"    against {rule} ({100 * one['accuracy']:.1f} %): {gain:+.1f} points [{low:.1f}, {high:.1f}]"
    yield f"    {result['verdict']}; {result['seconds']:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
