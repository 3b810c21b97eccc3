"""Policies trained on a running Touchstone: `python -m benchmarks.policies [--json] [--quick] [--draw] [--seeds 5]`.

A demo of its own is started. For every seed an endpoint learns from comparisons of what a fresh policy does, and then
the examples of docs/examples are trained on it: GRPO on that reward as it is, GRPO with people asked after every round,
a loop with step rewards (GiGPO) next to one with trajectory rewards on the reward of the last round. A second part,
`control`, learns the reward of a pendulum from comparisons of clips and solves it by that, step by step and with one
number an episode, next to the pendulum's own reward. What is reported is the hidden reward, which no one learnt from.
Search without training is measured by `benchmarks.search`.
"""

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import torch
from touchstone_client import RewardClient

from benchmarks.demo_server import Demo, demo, wait_until_served
from benchmarks.drawing import levels
from benchmarks.result_cache import ResultCache
from docs.examples import control, gigpo, grpo
from docs.examples.desk import TrainingCurve
from docs.examples.people import FeedbackLoop, first_tries

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
SEEDS = 5
SMOOTH = 10  # optimiser steps in a point
REACHED = 0.5  # of hidden reward: how many roll-outs it takes to there
SOLVED = -250.0  # of true return: how many steps it takes to there


def desk(of: Demo, seed: int, *, quick: bool) -> dict[str, Any]:
    rounds, steps = (2, 4) if quick else (grpo.ROUNDS, grpo.STEPS)
    feedback_loop = FeedbackLoop(of.web, "sample", f"desk-{seed}", of.key)
    feedback_loop.collect_comparisons(first_tries(seed), occasion=f"first of {seed}")
    feedback_loop.retrain()
    found: dict[str, Any] = {}
    with RewardClient(of.rewards, feedback_loop.endpoint, of.key, run=f"policies-{seed}") as client:
        wait_until_served(client)
        for name, around in (("as it was", None), ("people asked", feedback_loop)):
            began = time.monotonic()
            curve = grpo.train(client, seed=seed, feedback_loop=around, rounds=rounds, steps=steps)
            found[f"grpo, {name}"] = _told(seed, f"grpo, {name}", curve, began)
        for by in ("steps", "trajectories"):
            began = time.monotonic()
            curve = gigpo.train(client, seed=seed, by=by, steps=8 if quick else gigpo.STEPS)  # type: ignore[arg-type]
            found[f"loop, {by}"] = _told(seed, f"loop, {by}", curve, began)
    return found


def pendulum(of: Demo, seed: int, *, quick: bool) -> dict[str, Any]:
    """{name: {steps: true return of an episode}}"""
    feedback_loop = FeedbackLoop(of.web, "sample", f"pendulum-{seed}", of.key, own=(), recipe=control.RECIPE)
    feedback_loop.submit(list(control.comparisons(seed)))
    feedback_loop.retrain()
    found: dict[str, Any] = {}
    with RewardClient(of.rewards, feedback_loop.endpoint, of.key, run=f"policies-{seed}") as client:
        client.score([{"features": next(control.clips(0)).rows}], steps=False, uncertainty=False)
        for name, asked, by in (
            ("learnt, steps", client, "steps"),
            ("learnt, trajectories", client, "trajectories"),
            ("its own", None, "steps"),
        ):
            began = time.monotonic()
            solved = control.solve(asked, seed=seed, steps=control.EVERY if quick else control.STEPS, by=by)  # type: ignore[arg-type]
            found[name] = {str(steps): value for steps, value in solved.returns.items()}
            shown = {"seed": seed, "policy": f"control, {name}", "returns": list(found[name].values())}
            sys.stderr.write(json.dumps(shown | {"seconds": round(time.monotonic() - began)}) + "\n")
    return found


PARTS: dict[str, Callable[..., dict[str, Any]]] = {"desk": desk, "control": pendulum}


def _told(seed: int, name: str, curve: TrainingCurve, began: float) -> dict[str, Any]:
    said = {"before": curve.before, "after": curve.after, "true": curve.true, "given": curve.given}
    shown = {"seed": seed, "policy": name, "before": round(curve.before, 3), "after": round(curve.after, 3)}
    shown |= {"last": round(statistics.mean(curve.true[-SMOOTH:]), 3)}
    sys.stderr.write(json.dumps(shown | {"seconds": round(time.monotonic() - began)}) + "\n")
    return said


