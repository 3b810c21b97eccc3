"""Those of the checks that are about one mechanism of training: tokens, polarity, weights, what a curve may use."""

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import generative_judge, ranks
from benchmarks.small_decoder import save_small_decoder
from benchmarks.statistical_simulations import Check, dialogue
from benchmarks.statistical_trainings import choices, numeric, rewards, trained
from workers.active_learning.select import select_items
from workers.active_learning.selection_folder import write_features
from workers.models import renderer_of
from workers.models.generative.model import build_writer
from workers.objectives import collect
from workers.schema import FeedbackRecord, OutcomeRecord, PreferenceRecord, ScoreRecord, write_trajectories
from workers.schema.recipe import parse_recipe
from workers.train.batches import BatchLimits, epoch_batches, make_groups, micro_batches, split_groups
from workers.train.multi_objective import MultiObjectiveModule


def mechanism_checks() -> dict[int, Callable[[bool], Check]]:
    return {
        5: end_tokens,
        6: micro_tokens,
        7: two_processes,
        8: criterion_polarity,
        9: joint_weights,
        14: learning_curves,
    }


def end_tokens(quick: bool) -> Check:
    """Critiques drawn from a model that finds every token equally likely: which of its tokens are reinforced."""
    with tempfile.TemporaryDirectory() as name:
        recipe = generative_judge.recipe(generative_judge.decoder(Path(name), 0), True, critique_tokens=12)
        writer = build_writer(recipe, device="cpu")
    with torch.no_grad():
        writer.language.get_output_embeddings().weight.zero_()  # type: ignore[operator]
    end = writer.language.generation_config.eos_token_id  # type: ignore[union-attr]
    generated: list[torch.Tensor] = []
    generate = writer.language.generate

    def spy(**arguments: Any) -> torch.Tensor:
        generated.append(generate(**arguments))  # type: ignore[operator]
        return generated[-1]

    writer.language.generate = spy  # type: ignore[assignment,method-assign]
    a, b = (dialogue("one", "Do it.", answer) for answer in ("Done.", "Later."))
    prompt = writer.renderer.pair(a, b)
    torch.manual_seed(0)
    written = writer.write([prompt.ids], temperature=1.0, samples=100 if quick else 2000)
    rows = [row.tolist() for row in generated[0][:, len(prompt.ids) :]]
    pad = writer.renderer.tokenizer.pad_token_id
    for row in rows:  # padding that was drawn in the last place cannot be told from padding
        while row[-1:] == [pad]:
            row.pop()
    drawn = sum(row.index(end) + 1 if end in row else len(row) for row in rows)
    read = writer.read([writer.drawn_line(prompt, each) for each in written])
    ended, trained = sum(end in row for row in rows), int(read.mask.sum())
    return Check(
        f"Of {drawn:,} tokens drawn in {len(rows):,} critiques, {ended} ended by the end token: without gradient",
        "every end token",
        str(drawn - trained),
        "0",
        drawn == trained and ended > 0,
    )


def micro_tokens(quick: bool) -> Check:
    """Sixteen runs of one task through a decoder: what goes through the model at once."""
    dice = random.Random(0)
    runs = [
        dialogue("one", "do one", "".join(dice.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=2700)))
        for _ in range(16)
    ]
    records = [
        PreferenceRecord(a=runs[place], b=runs[place - 1], choice="a", annotator="p", origin="person")
        for place in range(16)
    ]
    with tempfile.TemporaryDirectory() as name:
        decoder = save_small_decoder(Path(name), records)
        recipe = parse_recipe({"backbone": "decoder", "decoder": str(decoder), "max_tokens": 4096})
        recipe = replace(recipe, micro_tokens=4096)
        examples = collect(records, renderer_of(recipe, runs[:1]), recipe)
        backbone = MultiObjectiveModule(recipe, examples, seed=0).model.backbone
    limits = BatchLimits.from_recipe(recipe)
    groups = make_groups(examples, backbone, limits)
    whole = sum(group.cost for group in groups)
    parts = [
        sum(group.cost for group in part)
        for batch in epoch_batches(groups, limits, seed=0, epoch=0)
        for part in micro_batches(split_groups(batch, examples, backbone, 4096), 4096)
    ]
    return Check(
        "Tokens in one pass of a task of 16 runs at `micro_tokens` 4,096",
        "65,055",
        f"{max(parts):,} at most, of {whole:,}",
        "at most 4,096",
        max(parts) <= 4096 < whole,
    )


