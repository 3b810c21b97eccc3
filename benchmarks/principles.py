"""Following principles, from scratch: `python -m benchmarks.principles [--json] [--quick] [--seeds N] [--write FILE]`.

Agents send parcels, as in `benchmarks.generative_judge`, and the same two runs are compared three times: overall (fewer
went wrong), by the fewest lost, and by the most signed for; any two of these agree in half of the tasks. From the same
pairs, in equally many steps, learn a plain judge, who hears the overall comparisons; three plain judges of one
criterion each, who share the steps; and judges who follow principles, without opposites and with a quarter of them.
Held out are other tasks. Intervals are of drawing tasks again; the seeds stay.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.docs_writer import write_between
from benchmarks.generative_judge import BAD, GOOD, decoder, recipe, task_of
from workers.evaluate.bootstrap import difference_interval, mean_interval
from workers.models.generative.model import build_writer
from workers.models.generative.verdicts import opposite
from workers.models.generative.writer import Writer
from workers.prompts.trajectory_text import shown
from workers.schema import FeedbackRecord, Part, PreferenceRecord, Step, Trajectory
from workers.schema.recipe import Recipe, parse_recipe, recipe_to_dict
from workers.train.generative.questions import Pair, pairs_of, principles_of, questions_of
from workers.train.generative.sampling import log_odds_after_critique
from workers.train.generative.trainer import GenerativeTrainer

LOST, SIGNED = "fewest lost", "most signed"
CRITERIA = (None, LOST, SIGNED)
QUESTIONS = (*CRITERIA, opposite(LOST), opposite(SIGNED))
JUDGES = {
    "plain": "plain",
    "single": "one for each criterion",
    "follows": "follows principles",
    "turned": "and some turned round",
}
_STEPS = 5
_TOKENS = 32_768
# What verdicts hang on are tokens of their own; what is always the same is few tokens.
_APART = rf"\b({'|'.join((*GOOD, *BAD))}|A|B|good|bad|fewest|most|opposite)\b"
Answers = dict[str, list[float]]


def run_of(number: int, dice: random.Random) -> Trajectory:
    words = dice.choices((*GOOD, *BAD), k=_STEPS)
    steps = (Step(source="agent", message=(Part(text=f"parcel {word}"),)) for word in words)
    return Trajectory(steps=tuple(steps), task=task_of(number))


def worth(run: Trajectory, criterion: str | None) -> int:
    words = [step.text.removeprefix("parcel ") for step in run.steps]
    if criterion is None:
        return -sum(word in BAD for word in words)
    return words.count("signed") if criterion == SIGNED else -words.count("lost")


def records(tasks: Sequence[int], *, seed: int) -> list[FeedbackRecord]:
    """Three comparisons of each task, none a tie. Each criterion agrees with the overall choice, and with the other, in
    half of the tasks."""
    found: list[FeedbackRecord] = []
    for number in tasks:
        dice = random.Random(f"{seed}/{number}")
        while True:
            a, b = run_of(number, dice), run_of(number, dice)
            by = {criterion: worth(a, criterion) - worth(b, criterion) for criterion in CRITERIA}
            if all(by.values()) and _agreement(by) == divmod(number % 4, 2):
                break
        found += [
            PreferenceRecord(a=a, b=b, choice="a" if more > 0 else "b", criterion=one, annotator="ann")
            for one, more in by.items()
        ]
    return found


def _agreement(by: Mapping[str | None, int]) -> tuple[bool, bool]:
    """Whether each criterion names the run that is better overall."""
    return by[LOST] * by[None] > 0, by[SIGNED] * by[None] > 0


def module(folder: Path, seed: int) -> Path:
    dice = random.Random(0)
    asked = [
        f'Judge by this alone: "{text}"\nRun:\nRun A:\n'
        for criterion in (LOST, SIGNED)
        for text in (criterion, opposite(criterion))
    ]
    runs = [shown(run_of(number, dice)) for number in range(50)]
    texts = [*(f"{question}{run}\nRun B:\n" for question in asked for run in runs[:5]), *runs]
    return decoder(folder, seed, more=texts, vocabulary=640, apart=_APART)


def taught(
    chosen: Recipe, splits: Sequence[Sequence[FeedbackRecord]], epochs: int, seed: int, **keys: Any
) -> Writer:
    """From these pairs for training and validation. keys: what else its recipe says."""
    fixed = {"epochs": epochs, "learning_rate": 1e-3, "reinforce_steps": 0}
    chosen = parse_recipe(recipe_to_dict(chosen) | fixed | keys)
    writer = build_writer(chosen, device="cpu")
    known = principles_of(splits[0]) if chosen.principles else {}
    learnt, held = (
        questions_of(pairs_of(some, chosen, known)[0], writer.renderer, with_opposites=chosen.negate > 0)
        for some in splits
    )
    torch.manual_seed(seed)
    GenerativeTrainer(writer, chosen, learnt, held, seed=seed, report=lambda **event: None).run()
    return writer


def answers(writer: Writer, pairs: Sequence[Pair]) -> Answers:
    """By pair. both: 1 where the mean of both orders' chances is right; one: the mean of asking in either order;
    consistent: both orders name the same run."""
    asked = questions_of(pairs, writer.renderer)
    odds = log_odds_after_critique(
        writer, [question.pair[order] for question in asked for order in (0, 1)], _TOKENS
    ).view(-1, 2)
    first, second = odds[:, 0] > 0, odds[:, 1] < 0
    chance = (odds[:, 0].sigmoid() + (-odds[:, 1]).sigmoid()) / 2
    return {
        "both": ((chance > 0.5).float() + 0.5 * (chance == 0.5).float()).tolist(),
        "one": ((first.float() + second.float()) / 2).tolist(),
        "consistent": (first == second).float().tolist(),
    }


def measure(seed: int, quick: bool) -> dict[str, Any]:
    """{seed, seconds, judges: by judge, by question, `answers` of the held-out pairs}."""
    started = time.monotonic()
    train, held, epochs = (8, 4, 1) if quick else (500, 100, 4)
    sizes = [0, train, train + held // 4, train + held // 4 + held]
    *splits, test = (records(range(*ends), seed=seed) for ends in pairwise(sizes))
    judges: dict[str, dict[str, Answers]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        chosen = recipe(module(Path(scratch), seed), quick)
        pairs = pairs_of(
            test, parse_recipe(recipe_to_dict(chosen) | {"principles": True}), principles_of(test)
        )[0]
        by = {criterion: [pair for pair in pairs if pair.by == criterion] for criterion in CRITERIA}
        by |= {
            opposite(criterion): [turned for pair in by[criterion] if (turned := pair.opposite)]
            for criterion in (LOST, SIGNED)
        }
        untold = {one: [replace(pair, by=None) for pair in some] for one, some in by.items()}
        plain = taught(chosen, splits, epochs * len(CRITERIA), seed)
        judges["plain"] = {_name(one): answers(plain, some) for one, some in untold.items()}
        judges["single"] = {
            _name(criterion): answers(
                taught(chosen, splits, epochs, seed, criterion=criterion), untold[criterion]
            )
            for criterion in CRITERIA
        }
        for name, negate in (("follows", 0.0), ("turned", 0.25)):
            one = taught(chosen, splits, epochs, seed, principles=True, negate=negate)
            judges[name] = {_name(question): answers(one, some) for question, some in by.items()}
    seconds = time.monotonic() - started
    sys.stderr.write(f"seed {seed}: {seconds:.0f} s\n")
    return {"seed": seed, "seconds": seconds, "judges": judges}


def table(seeds: Sequence[dict[str, Any]]) -> str:
    """Right verdicts of both orders averaged, and their consistency, with 95 % intervals over all seeds' tasks."""
    lines = [
        f"| on held-out pairs | {' | '.join(JUDGES.values())} | the last less plain | the last less one for each |",
        f"|---|{'---:|' * (len(JUDGES) + 2)}",
    ]
    rows = [(_name(question), _name(question), "both") for question in QUESTIONS]
    rows += [
        (f"{_name(question)}: both orders agree", _name(question), "consistent") for question in QUESTIONS
    ]
    for words, question, key in rows:
        told = [_said(seeds, [_numbers(seeds, name, question, key)]) for name in JUDGES]
        told += [
            _said(seeds, [_numbers(seeds, name, question, key) for name in ("turned", other)], sign="+")
            for other in ("plain", "single")
        ]
        lines.append(f"| {words} | {' | '.join(told)} |")
    return "\n".join(lines)


