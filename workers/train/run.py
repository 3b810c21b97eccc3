"""A run from its directory to its manifest."""

import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from workers.device import choose_device
from workers.errors import RewardError
from workers.evaluate import Judge, evaluate
from workers.evaluate.findings import with_leaks
from workers.evaluate.report import report_of
from workers.json_files import write_json
from workers.models import MANIFEST, Lineage, RewardModel, load, renderer_of, save, write_manifest
from workers.models.ood import OodDetector
from workers.objectives import Examples, collect
from workers.objectives.bradley_terry import BradleyTerry
from workers.schema import (
    FeedbackRecord,
    PreferenceRecord,
    Trajectory,
    parse_json,
    read_records,
    write_records,
)
from workers.schema.contamination import find_contamination
from workers.schema.parents import require_backbone_parent
from workers.schema.recipe import GENERATIVE, Recipe
from workers.schema.records import record_trajectories
from workers.train.directory import Config, read_config, read_split, write_run_manifest
from workers.train.distributed import join_process_group
from workers.train.distributed.group import ProcessGroup
from workers.train.events import EventLog, Report
from workers.train.folds import Folds
from workers.train.generate import generate, hard_negatives
from workers.train.learner import Learner, require_usable
from workers.train.loop import Fit, Limits, Stopped
from workers.train.parents import Parent, read_parent
from workers.train.rewards import Measured, measured, reward_statistics, training_statistics

_CACHE_BYTES = 2 * 1024**3
Splits = dict[str, list[FeedbackRecord]]


def train(folder: Path, *, stop: Callable[[], bool] = lambda: False) -> dict[str, Any]:
    """Everything between config.json and manifest.json; the report. Raises RewardError, Stopped.

    A directory that is complete is left alone. Everything else goes on where an earlier attempt left it. Of several
    processes all train, and the first does the rest; the others return an empty report.
    """
    started = time.monotonic()
    config, recipe = read_config(folder)
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    if recipe.objective == GENERATIVE:
        return _with_seconds(folder, _train_generative(folder, config, recipe, stop), started)
    require_backbone_parent(recipe, has_parent=bool(config.parent))
    parent = read_parent(folder / "parent", recipe) if config.parent else None
    if parent is not None:
        recipe = parent.recipe(recipe)
    device = choose_device(config.device)
    process_group = join_process_group(device)
    events = EventLog(folder / "events.jsonl") if process_group.is_main_process else None
    try:
        report = _Run(
            folder, config, recipe, device, process_group, events or _silent, stop, parent
        ).to_the_end()
    finally:
        process_group.destroy()
        if events is not None:
            events.close()
    if not process_group.is_main_process:
        return {}
    return _with_seconds(folder, report, started)


def _train_generative(
    folder: Path, config: Config, recipe: Recipe, stop: Callable[[], bool]
) -> dict[str, Any]:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise RewardError(
            "a judge that writes is trained by one process; set `processes` to 1.", pointer="/processes"
        )
    from workers.train.generative.run import train_generative  # what decoders need takes seconds to import

    device = choose_device(config.device)
    events = EventLog(folder / "events.jsonl")
    try:
        report = train_generative(folder, config, recipe, device, events, stop)
    finally:
        events.close()
    report["train"]["peak_memory"] = peak_memory(device)
    return report


def _with_seconds(folder: Path, report: dict[str, Any], started: float) -> dict[str, Any]:
    """Everything the directory has at its end; the report."""
    report["seconds"] = time.monotonic() - started
    write_json(folder / "report.json", report)
    path = folder / "model" / MANIFEST
    manifest = parse_json(path.read_bytes())
    write_manifest(folder / "model", manifest | {"evaluation": summary(report)})
    write_run_manifest(folder)
    return report