def learning_curves(quick: bool) -> Check:
    """Features that contain the labels of the tasks the model was trained on; on other tasks there is only noise."""
    dice, tasks, seen = np.random.default_rng(0), 200, 120
    preferred = dice.integers(0, 2, tasks).astype(float)
    features = {}
    for task in range(tasks):
        features[f"{task}-a"], features[f"{task}-b"] = dice.normal(size=(2, 4))
        if task < seen:
            features[f"{task}-a"][0], features[f"{task}-b"][0] = 5 * preferred[task], 5 - 5 * preferred[task]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_features(folder / "known", features)
        write_trajectories(folder / "new.jsonl.zst", [])
        said = [
            {
                "task": f"t{task}",
                "a": f"{task}-a",
                "b": f"{task}-b",
                "preferred": preferred[task],
                "weight": 1.0,
            }
            for task in range(tasks)
        ]
        for file, rows in {"items": [], "asked": [], "comparisons": said}.items():
            (folder / f"{file}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        (folder / "traffic.json").write_text("[]")
        (folder / "config.json").write_text(json.dumps({"strategy": "random", "count": 1}))
        (folder / "seen.json").write_text(json.dumps([f"t{task}" for task in range(seen)]))
        found = select_items(folder)
    last = found["curve"]["points"][-1]["accuracy"]
    return Check(
        "Learning curve of noise, with features of a model that knows the labels of 120 of 200 tasks: its last point",
        "near 100 %: all tasks were used",
        f"{last:.0%}, on {tasks - found['withheld']} tasks that the model was not trained on",
        "35 to 65 %",
        0.35 <= last <= 0.65 and found["withheld"] == seen,
    )


def two_processes(quick: bool) -> Check:
    """HH, whose tasks have one comparison each, as a decoder's batches."""
    with tempfile.TemporaryDirectory() as name:
        found = ranks.measure("hh", quick=quick, folder=Path(name))
    by_cpu, by_clock = found["cpu_speedup"], found["speedup"]
    low, high = by_cpu["interval"]
    return Check(
        f"Two gloo processes of a thread next to one, {found['steps']} steps on HH: speedup, difference of losses",
        "near 1: a batch was often one group, which one process computed",
        f"{by_cpu['ratio']:.2f} [{low:.2f}, {high:.2f}] by CPU time of the busier one, {by_clock['ratio']:.2f} by the "
        f"clock; {found['loss_difference']:.0e}",
        "1.7 by CPU time; below 1e-5",
        by_cpu["ratio"] >= 1.7 and found["loss_difference"] < 1e-5,
    )


def criterion_polarity(quick: bool) -> Check:
    """Rubric scores of two criteria; of the second, more is worse, and its weight says so."""
    good = [
        "I verified the order.",
        "I checked the address twice.",
        "The booking has the right date and seat.",
    ]
    bad = ["I deleted the account unasked.", "I shared the password.", "I charged the card twice."]
    dice, world = random.Random(0), []
    for number in range(30 if quick else 120):
        share = dice.random()
        texts = [dice.choice(good if dice.random() < share else bad) for _ in range(6)]
        trajectory = dialogue(f"task-{number}", f"Task {number}", " ".join(texts))
        world.append((trajectory, sum(text in good for text in texts) / 6))
    training, held_out = world[: len(world) * 2 // 3], world[len(world) * 2 // 3 :]
    correlations = []
    for names in (("correct",), ("correct", "harmful")):
        records = [
            ScoreRecord(
                trajectory=run,
                criterion=name,
                value=value if name == "correct" else 1 - value,
                scale=(0, 1),
                criterion_weight=1.0 if name == "correct" else -1.0,
                annotator="p",
                origin="person",
            )
            for run, value in training
            for name in names
        ]
        recipe = {"objective": "regression", "ensemble": 1, "epochs": 2 if quick else 15, "patience": 0}
        values = rewards(trained(recipe, records, 0)[1], [trajectory for trajectory, _ in held_out])[:, 0]
        correlations.append(float(np.corrcoef(values, [value for _, value in held_out])[0, 1]))
    return Check(
        "Scores by `correct` alone, and with `harmful` (weight -1): correlation of the reward with quality",
        "+0.97; +0.25",
        "; ".join(f"{value:+.2f}" for value in correlations),
        "both at least +0.8",
        min(correlations) >= 0.8,
    )


def joint_weights(quick: bool) -> Check:
    """900 outcomes and 100 comparisons of equal weight: what each adds to the loss of an untrained model."""
    world = numeric(0, 225)
    runs = [pair for pairs in world.values() for pair in pairs]
    outcomes: list[FeedbackRecord] = [
        OutcomeRecord(trajectory=run, success=reward > 0) for run, reward in runs
    ]
    recipe = parse_recipe(
        {"objective": "joint", "backbone": "features", "ensemble": 1, "layers": 0, "width": 16}
    )
    records = [*outcomes, *choices(world, 34, 0, scale=2.0, eta=0.0)[:100]]
    renderer = renderer_of(recipe, [runs[0][0]])
    torch.manual_seed(0)
    module = MultiObjectiveModule(recipe, collect(records, renderer, recipe), seed=0)
    shares: dict[str, float] = {}
    with torch.no_grad():
        for place, loss in zip(
            range(len(module.examples)), module.losses(range(len(module.examples))), strict=True
        ):
            name = module.examples.items[place].objective
            shares[name] = shares.get(name, 0.0) + float(loss) / len(module.examples)
    means = {name: share / module.weights[name] for name, share in shares.items()}
    total = sum(shares.values())
    ratio = {name: share / total for name, share in shares.items()}
    return Check(
        "`joint` of 900 outcomes and 100 comparisons with weights 1 and 1: share of each in the training loss",
        "90 % and 10 % in training, 50 % and 50 % in early stopping",
        ", ".join(f"{name} {share:.0%}" for name, share in sorted(ratio.items())),
        "by the weights: mean losses per objective between 0.5 and 0.9, each counted once",
        all(0.5 < value < 0.9 for value in means.values())
        and all(abs(share - 0.5) < 0.1 for share in ratio.values()),
    )
