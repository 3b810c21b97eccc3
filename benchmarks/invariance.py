"""Does a reward depend on what is scored next to it? `python -m benchmarks.invariance [--json] [--quick]`.

FineGrained answers, cut short, in 1,000 random co-batches, by a step-encoder and a decoder with random weights, every
number computed where it stands. Differences are in standard deviations of the rewards, and, of whole answers, of those
within a group of answers to one question, in float32 and bfloat16: what GRPO divides by is the latter.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.serving import answers, artifact
from workers.models import LoadedModel, load
from workers.schema import parse_item

KINDS = ("step-encoder", "decoder")
Json = dict[str, Any]


def measure(kind: str, *, questions: int, batches: int, folder: Path, seed: int = 0) -> Json:
    model = load(artifact(kind, folder))
    # Cut short, so that a thousand batches take minutes: what is mixed is what counts, not its length.
    items = [model.render(parse_item(_cut(answer)).content) for answer in answers(questions)]
    groups = _groups(model, questions)
    return {
        precision: _differences(model, items, groups, batches, precision, seed)
        for precision in ("float32", "bfloat16")
    }


def _cut(item: Json) -> Json:
    """Every text to a length of its own."""
    dice = random.Random(str(item))
    messages = [
        message | {"content": message["content"][: dice.randint(40, 160)]} for message in item["messages"]
    ]
    return {"messages": messages}


def _groups(model: LoadedModel, questions: int) -> list[list[Any]]:
    rendered = [model.render(parse_item(answer).content) for answer in answers(questions)]
    return [rendered[start : start + 4] for start in range(0, len(rendered), 4)][:12]


def _differences(
    model: LoadedModel, items: list[Any], groups: list[list[Any]], batches: int, precision: str, seed: int
) -> Json:
    model.model.backbone.in_bfloat16 = precision == "bfloat16"
    dice = random.Random(seed)
    alone = [model.score([item])[0].raw for item in items]
    spread = statistics.pstdev(alone)
    worst = 0.0
    for _ in range(batches):
        places = dice.sample(range(len(items)), dice.randint(2, 6))
        scores = model.score([items[place] for place in places])
        worst = max(worst, *(abs(one.raw - alone[place]) for one, place in zip(scores, places, strict=True)))
    within = []
    for group in groups:
        one_by_one = [model.score([item])[0].raw for item in group]
        together = [score.raw for score in model.score(group)]
        deviation = statistics.pstdev(one_by_one)
        if deviation:
            moved = max(abs(a - b) for a, b in zip(one_by_one, together, strict=True))
            within.append(moved / deviation)
    return {
        "batches": batches,
        "largest_in_std": worst / spread,
        "within_groups": {"median": statistics.median(within), "largest": max(within)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.invariance", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few batches")
    parser.add_argument("--kind", action="append", choices=KINDS, help="both without")
    options = parser.parse_args()
    questions, batches = (2, 6) if options.quick else (20, 1000)
    found = {}
    with tempfile.TemporaryDirectory(prefix="touchstone-invariance-") as folder:
        for kind in options.kind or KINDS:
            found[kind] = measure(kind, questions=questions, batches=batches, folder=Path(folder) / kind)
            print(json.dumps({kind: found[kind]}), file=sys.stderr, flush=True)
    print(json.dumps(found) if options.json else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
