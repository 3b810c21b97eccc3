"""What prefix trees save on real comparisons, changing nothing: `python -m benchmarks.packing [--json] [--quick]`.

Next to every data set stand the tokens that batches of 8 random pairs take once padded, as trainers make them.
"""

import argparse
import random
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks.by_data_set import measure_each
from benchmarks.public_data import PAIRS, data_folder
from benchmarks.small_decoder import save_small_decoder
from workers.models import build
from workers.models.backbones.decoder import Decoder
from workers.objectives import Example, Examples, collect
from workers.packing import build_forest, in_batches
from workers.schema.recipe import parse_recipe
from workers.text import Tokens
from workers.train.batches import BatchLimits, epoch_batches, example_indices, make_groups

BATCH = 8  # in a batch, as trainers have it by default
DESIGN = {"hh": 4.1, "tau_bench": 1.9}  # the room that was counted before there was an implementation
_ROW = 4096


def measure(name: str, *, quick: bool, folder: Path) -> dict[str, Any]:
    """{tokens_given, tokens_padded, tokens_computed, saved, design, max_difference}"""
    records = list(PAIRS[name](data_folder()))[: 64 if quick else None]
    base = save_small_decoder(folder / name, records)
    recipe = parse_recipe(
        {
            "backbone": "decoder",
            "decoder": str(base),
            "lora_rank": 0,
            "max_tokens": 16_384,
            "batch_pairs": BATCH,
            "batch_tasks": 1,
        }
    )
    model = build(recipe)
    decoder = model.backbone
    assert isinstance(decoder, Decoder)
    examples = collect(records, decoder.renderer, recipe)
    lengths = [
        [len(examples.rendered[place].ids) for place in item.trajectory_indices] for item in examples.items
    ]
    order = random.Random(0).sample(lengths, len(lengths))
    padded = sum(2 * len(some) * max(map(max, some)) for some in _chunks(order, BATCH))
    computed = _computed(examples, decoder, recipe)
    given = sum(map(sum, lengths))
    return {
        "pairs": len(examples),
        "tokens_given": given,
        "tokens_padded": padded,
        "tokens_computed": computed,
        "saved": padded / computed,
        "design": DESIGN.get(name),
        "max_difference": _difference(examples, decoder, tokens=3_000 if quick else 30_000),
    }


def _computed(examples: Examples, decoder: Decoder, recipe: Any) -> int:
    """With the padding of rows that are computed together."""
    total = 0
    limits = BatchLimits.from_recipe(recipe)
    groups = make_groups(examples, decoder, limits)
    for batch in epoch_batches(groups, limits, seed=0, epoch=0):
        places = sorted(
            {place for index in example_indices(batch) for place in examples.items[index].trajectory_indices}
        )
        trees = build_forest([examples.rendered[place].ids for place in places], decoder.sharing)
        total += sum(len(rows) * max(map(len, rows)) for rows in in_batches(trees, _ROW))
    return total


def _chunks(values: list[Any], size: int) -> list[list[Any]]:
    return [values[start : start + size] for start in range(0, len(values), size)]


@torch.no_grad()
def _difference(examples: Examples, decoder: Decoder, *, tokens: int) -> float:
    """The largest between states of packed and of single items, over the largest state; of the shortest pairs."""

    def size(one: Example) -> int:
        return sum(len(examples.rendered[place].ids) for place in one.trajectory_indices)

    items: list[Tokens] = []
    for item in sorted(examples.items, key=size):
        tokens -= size(item)
        if items and tokens < 0:
            break
        items += [examples.rendered[place] for place in item.trajectory_indices]
    worst = 0.0
    for some in _chunks(items, 2 * BATCH):
        packed = decoder.states(some).flat
        alone = torch.cat([decoder.states([item]).flat for item in some])
        worst = max(worst, float((packed - alone).abs().max() / alone.abs().max()))
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packing", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few comparisons: does it run?")
    arguments = parser.parse_args()
    return measure_each(
        PAIRS,
        lambda name, folder: measure(name, quick=arguments.quick, folder=folder),
        lambda name, found: [_line(name, found)],
        as_json=arguments.json,
    )


def _line(name: str, one: dict[str, Any]) -> str:
    design = f" (the design counted {one['design']}x)" if one["design"] else ""
    return (
        f"{name}: {one['pairs']} pairs, {one['tokens_padded']:,} tokens in padded batches of {BATCH}, "
        f"{one['tokens_given']:,} without padding, {one['tokens_computed']:,} computed: "
        f"{one['saved']:.1f}x{design}; largest difference {one['max_difference']:.1e}"
    )


if __name__ == "__main__":
    sys.exit(main())
