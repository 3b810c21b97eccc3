"""Training speed next to TRL's RewardTrainer: `python -m benchmarks.train_vs_trl [--json] [--quick] [--data NAME]`.

The same decoder (41M parameters, random weights), the same pairs as the same token ids, one pass over them, the same
optimiser and precision (bfloat16 where the machine has instructions for it, else float32 on both sides).
`vs_defaults`: TRL as it comes, `vs_tuned`: length grouping and no activation checkpointing.
"""

import argparse
import logging
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from benchmarks.by_data_set import measure_each
from benchmarks.public_data import PAIRS, data_folder
from benchmarks.small_decoder import save_small_decoder
from workers.evaluate.bootstrap import mean_interval
from workers.models import Lineage, load, renderer_of, save
from workers.objectives import Examples, collect
from workers.schema import PreferenceRecord
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.precision import uses_bfloat16
from workers.train.trainer import RewardTrainer

BATCH = 8  # pairs, TRL's default
# Comparisons to train on and to measure on, and the longest trajectory in tokens.
SIZES = {"hh": (160, 160, 1024), "tau_bench": (16, 16, 2048), "fine_grained": (60, 240, 1024)}
QUICK = {"hh": (16, 8, 512), "tau_bench": (8, 4, 512), "fine_grained": (12, 6, 512)}


def measure(name: str, *, quick: bool, folder: Path) -> dict[str, Any]:
    train_size, test_size, longest = (QUICK if quick else SIZES)[name]
    strict = [pair for pair in PAIRS[name](data_folder()) if pair.choice in ("a", "b")]
    train, test = _split(strict, train_size, test_size)
    base = save_small_decoder(folder / "base", strict)
    recipe = parse_recipe(
        {
            "backbone": "decoder",
            "decoder": str(base),
            "lora_rank": 0,
            "max_tokens": longest,
            "epochs": 1,
            "batch_pairs": BATCH if name != "fine_grained" else 12,
            "centring": 0.0,
            "patience": 0,
            "annotators": "equal",
            "warmup": 0.0,
            "evaluations_per_epoch": 1,
            "batch_tokens": 10**6,
            "batch_tasks": 1,
        }
    )
    torch.manual_seed(0)
    module = MultiObjectiveModule(recipe, _examples(train, recipe), seed=0)
    start = folder / "start"
    save_classifier(module, recipe, start)
    rows = trl_rows(module.examples)
    bfloat16 = uses_bfloat16(recipe, torch.device("cpu"))
    difference = _loss_difference(module, start, rows)
    ours = seconds_of_ours(module, recipe)
    save_classifier(module, recipe, folder / "ours")
    defaults = train_with_trl(start, rows, folder / "defaults", bfloat16=bfloat16, tuned=False)
    tuned = train_with_trl(start, rows, folder / "tuned", bfloat16=bfloat16, tuned=True)
    held_out = {who: _accuracy(folder / who, test, start) for who in ("ours", "defaults", "tuned")}
    return {
        "pairs": len(rows),
        "tokens": sum(len(row[side]) for row in rows for side in ("chosen_ids", "rejected_ids")),
        "precision": "bfloat16" if bfloat16 else "float32",
        "pairs_per_second": {
            "ours": len(rows) / ours,
            "defaults": len(rows) / defaults,
            "tuned": len(rows) / tuned,
        },
        "vs_defaults": defaults / ours,
        "vs_tuned": tuned / ours,
        "loss_difference": difference,
        "accuracy": {"ours": held_out["ours"], "trl": held_out["defaults"], "trl_tuned": held_out["tuned"]},
    }


def _split(
    records: list[PreferenceRecord], train: int, test: int
) -> tuple[list[PreferenceRecord], list[PreferenceRecord]]:
    """By task, both from everywhere in the file."""
    tasks = list(dict.fromkeys(record.a.task.id for record in records))
    held_out = set(tasks[::3])
    return (
        [record for record in records if record.a.task.id not in held_out][:train],
        [record for record in records if record.a.task.id in held_out][:test],
    )


def _examples(records: list[PreferenceRecord], recipe: Recipe) -> Examples:
    return collect(records, renderer_of(recipe), recipe)


def trl_rows(examples: Examples) -> list[dict[str, list[int]]]:
    """As TRL takes what is tokenised already."""
    rows = []
    for item in examples.items:
        a, b = (list(examples.rendered[place].ids) for place in item.trajectory_indices)
        chosen, rejected = (a, b) if item.record.choice == "a" else (b, a)  # type: ignore[union-attr]
        rows.append({"chosen_ids": chosen, "rejected_ids": rejected})
    return rows


def save_classifier(module: MultiObjectiveModule, recipe: Recipe, folder: Path) -> None:
    reward = {"median": 0.0, "std": 1.0}
    save(module.model, folder, recipe=recipe, reward=reward, criteria={}, lineage=Lineage())


