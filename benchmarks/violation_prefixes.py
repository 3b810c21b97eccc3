"""Models of violations on prefixes: how early they find one, and what weighing checks by them brings.

    python -m benchmarks.violation_prefixes [--per-task N] [--out FILE]

Sample world: the scripted agents work on every task; a step violates where the world counts an unwanted change or a
broken rule, which is its hidden truth. A fifth of the tasks is held out, a fifth is for thresholds. tau-bench: clean
runs, and those with a violation that `benchmarks.policy_checks` plants, or with one of their own; a model of airline is
also used on retail, whose thresholds are its own. A planted violation follows from nothing before it, so few can be
foreseen there.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from apps.demo.agents import SEED, STYLES, plan, spoken
from apps.demo.world import SYSTEM, TASKS, DeskTask, Dice, World
from benchmarks.guard_desk import desk_checks
from benchmarks.policy_checks import (
    DOMAINS,
    WAYS,
    checks_of,
    clean_messages,
    plant,
    trajectory_of,
    violations,
)
from benchmarks.policy_texts import runs_of
from workers.evaluate.guard_weights import compare_with_any_check, evidence_of, fit_guard_weights
from workers.evaluate.learned_baselines import LearnedBaselines
from workers.evaluate.predictions import RecordScorer
from workers.evaluate.violations import violations_report
from workers.schema import StepLabelRecord, Task, Trajectory, from_messages
from workers.schema.policy_checks import PolicyCheck
from workers.schema.recipe import parse_recipe
from workers.schema.recipe_help import Channel
from workers.train.cross_validation import CrossValidation
from workers.train.events import no_report
from workers.train.linear_baseline import linear_scores

RECIPES: dict[str, dict[str, Any]] = {
    "linear": {"backbone": "linear"},
    "step-encoder": {"backbone": "step-encoder"},
}
Splits = dict[str, list[StepLabelRecord]]


def desk_records(tasks: Sequence[DeskTask], per_task: int) -> Iterator[StepLabelRecord]:
    """Of each task, agent and repetition: the conversation up to its end, with its first violating step."""
    for task in tasks:
        for place in range(per_task):
            for agent in STYLES:
                yield desk_record(task, agent, f"{task.id}-{place}")


def desk_record(task: DeskTask, agent: str, name: str) -> StepLabelRecord:
    world, dice = World(), Dice(f"{SEED} {name} {agent}")
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": world.reset(task)},
    ]
    violation = None
    for step, action in enumerate(plan(task, STYLES[agent], dice)):
        if world.done:
            break
        before = _violations(world)
        observation, _ = world.step(action.text)
        if violation is None and _violations(world) > before:
            violation = step
        messages += spoken(action, observation, None, len(messages))
    return _record(from_messages(messages), f"desk-{task.id}", violation)


def tau_records(domain: str, most: int) -> list[StepLabelRecord]:
    """Runs that break no check, and up to `most` planted violations of each check and way. The first violating step is
    the first that any check reports: all that is planted is found by its check."""
    checks, records = checks_of(domain), []
    runs = [(f"{domain}-{run['task_id']}", clean_messages(run["traj"])) for run in runs_of(DOMAINS[domain])]
    broken = [{found.check.name for found in violations(checks, run)} for _, run in runs]
    records = [
        _labelled(checks, run, task) for (task, run), names in zip(runs, broken, strict=True) if not names
    ]
    for check in checks:
        for way in range(WAYS):
            planted = (
                (task, plant(check, run, way))
                for (task, run), names in zip(runs, broken, strict=True)
                if check.name not in names
            )
            found = islice(((task, each) for task, each in planted if each is not None), most)
            records += [_labelled(checks, each.messages, task) for task, each in found]
    return records


def _labelled(checks: list[PolicyCheck], messages: list[dict[str, Any]], task: str) -> StepLabelRecord:
    found = violations(checks, messages)
    first = min((each.agent_step for each in found), default=None)
    return _record(trajectory_of(messages).steps, task, first)


def split(records: Sequence[StepLabelRecord], *, test: float = 0.2, validation: float = 0.2) -> Splits:
    """By task, so that no task is in two parts."""
    tasks = sorted({record.trajectory.task.id for record in records})
    random.Random(0).shuffle(tasks)
    ends = round(test * len(tasks)), round((test + validation) * len(tasks))
    parts = {"test": tasks[: ends[0]], "validation": tasks[ends[0] : ends[1]], "train": tasks[ends[1] :]}
    return {
        name: [record for record in records if record.trajectory.task.id in set(own)]
        for name, own in parts.items()
    }


def measure(
    splits: Splits,
    checks: Sequence[PolicyCheck],
    held_out: Splits | None = None,
    recipes: Sequence[str] = tuple(RECIPES),
) -> dict[str, Any]:
    """By recipe, the report of the test split; and that of a held-out domain, or without one the weights of checks
    and the model. tau-bench's labels are those of its checks, which leaves nothing to weigh there."""
    learned = LearnedBaselines(models=_baselines(splits))
    found: dict[str, Any] = {}
    for name in recipes:
        recipe = parse_recipe({"objective": "violation", **RECIPES[name]})
        run = CrossValidation(recipe, 0, torch.device("cpu"), no_report)
        _, model = run.trainer_on(splits["train"], splits["validation"])
        scorer = RecordScorer(model)
        test, known = scorer(splits["test"]), scorer(splits["validation"])
        report = violations_report(test, known, 0, learned)
        found[name] = {"report": report}
        if held_out is not None:
            found[name]["held_out"] = violations_report(
                scorer(held_out["test"]), scorer(held_out["validation"]), 0
            )
            continue
        evidence = [
            evidence_of([each.record for each in some], checks, [each.scores[0] for each in some])
            for some in (known, test)
        ]
        weights = fit_guard_weights(evidence[0], [check.name for check in checks], has_model=True)
        found[name] |= {
            "weights": {"intercept": weights.intercept, "slope": weights.slope, **weights.checks},
            "combined": compare_with_any_check(weights, *evidence),
        }
    return found


