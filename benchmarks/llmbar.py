"""Models of other people's comparisons on LLMBar's natural set: `python -m benchmarks.llmbar [--json] [--quick]`.

LLMBar (Zeng et al. 2023) has 100 pairs of answers of which one follows the instruction, whoever judges. A model that
has only learnt that the longer answer wins, or the shorter one, is right on about half of them. Each model learns from
all comparisons of one public data set, or of several, and is asked about all pairs.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from benchmarks.public_data import DATA, data_folder
from workers.evaluate.predictions import score_records
from workers.evaluate.report import report_of
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory
from workers.schema.recipe import parse_recipe
from workers.train.cross_validation import CrossValidation
from workers.train.events import no_report

SOURCES = {
    "PandaLM": ("pandalm",),
    "FineGrained": ("fine_grained",),
    "PandaLM and FineGrained": ("pandalm", "fine_grained"),
}
BACKBONES = ("linear", "hybrid")
_QUICK = 60


def natural(folder: Path) -> Iterator[PreferenceRecord]:
    rows = json.loads((folder / "llmbar" / "Natural.json").read_text(encoding="utf-8"))
    for number, row in enumerate(rows):
        task = Task(id=f"llmbar-{number}")
        a, b = (
            Trajectory(steps=(_message("user", row["input"]), _message("agent", row[key])), task=task)
            for key in ("output_1", "output_2")
        )
        yield PreferenceRecord(
            annotator="llmbar", origin="imported", a=a, b=b, choice="a" if row["label"] == 1 else "b"
        )


def _message(source: Any, text: str) -> Step:
    return Step(source=source, message=(Part(text=text),))


def measure(backbone: str, sources: tuple[str, ...], seed: int, most: int | None) -> dict[str, Any]:
    """Of the report on comparisons: accuracy, interval, length_controlled, baselines. most: records to learn from."""
    recipe = parse_recipe({"backbone": backbone})
    records = list(chain.from_iterable(DATA[name](data_folder()) for name in sources))[:most]
    folds = CrossValidation(recipe, seed, torch.device("cpu"), no_report)
    _, model = folds.train_on(records, [])
    found = report_of(score_records(model, [*natural(data_folder())]), [], criteria={None})["preference"]
    return {key: found[key] for key in ("accuracy", "interval", "n", "length_controlled", "baselines")}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.llmbar", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few comparisons: does it run?")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    for name, sources in SOURCES.items():
        for backbone in BACKBONES:
            found = measure(backbone, sources, arguments.seed, _QUICK if arguments.quick else None)
            results[f"{backbone}, {name}"] = found
            if not arguments.json:
                controlled, longer = found["length_controlled"], found["baselines"]["longer"]
                print(
                    f"{backbone}, {name}: {_percent(found)} of {found['n']}; length-controlled {_percent(controlled)}; "
                    f"longer wins {100 * longer['accuracy']:.1f}",
                    flush=True,
                )
    if arguments.json:
        print(json.dumps(results))
    return 0


def _percent(found: dict[str, Any]) -> str:
    low, high = found["interval"]
    return f"{100 * found['accuracy']:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


if __name__ == "__main__":
    sys.exit(main())
