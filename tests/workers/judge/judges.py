"""Decoders with random weights that judge, and comparisons for them."""

from pathlib import Path
from typing import Any

from benchmarks.small_decoder import save_decoder
from tests.workers.conftest import said
from workers.models.generative.model import build_writer
from workers.models.generative.verdicts import MARK
from workers.models.generative.writer import Writer
from workers.prompts.templates import prompt
from workers.prompts.trajectory_text import shown
from workers.schema import CommentRecord, FeedbackRecord, PreferenceRecord, Task, Trajectory
from workers.schema.recipe import Recipe, parse_recipe


def decoder(folder: Path) -> Path:
    """Of 32 dimensions, whose tokenizer knows the words of the questions."""
    asked = (prompt("verdict_run", by="", run=""), prompt("verdict_pair", by="", a="", b=""))
    texts = [message["content"] for request in asked for message in request.messages]
    texts += [
        shown(run_of("good bad lost and sent, no")),
        f"It was lost.\n{MARK} A {MARK} B {MARK} good {MARK} bad",
    ]
    return save_decoder(folder, texts * 30, vocabulary=600, width=32, layers=2, heads=4)


def recipe(folder: Path, **keys: Any) -> Recipe:
    values = {
        "objective": "generative",
        "backbone": "decoder",
        "decoder": str(folder),
        "lora_rank": 0,
        "max_tokens": 800,
        "critique_tokens": 12,
        "precision": "float32",
        "epochs": 1,
        "batch_pairs": 4,
        "evaluations_per_epoch": 1,
        "learning_rate": 1e-3,
        "patience": 0,
    }
    return parse_recipe(values | keys)


def writer(folder: Path, **keys: Any) -> Writer:
    made = build_writer(recipe(folder, **keys), device="cpu")
    made.language.eval()
    return made


def run_of(answer: str, *, task: str = "t0") -> Trajectory:
    return Trajectory(steps=(said("user", "the order"), said("agent", answer)), task=Task(id=task))


def records(count: int, *, start: int = 0, reasons: bool = True) -> list[FeedbackRecord]:
    """The better one says good; every other annotator says why."""
    found: list[FeedbackRecord] = []
    for number in range(start, start + count):
        good, bad = run_of("good", task=f"t{number}"), run_of("bad lost", task=f"t{number}")
        a, b = (good, bad) if number % 2 else (bad, good)
        who: dict[str, Any] = {"annotator": "ann", "item": f"i{number}"}
        found.append(PreferenceRecord(a=a, b=b, choice="a" if number % 2 else "b", **who))
        if reasons and number % 2:
            found.append(CommentRecord(trajectory=bad, text="It was lost.", **who))
    return found
