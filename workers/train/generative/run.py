"""A run whose model writes, from its directory to its report."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from workers.errors import RewardError
from workers.evaluate import Judge, evaluate
from workers.evaluate.findings import with_leaks
from workers.evaluate.preference import half
from workers.models import Lineage, load_scorer, save_generative
from workers.models.generative.model import GenerativeModel, build_writer
from workers.schema import FeedbackRecord, PreferenceRecord, Trajectory
from workers.schema.contamination import find_contamination
from workers.schema.recipe import Recipe
from workers.train.directory import Config, read_split
from workers.train.events import Report
from workers.train.generative.loop import GenerativeFit
from workers.train.generative.questions import Pair, pairs_of, principles_of, questions_of
from workers.train.loop import Limits, Stopped
from workers.train.rewards import Measured, reward_statistics, training_statistics


def train_generative(
    folder: Path,
    config: Config,
    recipe: Recipe,
    device: torch.device,
    events: Report,
    stop: Callable[[], bool],
) -> dict[str, Any]:
    """Train, save, evaluate; the report. Raises RewardError, Stopped."""
    if config.parent:
        raise RewardError(
            "a judge that writes goes on from no other model; give the parent's folder as `decoder` instead.",
            pointer="/parent",
        )
    splits = {split: read_split(folder, split) for split in ("train", "validation", "test")}
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
    reasons = sum(one.has_reasons for one in pairs)
    events(message=f"training on {len(pairs)} comparisons, {reasons} of them with reasons, on {device}")
    fit = GenerativeFit(
        writer,
        recipe,
        questions_of(pairs, renderer, with_opposites=recipe.negate > 0),
        questions_of(pairs_of(splits["validation"], recipe, principles)[0], renderer),
        seed=config.seed,
        report=events,
        limits=Limits(stop, config.budget.seconds if config.budget else None, folder / "checkpoints"),
    )
    fit.run()
    if stop():
        raise Stopped
    events(message="giving a verdict on every run it was trained on")
    reward, training = _statistics(
        GenerativeModel(writer, {}), [run for one in pairs for run in (one.better, one.other)]
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
        raise Stopped
    report = _evaluated(folder, splits, str(device), events)
    report["train"] = {
        "examples": len(pairs),
        "by_objective": {recipe.objective: len(pairs)},
        "skipped": skipped,
        "reasons": reasons,
        "steps": fit.step,
        "seconds": fit.elapsed,
        "best_step": fit.best["step"] if fit.best else None,
        "reward": reward,
        "taught": fit.taught,
        "reinforced": fit.curve,
    }
    events(message="done", progress={"done": fit.steps, "total": fit.steps})
    return report


def position(judge: Judge, records: Sequence[FeedbackRecord]) -> dict[str, Any] | None:
    """How much the order of two runs matters to a model that compares, on pairs people decided; None without any.

    {n, consistency: both orders name the same run, first: how often the run shown first is named, formed: verdicts
    that came within the critique's tokens, accuracy: {one_order, both_orders}}. one_order: the mean of asking (a, b)
    and asking (b, a); both_orders: of the averaged chances.
    """
    by = judge.model.compared_by
    pairs = [one for one in records if isinstance(one, PreferenceRecord) and one.criterion in by]
    found = judge.compared(pairs)
    told = [(one, 1 if record.choice == "a" else -1) for record, one in found if record.choice in ("a", "b")]
    if not told:
        return None
    n = len(told)
    firsts = [answer for one, _ in told for answer in (one.first, one.second)]
    single = [half(sign * one.first.log_odds) + half(-sign * one.second.log_odds) for one, sign in told]
    return {
        "n": n,
        "consistency": sum(one.is_consistent for one, _ in told) / n,
        "first": sum(answer.log_odds > 0 for answer in firsts) / (2 * n),
        "formed": sum(answer.written.is_formed for answer in firsts) / (2 * n),
        "accuracy": {
            "one_order": sum(single) / (2 * n),
            "both_orders": sum(half(sign * one.log_odds) for one, sign in told) / n,
        },
    }


def _evaluated(
    folder: Path, splits: dict[str, list[FeedbackRecord]], device: str, events: Report
) -> dict[str, Any]:
    events(message="evaluating on the test split")
    judge = Judge(load_scorer(folder / "model", device=device))
    report = evaluate(judge, splits["test"], validation=splits["validation"])
    report["position"] = position(judge, splits["test"])
    leaks = find_contamination(splits["train"], splits["test"]) | {"unknown": []}
    return with_leaks(report, leaks)


def _statistics(
    model: GenerativeModel, trajectories: Sequence[Trajectory]
) -> tuple[dict[str, float], dict[str, Any]]:
    rendered = {one.key: one for one in map(model.renderer.render, trajectories)}
    asked = list(rendered.values())
    raw = torch.tensor([one.raw for one in model.score(asked)], dtype=torch.double)
    reward = reward_statistics(raw)
    return reward, training_statistics(Measured(raw, torch.zeros_like(raw), torch.empty(0, 0)), asked, reward)


def _require_usable(pairs: Sequence[Pair], skipped: dict[str, int]) -> None:
    if len(pairs) >= 2:
        return
    why = "; ".join(f"{count} {reason}" for reason, count in skipped.items())
    left_out = f" (left out: {why})" if why else ""
    raise RewardError(
        f"the training split has {len(pairs)} usable judgements{left_out}: generative learns from comparisons. Label "
        "at least two, of different tasks, and freeze again.",
        pointer="/snapshot",
    )


def _require_principles(pairs: Sequence[Pair], events: Report) -> None:
    if all(one.by is None for one in pairs):
        raise RewardError(
            "principles = true learns from comparisons by criteria, and the training split has none that name a better "
            "side; leave it out, or ask by criteria in a campaign.",
            pointer="/principles",
        )
    if all(one.by is not None for one in pairs):
        events(
            message="no comparison is overall, so its reward without a principle was not learnt; weigh its scores by "
            "criteria instead (components of the kind criterion)"
        )