def _baselines(splits: Splits) -> dict[str, Any]:
    recipe = parse_recipe({"objective": "violation", "backbone": "linear"})
    kinds: dict[str, tuple[tuple[Channel, ...], bool]] = {"words": (("words",), True), "whole": ((), False)}
    return {
        name: linear_scores(
            recipe,
            splits["train"],
            splits["validation"],
            splits["test"],
            seed=0,
            channels=channels,
            prefixes=prefixes,
        ).held_out
        for name, (channels, prefixes) in kinds.items()
    }


def _record(steps: Any, task: str, violation: int | None) -> StepLabelRecord:
    trajectory = Trajectory(steps=tuple(steps), task=Task(id=task))
    return StepLabelRecord(
        trajectory=trajectory,
        annotator="rules",
        origin="imported",
        has_first_error=True,
        first_error=violation,
    )


def _violations(world: World) -> int:
    return sum(fault.startswith(("unwanted ", "broke the policy")) for fault in world.score.faults)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--per-task", type=int, default=2, help="conversations of each agent in each task")
    parser.add_argument("--most", type=int, default=10, help="planted violations of each check and way")
    parser.add_argument("--out", type=Path, default=Path("violation_prefixes.json"))
    parser.add_argument("--recipes", nargs="+", choices=tuple(RECIPES), default=list(RECIPES))
    options = parser.parse_args()
    desk = split(list(desk_records(list(TASKS.values()), options.per_task)))
    found = {"desk": measure(desk, desk_checks(), recipes=options.recipes)}
    options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    airline, retail = (tau_records(domain, options.most) for domain in ("airline", "retail"))
    halves = split(retail, test=0.5, validation=0.5)
    found["airline"] = measure(split(airline), checks_of("airline"), halves, options.recipes)
    options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