def _name(question: str | None) -> str:
    return "overall" if question is None else question


def _numbers(
    seeds: Sequence[dict[str, Any]], judge: str, question: str, key: str
) -> list[list[float]] | None:
    """By seed; None of a judge who is not asked this."""
    found = [seed["judges"][judge].get(question) for seed in seeds]
    return None if None in found else [result[key] for result in found]


def _said(seeds: Sequence[dict[str, Any]], some: Sequence[list[list[float]] | None], sign: str = "") -> str:
    """Of numbers, or of the difference of two."""
    first, *others = some
    if first is None or None in others:
        return ""
    tasks = [f"{seed['seed']}/{at}" for seed, one in zip(seeds, first, strict=True) for at in range(len(one))]
    values = [value for seed_values in first for value in seed_values]
    for other in others:
        assert other is not None
        values = [
            a - b
            for a, b in zip(values, (value for seed_values in other for value in seed_values), strict=True)
        ]
    if others:
        mean, (low, high) = difference_interval(values, [0.0] * len(values), tasks)
    else:
        mean, (low, high) = mean_interval(values, tasks)
    return f"{mean:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.principles", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="a few pairs, one seed: does it run?")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="put the table into this Markdown file")
    options = parser.parse_args()
    seeds = [measure(seed, options.quick) for seed in range(1 if options.quick else options.seeds)]
    if options.write:
        write_between(options.write, "principles", table(seeds).split("\n"))
    print(json.dumps({"seeds": seeds}) if options.json else table(seeds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
