"""A judge that writes, trained from scratch: `python -m benchmarks.generative_judge [--json] [--quick] [--write FILE]`.

Agents send parcels; of two runs the better one lost fewer. Some annotators say how many went wrong. A decoder with
random weights learns from them to write that and to give the verdict, then from whether its own verdicts are right.
Held out are other tasks. Five seeds; accuracy, position consistency, and entropy and length over reinforcement, drawn.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.docs_writer import write_between
from benchmarks.drawing import levels
from benchmarks.small_decoder import save_decoder
from workers.models.generative.model import build_writer
from workers.models.generative.verdicts import MARK
from workers.models.generative.writer import Writer
from workers.prompts.templates import prompt
from workers.prompts.trajectory_text import shown
from workers.schema import CommentRecord, FeedbackRecord, Part, PreferenceRecord, Step, Task, Trajectory
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.generative.questions import Question, pairs_of, questions_of
from workers.train.generative.sampling import log_odds_after_critique
from workers.train.generative.trainer import STAGE_MESSAGES, GenerativeTrainer

GOOD, BAD = ("sent", "signed", "paid"), ("lost", "broken", "late")
_STEPS = 5
_TOKENS = 32_768
_DRAWN = (
    (
        "verdicts",
        "What a judge tries: right verdicts, and the other order agrees",
        {"right": "right", "agrees": "agrees"},
    ),
    ("entropy", "Entropy of its words, and divergence from the start, in nats",
     {"entropy": "entropy", "divergence": "divergence"}),
    ("length", "Tokens of a critique", {"length": "tokens"}),
)  # fmt: skip


def run_of(task: Task, went_wrong: int, dice: random.Random) -> Trajectory:
    words = [*dice.choices(BAD, k=went_wrong), *dice.choices(GOOD, k=_STEPS - went_wrong)]
    dice.shuffle(words)
    steps = (Step(source="agent", message=(Part(text=f"parcel {word}"),)) for word in words)
    return Trajectory(steps=tuple(steps), task=task)


def task_of(number: int) -> Task:
    return Task(id=f"task-{number}", instruction=f"Send {_STEPS} parcels.")


def records(tasks: Sequence[int], *, reasons: float, seed: int) -> list[FeedbackRecord]:
    """A comparison of each task. reasons: the share that comes with what went wrong."""
    found: list[FeedbackRecord] = []
    for number in tasks:
        dice = random.Random(f"{seed}/{number}")
        task, wrong = task_of(number), dice.sample(range(_STEPS + 1), 2)
        a, b = (run_of(task, count, dice) for count in wrong)
        common: dict[str, Any] = {"annotator": "ann", "item": task.id}
        found.append(PreferenceRecord(a=a, b=b, choice="a" if wrong[0] < wrong[1] else "b", **common))
        if dice.random() < reasons:
            found += [
                CommentRecord(trajectory=run, text=f"{count} went wrong.", **common)
                for run, count in zip((a, b), wrong, strict=True)
            ]
    return found


def decoder(
    folder: Path, seed: int, *, more: Sequence[str] = (), vocabulary: int = 700, apart: str = ""
) -> Path:
    """more: texts that its tokenizer is to know too. vocabulary, apart: of `save_decoder`."""
    dice = random.Random(0)
    runs = [shown(run_of(task_of(0), wrong % (_STEPS + 1), dice)) for wrong in range(100)]
    asked = (prompt("verdict_run", by="", run=""), prompt("verdict_pair", by="", a="", b=""))
    texts = [
        *runs,
        *more,
        *(message["content"] for question in asked for message in question.messages),
        *(
            f"A: {n} went wrong.\nB: {n} went wrong.\n{MARK} A {MARK} B {MARK} good {MARK} bad"
            for n in range(_STEPS + 1)
        ),
    ] * 20
    return save_decoder(
        folder, texts, seed=seed, vocabulary=vocabulary, width=96, layers=3, heads=4, apart=apart
    )


def recipe(folder: Path, quick: bool, **keys: Any) -> Recipe:
    """keys: what differs. Without them there are no verdicts after own critiques, and pairs alone are reinforced."""
    size = (
        {"epochs": 1, "reinforce_steps": 2, "reinforce_samples": 2}
        if quick
        else {"epochs": 5, "reinforce_steps": 40, "reinforce_samples": 6}
    )
    return parse_recipe(
        {
            "objective": "generative",
            "backbone": "decoder",
            "decoder": str(folder),
            "lora_rank": 0,
            "learning_rate": 2e-3,
            "reinforce_rate": 3e-4,
            "max_tokens": 1024,
            "critique_tokens": 40,
            "precision": "float32",
            "batch_pairs": 8,
            "evaluations_per_epoch": 1,
            "patience": 0,
            "own_critique_epochs": 0,
            "reinforce_singles": False,
        }
        | size
        | keys
    )


def held_out(writer: Writer, asked: Sequence[Question]) -> dict[str, float]:
    """one_order: right verdicts, the mean of asking in either order; both_orders: of the mean of the two chances;
    single: of the difference of two single scores."""
    odds = log_odds_after_critique(
        writer, [question.pair[order] for question in asked for order in (0, 1)], _TOKENS
    ).view(-1, 2)
    first, second = odds[:, 0] > 0, odds[:, 1] < 0
    chance = (odds[:, 0].sigmoid() + (-odds[:, 1]).sigmoid()) / 2
    scores = log_odds_after_critique(
        writer, [question.runs[side] for question in asked for side in (0, 1)], _TOKENS
    ).view(-1, 2)
    above = scores[:, 0] - scores[:, 1]
    return {
        "one_order": float((first.float() + second.float()).mean() / 2),
        "both_orders": float((chance > 0.5).float().mean()),
        "consistency": float((first == second).float().mean()),
        "single": float(((above > 0).float() + 0.5 * (above == 0).float()).mean()),
    }


def measure(seed: int, quick: bool, *, pairs: int = 400, **keys: Any) -> dict[str, Any]:
    """{seed, start, end: of the held-out pairs after the first stage and after the last, curve, seconds}. pairs: of
    training. keys: what differs in the recipe."""
    started, start = time.monotonic(), dict[str, float]()
    train, held = (8, 4) if quick else (pairs, 200)
    known = min(held, train) // 2
    with tempfile.TemporaryDirectory() as scratch:
        folder = decoder(Path(scratch), seed)
        chosen = recipe(folder, quick, **keys)
        writer = build_writer(chosen, device="cpu")
        ends = [0, train, train + known, train + known + held]
        asked = [
            questions_of(
                pairs_of(records(range(*ends), reasons=reasons, seed=seed), chosen)[0], writer.renderer
            )
            for ends, reasons in zip(pairwise(ends), (0.5, 0.5, 0.0), strict=True)
        ]

        def say(message: str = "", **event: Any) -> None:
            if not start and message in STAGE_MESSAGES.values():
                start.update(held_out(writer, asked[2]))

        torch.manual_seed(seed)
        trainer = GenerativeTrainer(writer, chosen, asked[0], asked[1], seed=seed, report=say)
        trainer.run()
        end = held_out(writer, asked[2])
    sys.stderr.write(f"seed {seed}: {time.monotonic() - started:.0f} s, {start}, {end}\n")
    return {
        "seed": seed,
        "start": start or end,
        "end": end,
        "curve": trainer.curve,
        "seconds": time.monotonic() - started,
    }


def table(seeds: Sequence[dict[str, Any]]) -> str:
    """Means over the seeds, and the least and the greatest."""
    lines = ["| on held-out pairs | taught by people | after all stages |", "|---|---:|---:|"]
    words = {
        "one_order": "right verdicts, asked in one order",
        "both_orders": "right verdicts, both orders averaged",
        "consistency": "both orders name the same run",
        "single": "right order of two single scores",
    }
    for key, name in words.items():
        lines.append(f"| {name} | {_range(seeds, 'start', key)} | {_range(seeds, 'end', key)} |")
    return "\n".join(lines)


def draw(seeds: Sequence[dict[str, Any]], folder: Path) -> None:
    """Means over the seeds at each step, with the least and the greatest."""
    for name, title, keys in _DRAWN:
        series = {
            words: [_over(seeds, place, key) for place in range(len(seeds[0]["curve"]))]
            for key, words in keys.items()
        }
        (folder / f"judge-{name}.svg").write_text(levels(title, series, "steps of reinforcement"))


def _over(seeds: Sequence[dict[str, Any]], place: int, key: str) -> tuple[float, float, float, float]:
    found = [seed["curve"][place][key] for seed in seeds]
    return seeds[0]["curve"][place]["step"], statistics.mean(found), min(found), max(found)


def _range(seeds: Sequence[dict[str, Any]], when: str, key: str) -> str:
    found = [seed[when][key] for seed in seeds]
    return f"{statistics.mean(found):.3f} [{min(found):.3f}, {max(found):.3f}]"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generative_judge", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="a few pairs, one seed: does it run?")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--write", type=Path, help="put the table into this Markdown file, and draw beside it"
    )
    parser.add_argument("--pairs", type=int, default=400, help="of training")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--own-epochs", type=int, default=0, help="with verdicts after own critiques")
    parser.add_argument("--reinforce-steps", type=int, default=40)
    parser.add_argument("--singles", action="store_true", help="reinforce single trajectories too")
    options = parser.parse_args()
    keys: dict[str, Any] = {"own_critique_epochs": options.own_epochs, "reinforce_singles": options.singles}
    if not options.quick:
        keys |= {"epochs": options.epochs, "reinforce_steps": options.reinforce_steps}
    numbers = range(1 if options.quick else options.seeds)
    seeds = [measure(seed, options.quick, pairs=options.pairs, **keys) for seed in numbers]
    if options.write:
        write_between(options.write, "generative_judge", table(seeds).split("\n"))
        draw(seeds, options.write.parent / "images")
    print(json.dumps({"seeds": seeds}) if options.json else table(seeds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
