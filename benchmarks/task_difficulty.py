"""How well task difficulty is predicted: `python -m benchmarks.task_difficulty [--json] [--quick] [--seeds 5]`.

A policy of the support desk was fine-tuned on good plans of three of the eight families of requests, so tasks differ in
difficulty. Of TRIED outcomes of each of two thirds of the tasks, the success at the other tasks is predicted from their
texts. The truth is the mean of many samples. What is compared is Spearman's correlation over the tasks without
outcomes: of the model, of the mean of the nearest neighbours in text (their number chosen by leave-one-out over the
tried tasks), and of the length of the request.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from apps.demo.world import TASKS
from benchmarks.output import put_out
from benchmarks.seed_intervals import seed_interval
from docs.examples.desk import MOVES, REPLIES, new_policy, play, sampled, tokenizer, words
from workers.evaluate.ranks import spearman
from workers.task_difficulty import TaskOutcomes, fit_success_model
from workers.task_difficulty.text_similarity import TextVectors

SEEDS = 5
SOLVED = 0.7  # of the desk's score
KNOWN_FAMILIES = ("damaged", "tracking", "cancel")
PLANS = 400  # random plans, of which the best is shown
STEPS = 250  # of fine-tuning
TRIED = 8
TRUTH = 64
NEIGHBOURS = (1, 2, 3, 5, 8, 13)


@cache
def demonstrations(plans: int) -> dict[str, str]:
    """By task of KNOWN_FAMILIES, the best of random plans."""
    dice = random.Random(0)
    found = {}
    for task in TASKS.values():
        if task.family in KNOWN_FAMILIES:
            drawn = [_random_plan(dice) for _ in range(plans)]
            found[task.id] = max(drawn, key=lambda plan: play(task, plan.split()).reward)
    return found


def _random_plan(dice: random.Random) -> str:
    others = [name for name in MOVES if name not in REPLIES]
    return " ".join([*(dice.choice(others) for _ in range(dice.randint(0, 4))), dice.choice(REPLIES)])


def tuned_policy(reads: Any, seed: int, *, plans: int, steps: int) -> Any:
    """Fine-tuned on the demonstrations, and on random plans of the other tasks."""
    policy: Any = new_policy(reads, seed=seed)
    dice, shown = random.Random(seed), demonstrations(plans)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=1e-3)
    policy.train()
    for _ in range(steps):
        names = dice.choices(list(TASKS), k=64)
        written = [shown.get(name) or _random_plan(dice) for name in names]
        rows = [f"{words(TASKS[name])} {plan} <end>" for name, plan in zip(names, written, strict=True)]
        batch = reads(rows, return_tensors="pt", padding=True)
        labels = batch["input_ids"].clone()
        for row, plan in enumerate(written):
            labels[row, : -(len(plan.split()) + 1)] = -100
        loss = policy(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels
        ).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return policy.eval()


def measure(seed: int, *, quick: bool) -> dict[str, float]:
    """Spearman's correlation with the truth, by predictor."""
    reads = tokenizer()
    policy = tuned_policy(reads, seed, plans=40 if quick else PLANS, steps=30 if quick else STEPS)
    truth = success_rates(policy, reads, 8 if quick else TRUTH)
    few = success_rates(policy, reads, TRIED)
    names = list(TASKS)
    random.Random(seed).shuffle(names)
    unseen, tried = names[: len(names) // 3], names[len(names) // 3 :]
    texts = [TASKS[name].instruction for name in (*tried, *unseen)]
    outcomes = [
        TaskOutcomes(text, TRIED, TRIED * few[name]) for name, text in zip(tried, texts, strict=False)
    ]
    outcomes += [TaskOutcomes(text) for text in texts[len(tried) :]]
    _, estimates = fit_success_model(outcomes)
    expected = [truth[name] for name in unseen]
    predicted = {
        "model": [estimate.success for estimate in estimates[len(tried) :]],
        "nearest neighbours": neighbour_means(texts, np.array([few[name] for name in tried])),
        "length of the request": [-float(len(text)) for text in texts[len(tried) :]],
    }
    return {name: spearman(np.array(values), np.array(expected)) or 0.0 for name, values in predicted.items()}


def success_rates(policy: Any, reads: Any, answers: int) -> dict[str, float]:
    solved: dict[str, list[bool]] = {}
    for task, episode in sampled(policy, reads, answers):
        solved.setdefault(task.id, []).append(episode.reward >= SOLVED)
    return {name: statistics.fmean(values) for name, values in solved.items()}


def neighbour_means(texts: Sequence[str], known: np.ndarray) -> list[float]:
    """Of the texts after those that are known. The number of neighbours has the least squared error among these."""
    rows = TextVectors(texts).read(texts)
    similarity = (rows @ rows.T).toarray()
    np.fill_diagonal(similarity, -1.0)
    own, other = similarity[: len(known), : len(known)], similarity[len(known) :, : len(known)]
    best = min(NEIGHBOURS, key=lambda count: float(((_means(own, known, count) - known) ** 2).sum()))
    return [float(value) for value in _means(other, known, best)]


def _means(similarity: np.ndarray, known: np.ndarray, count: int) -> np.ndarray:
    nearest = np.argsort(-similarity, axis=1)[:, :count]
    means: np.ndarray = known[nearest].mean(axis=1)
    return means


def summary(by_seed: Sequence[dict[str, float]]) -> dict[str, Any]:
    """By predictor: mean, 95 % interval (Student's t over seeds) and each seed's correlation."""
    found: dict[str, Any] = {}
    for name in by_seed[0]:
        values = [result[name] for result in by_seed]
        found[name] = {"mean": statistics.mean(values), "interval": seed_interval(values), "seeds": values}
    return found


def _lines(found: dict[str, Any]) -> Iterator[str]:
    for name, figures in found.items():
        interval = figures["interval"]
        spread = f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""
        yield f"{name}: Spearman {figures['mean']:.2f}{spread}, n = {len(figures['seeds'])} seeds"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.task_difficulty", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="one seed, few samples: does it run?")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, help="also write the JSON object here")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the policy is too small for more
    found = summary(
        [measure(seed, quick=options.quick) for seed in range(1 if options.quick else options.seeds)]
    )
    put_out(found, _lines(found), options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
