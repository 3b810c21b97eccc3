"""A run from its directory to its manifest."""

import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from workers.errors import RewardError
from workers.evaluate import accuracy_report, evaluate
from workers.models import ChunkCache, build, load, save, write_manifest
from workers.schema import PreferenceRecord
from workers.schema.recipe import Recipe
from workers.text.pairs import collect_pairs
from workers.train.directory import Config, read_config, read_split, write_json, write_run_manifest
from workers.train.events import EventLog, Report
from workers.train.folds import Folds
from workers.train.loop import Fit, Limits, Stopped
from workers.train.pairs import require_usable
from workers.train.rewards import measured_rewards

_CACHE_BYTES = 2 * 1024**3


def train(folder: Path, *, stop: Callable[[], bool] = lambda: False) -> dict[str, Any]:
    """Everything between config.json and manifest.json; the report. Raises RewardError, Stopped.

    A directory that is complete is left alone. Everything else goes on where an earlier attempt left it.
    """
    started = time.monotonic()
    config, recipe = read_config(folder)
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    device = choose_device(config.device)
    events = EventLog(folder / "events.jsonl")
    try:
        return _train(folder, config, recipe, device, events, stop, started)
    finally:
        events.close()


def _train(
    folder: Path,
    config: Config,
    recipe: Recipe,
    device: torch.device,
    events: Report,
    stop: Callable[[], bool],
    started: float,
) -> dict[str, Any]:
    splits = {split: read_split(folder, split) for split in ("train", "validation", "test")}
    torch.manual_seed(config.seed)
    model, renderer = build(recipe)
    model.to(device)
    train_pairs = collect_pairs(splits["train"], renderer, criterion=recipe.criterion)
    require_usable(train_pairs)
    for reason, count in train_pairs.skipped.items():
        events(message=f"left out of training: {count} comparisons {reason}")
    cache = None if recipe.unfrozen else ChunkCache(_CACHE_BYTES)
    seconds = config.budget.seconds if config.budget else None
    fit = Fit(
        model,
        renderer,
        recipe,
        train=train_pairs,
        validation=collect_pairs(splits["validation"], renderer, criterion=recipe.criterion),
        seed=config.seed,
        report=events,
        cache=cache,
        limits=Limits(stop, seconds, folder / "checkpoints"),
    )
    events(
        message=f"training on {len(train_pairs)} comparisons, {len(fit.batches)} steps on {device} "
        f"in {'bfloat16' if fit.bfloat16 else 'float32'}"
    )
    fit.run()
    _stop_here(stop)
    reward = reward_statistics(fit)
    save(model, folder / "model", recipe=recipe, reward=reward, snapshot=config.snapshot)
    loaded = load(folder / "model", device=str(device))
    _stop_here(stop)
    events(message="evaluating on the test split")
    report = evaluate(loaded, splits["test"], validation=splits["validation"])
    if recipe.folds:
        _stop_here(stop)
        folds = Folds(
            recipe,
            config.seed,
            device,
            events,
            limits=Limits(stop),
            cache=cache,
            encoder=None if recipe.unfrozen else model.encoder,
            folder=folder / "folds",
        )
        found = folds.predict([one for one in chain(*splits.values()) if isinstance(one, PreferenceRecord)])
        pooled = accuracy_report([one for one in found if one.is_strict]) | {"folds": recipe.folds}
        report["preference"] = (report["preference"] or {}) | {"pooled": pooled}
    report["train"] = {
        "pairs": len(train_pairs),
        "skipped": train_pairs.skipped,
        "steps": fit.step,
        "seconds": fit.elapsed,
        "best_step": fit.best["step"] if fit.best else None,
        "reward": reward,
    }
    report["seconds"] = time.monotonic() - started
    write_json(folder / "report.json", report)
    write_manifest(folder / "model", loaded.manifest | {"evaluation": summary(report)})
    write_run_manifest(folder)
    events(message="done", progress={"done": len(fit.batches), "total": len(fit.batches)})
    return report


def _stop_here(stop: Callable[[], bool]) -> None:
    if stop():
        raise Stopped


def choose_device(name: str) -> torch.device:
    """`auto`, `cpu` or `cuda`. Raises RewardError for anything else, and for cuda where there is none."""
    if name not in ("auto", "cpu", "cuda"):
        raise RewardError(f"unknown device {name!r}; known are auto, cpu, cuda.", pointer="/device")
    there = torch.cuda.is_available() if name != "cpu" else False
    if name == "cuda" and not there:
        raise RewardError("this machine has no CUDA device; use auto or cpu.", pointer="/device")
    return torch.device("cuda" if there else "cpu")


def summary(report: dict[str, Any]) -> dict[str, Any] | None:
    """What of the report goes into the artifact."""
    preference = report["preference"]
    if not preference or "accuracy" not in preference:
        return None
    return {key: preference[key] for key in ("accuracy", "interval", "n", "verdict")}


def reward_statistics(fit: Fit) -> dict[str, float]:
    """Median and standard deviation of the raw reward over the distinct training trajectories.

    In the precision of training: rounding moves single rewards, hardly their median and spread.
    """
    raw = measured_rewards(
        fit.model,
        fit.renderer,
        fit.train.rendered,
        aggregation=fit.recipe.aggregation,
        cache=fit.cache if fit.model.frozen else None,
        bfloat16=fit.bfloat16,
    ).double()
    std = float(raw.std(correction=0))
    if not std > 1e-6:
        raise RewardError(
            "the trained model gives every training trajectory the same reward; train longer, or with a higher "
            "learning rate."
        )
    return {"median": float(raw.quantile(0.5)), "std": std}