def summary_of_control(by_seed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """By reward, mean and standard deviation over seeds of the true return, before and at the end; steps to SOLVED,
    None where a seed never came there."""
    out: dict[str, Any] = {"seeds": len(by_seed)}
    for name in by_seed[0]:
        runs = [seed_result[name] for seed_result in by_seed]
        out[name] = {
            "before": _spread([next(iter(run.values())) for run in runs]),
            "after": _spread([list(run.values())[-1] for run in runs]),
            "reached": [
                next((int(steps) for steps, value in run.items() if value >= SOLVED), None) for run in runs
            ],
        }
    return out


def summary(by_seed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """By policy, mean and standard deviation over seeds: of the last steps, of what it most likely does; roll-outs to
    REACHED, None where a seed never came there."""
    out: dict[str, Any] = {"seeds": len(by_seed)}
    for name in by_seed[0]:
        runs = [seed_result[name] for seed_result in by_seed]
        out[name] = {
            "tried": _spread([statistics.mean(run["true"][-SMOOTH:]) for run in runs]),
            "highest": _spread([max(_smoothed(run["true"])) for run in runs]),
            "after": _spread([run["after"] for run in runs]),
            "reached": [_reached(run["true"]) for run in runs],
        }
    return out


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {
        "mean": statistics.mean(values),
        "std": statistics.stdev(values) if len(values) > 1 else None,
        "seeds": list(values),
    }


def _smoothed(values: Sequence[float]) -> list[float]:
    return [statistics.mean(values[at : at + SMOOTH]) for at in range(0, len(values), SMOOTH)]


def _reached(values: Sequence[float]) -> int | None:
    """Roll-outs until the mean of SMOOTH steps is REACHED."""
    for at in range(len(values) - SMOOTH + 1):
        if statistics.mean(values[at : at + SMOOTH]) >= REACHED:
            return (at + SMOOTH) * grpo.AT_ONCE
    return None


def draw(by_seed: Sequence[dict[str, Any]]) -> None:
    """Means over seeds, with one standard deviation to either side."""
    for file, title, names in (
        (
            "policies-grpo",
            "GRPO on the support desk: the true reward",
            ("grpo, as it was", "grpo, people asked"),
        ),
        (
            "policies-steps",
            "Step rewards and trajectory rewards: the true reward",
            ("loop, steps", "loop, trajectories"),
        ),
    ):
        series = {}
        for name in names:
            rows = zip(*(_smoothed(seed_result[name]["true"]) for seed_result in by_seed), strict=True)
            points = [
                (grpo.AT_ONCE * SMOOTH * (at + 1), *_band(row, 0.0, 1.0)) for at, row in enumerate(rows)
            ]
            series[name.partition(", ")[2]] = points
        drawn = levels(f"{title}, {len(by_seed)} seeds", series, "roll-outs scored")
        (IMAGES / f"{file}.svg").write_text(drawn, encoding="utf-8")


def draw_control(by_seed: Sequence[dict[str, Any]]) -> None:
    """Means over seeds, with one standard deviation to either side."""
    series = {}
    for name in by_seed[0]:
        rows = zip(*(seed_result[name].values() for seed_result in by_seed), strict=True)
        series[name] = [
            (float(steps), *_band(row, -math.inf, 0.0))
            for steps, row in zip(by_seed[0][name], rows, strict=True)
        ]
    title = f"A pendulum, reward learnt from clips: the true return, {len(by_seed)} seeds"
    drawn = levels(title, series, "steps in the environment", ("solved", SOLVED))
    (IMAGES / "policies-control.svg").write_text(drawn, encoding="utf-8")


def _band(values: Sequence[float], low: float, high: float) -> tuple[float, float, float]:
    mean, std = statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0
    return mean, max(low, mean - std), min(high, mean + std)


def _lines(found: dict[str, Any]) -> Iterator[str]:
    for part, of_part in found.items():
        yield f"{part}: hidden reward, mean (standard deviation) over {of_part['seeds']} seeds"
        for name, one in of_part.items():
            if name == "seeds":
                continue
            shown = ", ".join(
                f"{what} {each['mean']:.3f} ({each['std'] or 0:.3f})"
                for what, each in one.items()
                if what != "reached"
            )
            yield f"    {name}: {shown}; reached after {one['reached']}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="one seed, few steps: does it run?")
    parser.add_argument("--part", action="append", choices=PARTS, help="only these (all without)")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--draw", action="store_true", help="write docs/images/policies-*.svg")
    parser.add_argument(
        "--out", type=Path, help="every seed's figures, written as they come; what is there is kept"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the policies are too small for more
    kept = ResultCache(arguments.out)
    count = 1 if arguments.quick else arguments.seeds
    seeds = range(arguments.first_seed, arguments.first_seed + count)
    parts = arguments.part or list(PARTS)
    with ExitStack() as stack:
        running = cache(lambda: stack.enter_context(demo()))

        def find(part: str, seed: int) -> dict[str, Any]:
            return PARTS[part](running(), seed, quick=arguments.quick)

        by_part = {part: [kept.get(part, seed, find) for seed in seeds] for part in parts}
    found = {}
    for part, summarise, drawn in (("desk", summary, draw), ("control", summary_of_control, draw_control)):
        if part in by_part:
            found[part] = summarise(by_part[part])
            if arguments.draw:
                drawn(by_part[part])
    print(json.dumps(found) if arguments.json else "\n".join(_lines(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