@dataclass(frozen=True)
class _Run:
    folder: Path
    config: Config
    recipe: Recipe
    device: torch.device
    process_group: ProcessGroup
    events: Report
    stop: Callable[[], bool]
    parent: Parent | None = None

    def to_the_end(self) -> dict[str, Any]:
        splits: Splits = {split: read_split(self.folder, split) for split in ("train", "validation", "test")}
        if self.config.parent:
            self.events(message=f"begins with the weights of {self.config.parent['name']}")
        train, made = self._with_generated(splits)
        fit = self._fit(train, self._validation(splits), self.folder / "checkpoints")
        weights = self.process_group.trained_weights(fit.model)
        if not self.process_group.is_main_process:
            return {}
        model = fit.model if self.process_group.world_size == 1 else self._whole(train, weights)
        found = measured(model, train.rendered, cache=fit.cache)
        reward = reward_statistics(found.raw)
        others = measured(model, self._validation(splits).rendered, cache=fit.cache)
        self._save(fit.learner, model, train, reward, found, OodDetector.fit(found.ends, others.ends))
        report = self._evaluate(splits)
        if self.recipe.folds:
            report |= {"pooled": self._pooled(list(chain(*splits.values())), model, fit.cache)}
        report["train"] = {
            "examples": len(train),
            "by_objective": {name: len(train.of(name)) for name in fit.learner.weights},
            "skipped": train.skipped,
            "steps": fit.step,
            "seconds": fit.elapsed,
            "best_step": fit.best["step"] if fit.best else None,
            "reward": reward,
            "reliabilities": _reliabilities(fit.learner),
            "generated": made,
            "parent": self.config.parent or None,
            "peak_memory": peak_memory(self.device),
        }
        self.events(message="done", progress={"done": len(fit.batches), "total": len(fit.batches)})
        return report

    def _with_generated(self, splits: Splits) -> tuple[Examples, dict[str, int]]:
        """What is trained on, and how many comparisons the recipe's generators made of it, by generator."""
        records = splits["train"]
        made = generate(records, self.recipe, seed=self.config.seed)
        train = self._training([*records, *made])
        if "hard_negative" in self.recipe.generators:
            made += self._hard_negatives(splits, train)
            train = self._training([*records, *made])
        counts = Counter(one.annotator.removeprefix("generator:") for one in made)
        for name in self.recipe.generators:
            self.events(message=f"the generator {name} made {counts[name]} comparisons")
        return train, dict(counts)

    def _hard_negatives(self, splits: Splits, train: Examples) -> list[PreferenceRecord]:
        """By a model of a first training without them; kept, so that a run taken up again does not train it twice."""
        path = self.folder / "hard-negatives.jsonl.zst"
        if not path.is_file():
            self.events(message="a first training, whose model looks for hard negatives")
            first = self._fit(train, self._validation(splits), self.folder / "checkpoints" / "first")
            renderer, model = first.model.backbone.renderer, first.model

            def score(trajectories: Sequence[Trajectory]) -> list[float]:
                rendered = [renderer.render(one) for one in trajectories]
                found: list[float] = measured(model, rendered, cache=first.cache).raw.tolist()
                return found

            made = hard_negatives(splits["train"], self.recipe, score, seed=self.config.seed)
            if self.process_group.is_main_process:
                part = path.with_suffix(".part")
                write_records(part, made)
                part.replace(path)
            return made
        return [one for one in read_records(path) if isinstance(one, PreferenceRecord)]

    def _training(self, records: Sequence[FeedbackRecord]) -> Examples:
        found = self._examples(records)
        require_usable(found, self.recipe)
        for reason, count in found.skipped.items():
            self.events(message=f"left out of training: {count} records {reason}")
        return found

    def _validation(self, splits: Splits) -> Examples:
        return self._examples(splits["validation"])

    def _examples(self, records: Sequence[FeedbackRecord]) -> Examples:
        first = [one for record in records[:1] for one in record_trajectories(record)]
        return collect(records, renderer_of(self.recipe, first), self.recipe)

    def _fit(self, train: Examples, validation: Examples, checkpoints: Path) -> Fit:
        torch.manual_seed(self.config.seed)
        learner = self._learner(train)
        learner.to(self.device)
        seconds = self.config.budget.seconds if self.config.budget else None
        fit = Fit(
            learner,
            self.recipe,
            validation,
            seed=self.config.seed,
            report=self.events,
            cache=learner.model.new_cache(_CACHE_BYTES),
            limits=Limits(self.stop, seconds, checkpoints),
            process_group=self.process_group,
        )
        self.events(
            message=f"training on {len(train)} judgements, {len(fit.batches)} steps on {self.device} "
            f"in {'bfloat16' if fit.model.backbone.in_bfloat16 else 'float32'}"
        )
        if not len(validation):
            self.events(
                message="there is nothing to validate on: it trains to the end, and keeps the last weights"
            )
        fit.run()
        self._stop_here()
        return fit

    def _learner(self, train: Examples) -> Learner:
        parent = self.parent.loaded.model if self.parent is not None else None
        return Learner(self.recipe, train, seed=self.config.seed, device=str(self.device), parent=parent)

    def _whole(self, train: Examples, weights: dict[str, torch.Tensor]) -> RewardModel:
        """The sharded model in one piece."""
        torch.manual_seed(self.config.seed)
        model = self._learner(train).model
        model.backbone.prepare(train.rendered)
        model.load_state_dict(weights, strict=False)
        return model

    def _save(
        self,
        learner: Learner,
        model: RewardModel,
        train: Examples,
        reward: dict[str, float],
        found: Measured,
        ood_detector: OodDetector | None,
    ) -> None:
        save(
            model,
            self.folder / "model",
            recipe=self.recipe,
            reward=reward,
            criteria=train.criteria if model.heads.criterion is not None else {},
            lineage=Lineage(
                snapshot=self.config.snapshot,
                parent={"name": self.config.parent["name"]} if self.config.parent else {},
                code_version=self.config.code_version,
            ),
            ood_detector=ood_detector,
            training=training_statistics(found, train.rendered, reward),
            objective={name: one.cpu() for name, one in learner.parts.state_dict().items()},
        )

    def _evaluate(self, splits: Splits) -> dict[str, Any]:
        self._stop_here()
        self.events(message="evaluating on the test split")
        loaded = load(self.folder / "model", device=str(self.device))
        report = evaluate(Judge(loaded), splits["test"], validation=splits["validation"])
        seen = chain(splits["train"], self.parent.seen() if self.parent is not None else ())
        leaks = find_contamination(seen, splits["test"]) | {
            "unknown": list(self.config.parent.get("unknown", ()))
        }
        return with_leaks(report, leaks)

    def _pooled(self, records: list[FeedbackRecord], model: RewardModel, cache: Any) -> dict[str, Any]:
        """The report of the recipe rather than the model: every record by a model that saw nothing of its task."""
        self._stop_here()
        folds = Folds(
            self.recipe,
            self.config.seed,
            self.device,
            self.events,
            limits=Limits(self.stop),
            cache=cache,
            like=None if self.recipe.unfrozen or self.recipe.backbone != "step-encoder" else model,
            folder=self.folder / "folds",
        )
        found = folds.judge(records)
        report = report_of(found.judged, found.validation, criteria={self.recipe.criterion})
        return report | {"folds": self.recipe.folds}

    def _stop_here(self) -> None:
        if self.stop():
            raise Stopped


def peak_memory(device: torch.device) -> int:
    """Bytes: the most that tensors took on a GPU, else the most that the process had in memory."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most  # kibibytes everywhere else


def summary(report: dict[str, Any]) -> dict[str, Any] | None:
    """What of the report goes into the artifact."""
    preference = report["preference"]
    if not preference or "accuracy" not in preference:
        return None
    return {key: preference[key] for key in ("accuracy", "interval", "n", "verdict")}


def _reliabilities(learner: Learner) -> dict[str, float] | None:
    part = dict(learner.parts.items()).get("bradley_terry")
    return part.reliabilities() if isinstance(part, BradleyTerry) else None


def _silent(**event: Any) -> None:
    """Only the first of several processes reports."""
