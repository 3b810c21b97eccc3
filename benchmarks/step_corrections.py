"""What corrections of steps add: `python -m benchmarks.step_corrections [--json] [--quick]`.

In the sample world the true credit of every step is known, and so is what a careful agent would do next. Every step of
the training tasks that a simulated annotator called bad, and for which such an action earns more credit than the step
did, gets that action as its correction. For every seed: other conversations, other held-out tasks, other annotators.

Trained with and without the corrections: `process` on step labels, `bradley_terry` on comparisons. Measured on held-out
tasks, against the truth: `accuracy`, trajectories ordered by the hidden reward; `credit`, the rank correlation of step
rewards with the true credit within trajectories; `steps`, at truly bad steps, how often the careful agent's action is
scored above the step as it was.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from msgspec.structs import replace

from apps.demo.agents import PER_TASK, STYLES, Conversation, plan
from apps.demo.annotators import label_of
from apps.demo.world import TASKS, Dice, replay
from apps.demo.world.actions import SPEAKING, Action
from benchmarks.output import put_out
from benchmarks.sample_world import measure
from benchmarks.sample_world_data import Sample, sample
from benchmarks.sample_world_summary import Measured
from workers.device import choose_device
from workers.evaluate.bootstrap import difference_interval, mean_interval, t_quantile
from workers.models import LoadedModel, build
from workers.schema import (
    FeedbackRecord,
    StepCorrection,
    StepLabelRecord,
    ToolCall,
    Trajectory,
)
from workers.schema.recipe import CONVEX, Recipe, parse_recipe
from workers.schema.step_corrections import Correction, corrected_prefixes, first_error
from workers.train.cross_validation import CrossValidation

SEEDS = 5
_CACHE_BYTES = 1024**3
_CAREFUL = STYLES["desk-a"]
# By name: the recipe, the name of the one that it is compared with, and which steps are corrected.
RECIPES: dict[str, tuple[dict[str, Any], str | None, Literal["bad", "first"]]] = {
    "process": ({"objective": "process"}, None, "bad"),
    "process, pairs 0.25": ({"objective": "process", "correction_weight": 0.25}, "process", "bad"),
    "process, pairs 1": ({"objective": "process", "correction_weight": 1.0}, "process", "bad"),
    "process, pairs 1 of first errors": (
        {"objective": "process", "correction_weight": 1.0},
        "process",
        "first",
    ),
    "bradley_terry": ({"objective": "bradley_terry"}, None, "bad"),
    "bradley_terry, pairs 0.5": (
        {"objective": "bradley_terry", "generators": ["correction"]},
        "bradley_terry",
        "bad",
    ),
}


def right_action(conversation: Conversation, step: int, actions: Sequence[Action]) -> Action | None:
    """What a careful agent does instead of this agent step: the first of its actions that was not done yet and earns
    credit, if it earns more than the step did."""
    task, before = conversation.task, [action.text for action in actions[:step]]
    careful = plan(task, _CAREFUL, Dice(f"careful {conversation.id} {step}"))
    candidates = [action for action in careful if action.text not in before]
    if not candidates:
        return None
    credits = [replay(task, [*before, action.text]).credit[-1] for action in candidates]
    good = next((place for place, credit in enumerate(credits) if label_of(credit) == "good"), None)
    best = credits.index(max(credits)) if good is None else good
    return candidates[best] if credits[best] > conversation.world.credit[step] else None


def actions_done(trajectory: Trajectory) -> list[Action]:
    """By agent step."""
    steps = [trajectory.steps[index] for index in trajectory.agent_steps]
    last = len(steps) - 1
    return [
        Action(step.tool_calls[0].name, dict(step.tool_calls[0].arguments))  # type: ignore[arg-type]
        if step.tool_calls
        else Action(SPEAKING[place == last], {"text": step.text})
        for place, step in enumerate(steps)
    ]


def as_correction(action: Action) -> Correction:
    if action.name in SPEAKING:
        return str(action.arguments["text"])
    return StepCorrection(tool_calls=(ToolCall(name=action.name, arguments=dict(action.arguments)),))


def corrected_records(of: Sample, *, only_first: bool) -> list[FeedbackRecord]:
    """The records, with corrections of the steps that their annotators called bad."""
    return [
        replace(record, corrections=_corrections(of, record, only_first=only_first))
        if isinstance(record, StepLabelRecord)
        else record
        for record in of.records
    ]


def _corrections(of: Sample, record: StepLabelRecord, *, only_first: bool) -> dict[int, Correction]:
    error = first_error(record)
    bad = [step for step, label in record.labels.items() if label == "bad"]
    steps = [error] if (only_first or not bad) and error is not None else bad
    conversation = of.conversations[str(record.trajectory.id)]
    actions = actions_done(record.trajectory)
    found = {step: right_action(conversation, step, actions) for step in steps}
    return {step: as_correction(action) for step, action in found.items() if action is not None}


def held_out_pairs(of: Sample) -> Iterator[tuple[str, Trajectory, Trajectory]]:
    """At truly bad steps of held-out conversations: the task, the prefix with the right action, and with the step."""
    for name in of.held_out:
        conversation, trajectory = of.conversations[name], of.trajectories[name]
        actions = actions_done(trajectory)
        bad = [step for step, credit in enumerate(conversation.world.credit) if label_of(credit) == "bad"]
        right = {step: right_action(conversation, step, actions) for step in bad}
        known = {step: as_correction(action) for step, action in right.items() if action is not None}
        record = StepLabelRecord(trajectory=trajectory, corrections=known, annotator="truth")
        for _, corrected, original in corrected_prefixes(record):
            yield conversation.task.id, corrected, original


@dataclass(frozen=True)
class Trained:
    """steps: by held-out task, whether the right action is scored above the step as it was."""

    measured: Measured
    steps: dict[str, list[float]]
    pairs: int


class Bench:
    def __init__(
        self,
        *,
        quick: bool,
        backbone: Literal["step-encoder", "linear", "hybrid"],
        per_task: int,
        recipes: Sequence[str],
    ) -> None:
        self.quick, self.backbone, self.per_task, self.recipes = quick, backbone, per_task, recipes
        model = build(Recipe(backbone=backbone))
        self.like = None if backbone == "linear" else model
        self.cache = model.backbone.new_cache(_CACHE_BYTES)

    def seed(self, seed: int) -> dict[str, Trained]:
        of = sample(seed, tasks=15 if self.quick else len(TASKS), per_task=4 if self.quick else self.per_task)
        pairs = [*held_out_pairs(of)]
        return {name: self._trained(name, of, pairs, seed) for name in self.recipes}

    def _trained(
        self, name: str, of: Sample, pairs: list[tuple[str, Trajectory, Trajectory]], seed: int
    ) -> Trained:
        given, _, steps = RECIPES[name]
        recipe = parse_recipe(given | {"backbone": self.backbone} | ({"epochs": 2} if self.quick else {}))
        started = time.monotonic()
        records = corrected_records(of, only_first=steps == "first")
        folds = CrossValidation(
            recipe, seed, choose_device("auto"), lambda **event: None, cache=self.cache, like=self.like
        )
        module, model = folds.train(records)
        found = Trained(
            measure(model, of, self.cache), self._choices(model, pairs), _step_pairs(module.examples)
        )
        event = {
            "seed": seed,
            "recipe": name,
            "examples": len(module.examples),
            "pairs": found.pairs,
            "accuracy": round(found.measured.accuracy, 4),
            "credit": found.measured.within,
            "steps": round(statistics.mean(value for some in found.steps.values() for value in some), 4),
            "held_out": len(pairs),
            "seconds": round(time.monotonic() - started, 1),
        }
        sys.stderr.write(json.dumps(event) + "\n")
        return found

    def _choices(
        self, model: LoadedModel, pairs: list[tuple[str, Trajectory, Trajectory]]
    ) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for task, *sides in pairs:
            corrected, original = (
                _value(score) for score in model.score([model.render(side) for side in sides])
            )
            found.setdefault(task, []).append(float(corrected > original) + 0.5 * (corrected == original))
        return found


def _step_pairs(examples: Any) -> int:
    """Those that were learnt from, of `process` and of `bradley_terry`."""
    return sum(
        example.source is not None or getattr(example.record, "annotator", "") == "generator:correction"
        for example in examples.items
    )


def _value(score: Any) -> float:
    """Of the last step: of a model with labels P(good) - P(bad), else the reward of the prefix."""
    labels = score.labels[-1] if score.labels else None
    return float(score.raw if labels is None else labels["good"] - labels["bad"])


def summary(by_seed: list[dict[str, Trained]]) -> dict[str, Any]:
    """By recipe: means, intervals over tasks (of the credit over seeds), and gains over the one without pairs."""
    found: dict[str, Any] = {"seeds": len(by_seed)}
    for name in by_seed[0]:
        reference = RECIPES[name][1]
        trained = [seed_result[name] for seed_result in by_seed]
        choices = {
            "accuracy": [each.measured.right for each in trained],
            "steps": [each.steps for each in trained],
        }
        row: dict[str, Any] = {"pairs": statistics.mean(each.pairs for each in trained)}
        for key, by_task in choices.items():
            values, tasks = _flat(by_task)
            mean, interval = mean_interval(values, tasks)
            row[key] = {"mean": mean, "interval": interval, "n": len(values)}
        row["credit"] = {"mean": statistics.mean(each.measured.within or 0.0 for each in trained)}
        if reference in by_seed[0]:
            others = [seed_result[reference] for seed_result in by_seed]
            row["gain"] = _gains(trained, others)
        found[name] = row
    return found


def _gains(trained: list[Trained], others: list[Trained]) -> dict[str, Any]:
    gains: dict[str, Any] = {}
    for key in ("accuracy", "steps"):
        both = [
            [each.measured.right if key == "accuracy" else each.steps for each in side]
            for side in (trained, others)
        ]
        (values, tasks), (before, _) = map(_flat, both)
        mean, interval = difference_interval(values, before, tasks)
        gains[key] = {"mean": mean, "interval": interval}
    differences = [
        (each.measured.within or 0.0) - (other.measured.within or 0.0)
        for each, other in zip(trained, others, strict=True)
    ]
    mean = statistics.mean(differences)
    spread: list[float] | None = None
    if len(differences) > 1:
        half = (
            t_quantile(len(differences) - 1, 0.95) * statistics.stdev(differences) / len(differences) ** 0.5
        )
        spread = [mean - half, mean + half]
    return gains | {"credit": {"mean": mean, "interval": spread}}


def _flat(by_seed: list[dict[str, list[float]]]) -> tuple[list[float], list[str]]:
    rows = [(value, task) for seed in by_seed for task, some in seed.items() for value in some]
    return [value for value, _ in rows], [task for _, task in rows]


def summary_lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"over {found['seeds']} seeds, on held-out tasks"
    for name in (name for name in RECIPES if name in found):
        row = found[name]
        yield f"{name}, {row['pairs']:.0f} step pairs"
        for key in ("accuracy", "steps", "credit"):
            digits = 3 if key == "credit" else 1
            scale = 1 if key == "credit" else 100
            text = f"    {key}: {scale * row[key]['mean']:.{digits}f}"
            if row[key].get("interval"):
                text += f" {_bounds(row[key]['interval'], scale, digits)}"
            if "gain" in row:
                gain = row["gain"][key]
                text += f"; gain {scale * gain['mean']:+.{digits}f}"
                text += f" {_bounds(gain['interval'], scale, digits)}" if gain["interval"] else ""
            yield text


def _bounds(interval: list[float], scale: float, digits: int) -> str:
    return "[" + ", ".join(f"{scale * bound:.{digits}f}" for bound in interval) + "]"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step_corrections", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few tasks, one seed: does it run?")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--recipes", nargs="+", choices=[*RECIPES], default=[*RECIPES])
    parser.add_argument("--per-task", type=int, default=PER_TASK, help="conversations of each task")
    parser.add_argument("--backbone", choices=("step-encoder", *CONVEX), default="linear")
    parser.add_argument("--threads", type=int, help="for torch; its own choice without")
    parser.add_argument("--out", type=Path, help="also write the JSON object here")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    bench = Bench(
        quick=arguments.quick,
        backbone=arguments.backbone,
        per_task=arguments.per_task,
        recipes=arguments.recipes,
    )
    found = summary([bench.seed(seed) for seed in range(1 if arguments.quick else arguments.seeds)])
    put_out(found, summary_lines(found), arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
