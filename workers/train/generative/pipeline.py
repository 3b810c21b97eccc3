"""The training pipeline of a generative reward model, from the run directory to the report."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from workers.errors import RewardError
from workers.evaluate import RecordScorer, evaluate
from workers.evaluate.diagnostics import with_leaks
from workers.evaluate.learned_baselines import LearnedBaselines
from workers.evaluate.ngram_baseline import ngram_rewards
from workers.models import Lineage, load_scorer, save_generative
from workers.models.generative.model import GenerativeModel, build_writer
from workers.objectives import left_out
from workers.schema import FeedbackRecord, Trajectory
from workers.schema.contamination import find_contamination
from workers.schema.recipe import Recipe
from workers.schema.storage import read_split
from workers.train.events import Report
from workers.train.generative.questions import Pair, pairs_of, principles_of, questions_of
from workers.train.generative.ratings import ratings_of
from workers.train.generative.stages import recipe_to_resume
from workers.train.generative.trainer import GenerativeTrainer
from workers.train.limits import TrainingLimits, TrainingStopped
from workers.train.reward_statistics import TrajectoryScores, reward_statistics, training_statistics
from workers.train.run_directory import RunConfig


def train_generative(
    folder: Path,
    config: RunConfig,
    recipe: Recipe,
    device: torch.device,
    events: Report,
    stop: Callable[[], bool],
) -> dict[str, Any]:
    """Train, save, evaluate; the report. Raises RewardError, Stopped."""
    if config.parent:
        raise RewardError(
            "a generative reward model cannot start from another model; give the parent's folder as `decoder` instead.",
            pointer="/parent",
        )
    splits = {split: read_split(folder, split) for split in ("train", "validation", "test")}
    resumed = recipe_to_resume(recipe, folder / "checkpoints")
    if resumed != recipe:
        recipe = resumed
        events(
            message="the checkpoint is of an earlier version: training continues as that version did, without verdicts "
            "after own critiques, ratings and the reinforcement of single trajectories"
        )
    principles = principles_of(splits["train"]) if recipe.principles else {}
    pairs, skipped = pairs_of(splits["train"], recipe, principles)
    _require_usable(pairs, skipped)
    if recipe.principles:
        _require_principles(pairs, events)
    for reason, count in skipped.items():
        events(message=f"left out of training: {count} records {reason}")
    torch.manual_seed(config.seed)
    writer = build_writer(recipe, device=str(device))
    renderer = writer.renderer
    ratings = ratings_of(splits["train"], recipe, renderer)
    reasons = sum(pair.has_reasons for pair in pairs)
    rated = f" and {len(ratings)} ratings" if ratings else ""
    events(
        message=f"training on {len(pairs)} comparisons, {reasons} of them with reasons,{rated} on {device}"
    )
    if recipe.own_critique_epochs and not reasons and not any(run.reasons for run in ratings):
        events(message="no annotator wrote reasons, so verdicts after own critiques are left out")
    trainer = GenerativeTrainer(
        writer,
        recipe,
        questions_of(pairs, renderer, with_opposites=recipe.negate > 0),
        questions_of(pairs_of(splits["validation"], recipe, principles)[0], renderer),
        seed=config.seed,
        report=events,
        limits=TrainingLimits(stop, config.budget.seconds if config.budget else None, folder / "checkpoints"),
        ratings=ratings,
    )
    trainer.run()
    if stop():
        raise TrainingStopped
    events(message="scoring the training trajectories")
    reward, training = _statistics(
        GenerativeModel(writer, {}), [run for pair in pairs for run in (pair.better, pair.other)]
    )
    save_generative(
        writer,
        folder / "model",
        recipe=recipe,
        reward=reward,
        criteria=principles,
        lineage=Lineage(snapshot=config.snapshot, code_version=config.code_version),
        training=training,
    )
    if stop():
        raise TrainingStopped
    report = _evaluated(folder, splits, str(device), events)
    report["train"] = {
        "examples": len(pairs),
        "by_objective": {recipe.objective: len(pairs)},
        "skipped": skipped,
        "reasons": reasons,
        "steps": trainer.step,
        "seconds": trainer.elapsed,
        "best_step": trainer.best["step"] if trainer.best else None,
        "reward": reward,
        "taught": trainer.measured.get("teach"),
        "own_critiques": trainer.measured.get("own"),
        "ratings": len(ratings),
        "reinforced": trainer.curve,
    }
    events(message="done", progress={"done": trainer.steps, "total": trainer.steps})
    return report


def _evaluated(
    folder: Path,
    splits: dict[str, list[FeedbackRecord]],
    device: str,
    events: Report,
) -> dict[str, Any]:
    events(message="evaluating on the test split")
    scorer = RecordScorer(load_scorer(folder / "model", device=device))
    known = [*splits["train"], *splits["validation"]]
    learned = LearnedBaselines(ngram_rewards(known, splits["test"], scorer.model.compared_by))
    report = evaluate(scorer, splits["test"], validation=splits["validation"], learned=learned)
    leaks = find_contamination(splits["train"], splits["test"]) | {"unknown": []}
    return with_leaks(report, leaks)


def _statistics(
    model: GenerativeModel, trajectories: Sequence[Trajectory]
) -> tuple[dict[str, float], dict[str, Any]]:
    rendered = {trajectory.key: trajectory for trajectory in map(model.renderer.render, trajectories)}
    prompts = list(rendered.values())
    raw = torch.tensor([score.raw for score in model.score(prompts)], dtype=torch.double)
    reward = reward_statistics(raw)
    return reward, training_statistics(
        TrajectoryScores(raw, torch.zeros_like(raw), torch.empty(0, 0)), prompts, reward
    )


def _require_usable(pairs: Sequence[Pair], skipped: dict[str, int]) -> None:
    if len(pairs) >= 2:
        return
    raise RewardError(
        f"the training split has {len(pairs)} usable comparisons{left_out(skipped)}: generative learns from "
        "comparisons. Label at least two, of different tasks, and freeze again.",
        pointer="/snapshot",
    )


def _require_principles(pairs: Sequence[Pair], events: Report) -> None:
    if all(pair.by is None for pair in pairs):
        raise RewardError(
            "principles = true learns from comparisons by criteria, and the training split has none that name a better "
            "side; leave it out, or ask by criteria in a campaign.",
            pointer="/principles",
        )
    if all(pair.by is not None for pair in pairs):
        events(
            message="no comparison is overall, so the reward without a principle was not learnt; combine the scores by "
            "criteria instead (components of the kind criterion)"
        )
