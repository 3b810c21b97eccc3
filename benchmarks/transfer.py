"""What other people's comparisons bring to a small set: `python -m benchmarks.transfer [--write FILE] [--out FILE]`.

For each set of public comparisons, a parent is trained on all others together, or, with `--source same`, on half of the
set's own tasks, and the rest below is about the other half. Five folds by task, pooled: a model is
fitted to 50, 200 or all comparisons of the other four folds, without the parent and with its weights as prior mean,
times a factor that is chosen within these comparisons. Both judge the fifth fold; the difference is paired, by task.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import torch

from benchmarks.docs_writer import write_between
from benchmarks.public_data import DATA, data_folder
from workers.evaluate.bootstrap import difference_interval, mean_interval
from workers.evaluate.predictions import RecordScorer
from workers.evaluate.preference import correctness, predictions
from workers.models import LoadedModel, RewardModel, build, renderer_of
from workers.objectives import Examples, collect_training
from workers.schema import PreferenceRecord
from workers.schema.recipe import Recipe, parse_recipe
from workers.schema.task_folds import task_folds
from workers.text import RememberingRenderer
from workers.train.convex import ConvexTrainer
from workers.train.events import no_report
from workers.train.multi_objective import MultiObjectiveModule

SIZES = (50, 200, None)  # None: all
_FOLDS, _CACHE_BYTES = 5, 1024**3
_NAMES = {
    "hh": "HH harmless",
    "fine_grained": "FineGrained",
    "pandalm": "PandaLM majority",
    "tau_bench": "tau-bench pairs",
}


class Transfer:
    """All fits share what was rendered, hashed and embedded."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.like = build(recipe)
        self.cache: Any = self.like.new_cache(_CACHE_BYTES)
        self._parents: dict[str, RewardModel] = {}
        self.renderer = RememberingRenderer(renderer_of(recipe))
        self.sets: dict[str, list[PreferenceRecord]] = {
            name: [record for record in DATA[name](data_folder()) if record.choice in ("a", "b")]
            for name in _NAMES
        }

    def row(self, name: str, size: int | None, source: str) -> dict[str, Any] | None:
        """Accuracies without and with the parent, their difference, the factors of the folds; None for a set that is
        hardly larger than the size."""
        learnt, records = self._halves(name) if source == "same" else (self._others(name), self.sets[name])
        if size is not None and size > 0.75 * len(records):
            return None
        parent = self._parent(f"{source} {name}", learnt)
        fold_of = task_folds([record.a.task.id for record in records], _FOLDS)
        right: dict[bool, list[float]] = {False: [], True: []}
        tasks: list[str] = []
        factors: Counter[float] = Counter()
        for fold in range(_FOLDS):
            rest = [record for record, own in zip(records, fold_of, strict=True) if own != fold]
            held_out = [record for record, own in zip(records, fold_of, strict=True) if own == fold]
            some = rest if size is None else random.Random(fold).sample(rest, size)
            for has_parent in (False, True):
                trainer = self._fit(some, parent if has_parent else None)
                right[has_parent] += self._right(trainer.model, held_out)
                if has_parent and trainer.penalty is not None:
                    factors[trainer.penalty.factor] += 1
            tasks += [record.a.task.id for record in held_out]
        difference, interval = difference_interval(right[True], right[False], tasks)
        return {
            "name": name,
            "source": source,
            "size": size,
            "n": len(tasks),
            "without": mean_interval(right[False], tasks),
            "with": mean_interval(right[True], tasks),
            "difference": difference,
            "interval": interval,
            "factors": {f"{factor:g}": count for factor, count in sorted(factors.items())},
            "parent": self._parent_alone(parent, records),
        }

    def _others(self, name: str) -> list[PreferenceRecord]:
        return [record for other, records in self.sets.items() if other != name for record in records]

    def _halves(self, name: str) -> list[list[PreferenceRecord]]:
        """By task."""
        records = self.sets[name]
        half_of = task_folds([record.a.task.id for record in records], 2)
        return [
            [record for record, own in zip(records, half_of, strict=True) if own == half] for half in (0, 1)
        ]

    def _parent(self, key: str, records: Sequence[PreferenceRecord]) -> RewardModel:
        if key not in self._parents:
            self._parents[key] = self._fit(records).model
        return self._parents[key]

    def _parent_alone(self, parent: RewardModel, records: Sequence[PreferenceRecord]) -> Any:
        return mean_interval(self._right(parent, records), [record.a.task.id for record in records])

    def _fit(self, records: Sequence[PreferenceRecord], parent: RewardModel | None = None) -> ConvexTrainer:
        torch.manual_seed(0)
        examples = collect_training(records, self.renderer, self.recipe)
        module = MultiObjectiveModule(self.recipe, examples, seed=0, like=self.like, parent=parent)
        trainer = ConvexTrainer(module, self.recipe, Examples(), seed=0, report=no_report, cache=self.cache)
        trainer.run()
        return trainer

    def _right(self, model: RewardModel, records: Sequence[PreferenceRecord]) -> list[float]:
        loaded = LoadedModel(
            model, {"criterion": None, "criteria": {}, "reward": {"median": 0.0, "std": 1.0}}
        )
        loaded.renderer = self.renderer
        found = predictions(RecordScorer(loaded, cache=self.cache)(records), {None})
        return [correctness(prediction.margin) for prediction in found]


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| learns from | judged | parent alone | without a parent | with it | difference | factors (folds) |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        size = "all (four fifths)" if row["size"] is None else str(row["size"])
        factors = ", ".join(f"{factor} ({count})" for factor, count in row["factors"].items())
        cells = [_share(*row[key]) for key in ("parent", "without", "with")]
        difference = f"{100 * row['difference']:+.1f} {_between(row['interval'])}"
        source = {"same": " (parent of the same set)"}.get(row["source"], "")
        yield f"| {_NAMES[row['name']]}{source}, {size} | {row['n']} | {' | '.join(cells)} | {difference} | {factors} |"