def seconds_of_ours(module: MultiObjectiveModule, recipe: Recipe) -> float:
    """Seconds of training."""
    trainer = RewardTrainer(module, recipe, Examples(), seed=0, report=lambda **event: None)
    started = time.perf_counter()
    trainer.run()
    return time.perf_counter() - started


def _classifier(folder: Path) -> Any:
    from transformers import AutoModelForSequenceClassification

    return AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)


def train_with_trl(
    start: Path,
    rows: list[dict[str, list[int]]],
    folder: Path,
    *,
    bfloat16: bool,
    tuned: bool,
    use_cpu: bool = True,
) -> float:
    """Seconds of training, without the preparation of the data. The trained model lies in `folder`."""
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import RewardConfig, RewardTrainer

    options: dict[str, Any] = {
        "output_dir": str(folder / "scratch"),
        "per_device_train_batch_size": BATCH,
        "num_train_epochs": 1,
        "report_to": "none",
        "save_strategy": "no",
        "use_cpu": use_cpu,
        "seed": 0,
        "disable_tqdm": True,
        "max_length": None,
        "bf16": bfloat16,
        "logging_strategy": "no",
    }
    if tuned:
        rows = [row | {"length": len(row["chosen_ids"]) + len(row["rejected_ids"])} for row in rows]  # type: ignore[dict-item]
        options |= {"gradient_checkpointing": False, "train_sampling_strategy": "group_by_length"}
        options |= {"length_column_name": "length", "remove_unused_columns": False}
    trainer = RewardTrainer(
        model=_classifier(start),
        args=RewardConfig(**options),
        train_dataset=Dataset.from_list(rows),
        processing_class=AutoTokenizer.from_pretrained(start),
    )
    started = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - started
    trainer.save_model(str(folder))
    return seconds


@torch.no_grad()
def _loss_difference(module: MultiObjectiveModule, start: Path, rows: list[dict[str, list[int]]]) -> float:
    """The largest over three batches: our loss, and that of TRL's formula on transformers' own classifier, padded."""
    peer = _classifier(start).eval()
    pad = int(peer.config.pad_token_id)
    worst = 0.0
    module.eval()
    for begin in range(0, min(len(rows), 3 * BATCH), BATCH):
        chosen = list(range(begin, min(begin + BATCH, len(rows))))
        ids = [torch.tensor(rows[index][side]) for side in ("chosen_ids", "rejected_ids") for index in chosen]
        padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=pad)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in ids], batch_first=True)
        rewards = peer(input_ids=padded, attention_mask=mask, use_cache=False).logits.squeeze(-1)
        theirs = -torch.nn.functional.logsigmoid(rewards[: len(chosen)] - rewards[len(chosen) :]).mean()
        worst = max(worst, abs(float(theirs) - float(module(chosen, len(chosen)))))
    return worst


def _accuracy(folder: Path, test: list[PreferenceRecord], start: Path) -> dict[str, Any]:
    """{accuracy, interval, n} of a classifier's folder, scored by our engine: only the weights differ."""
    model = load(start)
    classifier = _classifier(folder)
    prefix = f"{classifier.base_model_prefix}."
    weights = classifier.state_dict()
    model.model.backbone.base.load_state_dict(  # type: ignore[attr-defined]
        {name.removeprefix(prefix): one for name, one in weights.items() if name.startswith(prefix)}
    )
    model.model.heads.scalar.weight.copy_(weights["score.weight"].unsqueeze(1))
    right = []
    for record in test:
        a, b = (model.score([model.render(side)])[0].raw for side in (record.a, record.b))
        right.append(float((a > b) == (record.choice == "a")) if a != b else 0.5)
    accuracy, interval = mean_interval(right, [record.a.task.id for record in test])
    return {"accuracy": accuracy, "interval": interval, "n": len(right)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train_vs_trl", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few comparisons: does it run?")
    parser.add_argument("--data", action="append", choices=SIZES, help="only these (all without)")
    arguments = parser.parse_args()
    os.environ["ACCELERATE_LOG_LEVEL"] = "error"
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore", category=FutureWarning)
    return measure_each(
        arguments.data or SIZES,
        lambda name, folder: measure(name, quick=arguments.quick, folder=folder),
        _lines,
        as_json=arguments.json,
    )


def _lines(name: str, one: dict[str, Any]) -> list[str]:
    speed = ", ".join(f"{who} {value:.2f}" for who, value in one["pairs_per_second"].items())
    accuracy = "; ".join(
        f"{who} {100 * each['accuracy']:.1f} % [{100 * each['interval'][0]:.1f}, {100 * each['interval'][1]:.1f}]"
        for who, each in one["accuracy"].items()
    )
    return [
        f"{name}: {one['vs_defaults']:.2f}x TRL's defaults, {one['vs_tuned']:.2f}x tuned ({one['precision']}, "
        f"{one['pairs']} pairs, {one['tokens']:,} tokens; pairs/s: {speed})",
        f"    the same batches: losses differ by {one['loss_difference']:.1e}; held out: {accuracy}",
    ]


if __name__ == "__main__":
    sys.exit(main())