def _share(value: float, interval: Sequence[float]) -> str:
    return f"{100 * value:.1f} {_between(interval)}"


def _between(interval: Sequence[float]) -> str:
    return f"[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transfer", description=__doc__)
    parser.add_argument("--backbone", choices=("linear", "hybrid"), default="hybrid")
    parser.add_argument("--source", choices=("others", "same"), default="others", help="of the parent")
    parser.add_argument("--set", action="append", choices=_NAMES, help="only these (all without)")
    parser.add_argument(
        "--size", type=int, action="append", help="of what is learnt from; 50, 200 and all without"
    )
    parser.add_argument(
        "--out", type=Path, help="keep the rows here, as JSON; those that are there are not repeated"
    )
    parser.add_argument("--write", type=Path, help="put the table into this Markdown file, between its marks")
    arguments = parser.parse_args()
    kept = arguments.out is not None and arguments.out.is_file()
    rows: list[dict[str, Any]] = json.loads(arguments.out.read_text()) if kept else []
    transfer = Transfer(parse_recipe({"backbone": arguments.backbone, "ensemble": 1}))
    for size, name in product(arguments.size or SIZES, arguments.set or _NAMES):
        key = name, size, arguments.source
        if any((row["name"], row["size"], row["source"]) == key for row in rows):
            continue
        row = transfer.row(*key)
        if row is not None:
            rows.append(row)
            print(*table([row]), sep="\n", flush=True)
        if arguments.out is not None:
            arguments.out.write_text(json.dumps(rows, indent=2) + "\n")
    if arguments.write is not None:
        ordered = sorted(rows, key=lambda row: ([*_NAMES].index(row["name"]), row["source"]))
        write_between(arguments.write, "transfer", table(ordered))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
