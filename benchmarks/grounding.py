"""Is the step that a comment is about found? On AgentRx and Who&When, against the steps their authors named.

`python -m benchmarks.grounding [--json] [--quick] [--fit]` prints, of each source, how often the step is the first, and
among the first three, that `workers.induce.grounding` gives: with weights fitted on all other runs of both sources
(conditional logit), next to a step at random, the last ones and the first ones. Intervals are drawn over runs. What a
comment says of a step's number is taken out of it before. --fit prints the weights of all runs together.
"""

import argparse
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import django
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.public_data import data_folder

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
Numbers = NDArray[np.float64]
L2 = 2.0  # summed over examples: as if so much had been said against every weight
_NUMBERED = re.compile(r"\b(?:at|in) step \d+,?\s*", re.IGNORECASE)
_AT = (1, 3)


@dataclass(frozen=True, slots=True)
class Example:
    """features: [agent steps, features]. step: the place of the step that is meant."""

    source: str
    run: str
    features: Numbers
    step: int


def comments(source: str) -> Iterator[tuple[Any, str, int, str | None]]:
    """The run, what was said, the agent step it was said of, and of which category of failure that is, if known."""
    from apps.annotation.feedback.incoming import Incoming
    from apps.annotation.feedback.readers import agentrx, who_and_when

    if source == "AgentRx":
        files = ("agentrx_tau/tau_dataset_full.json", "agentrx_tau/tau_ground_truth.json")
        stream = io.BytesIO(b"\n".join((data_folder() / name).read_bytes() for name in files))
        found = [one for _, one in agentrx.read(stream)]
    else:
        found = []
        for path in sorted((data_folder() / "who_and_when" / "algorithm_generated").glob("*.json")):
            found += [one for _, one in who_and_when.read(io.BytesIO(path.read_bytes()))]
    first_error = {
        feedback.places[0].content_hash: feedback.value.first_error
        for feedback in found
        if isinstance(feedback, Incoming) and feedback.kind == "step" and feedback.value.has_first_error
    }
    for feedback in found:
        if not isinstance(feedback, Incoming) or feedback.kind != "comment" or feedback.value.anchor is None:
            continue
        run = feedback.places[0]
        meant = run.steps[feedback.value.anchor.steps[0]].source == "agent"
        step = (
            run.agent_steps.index(feedback.value.anchor.steps[0])
            if meant
            else first_error.get(run.content_hash)
        )
        if step is not None:
            # AgentRx's category is no part of what someone saw in the run.
            category, _, reason = feedback.value.text.partition(": ")
            if source == "AgentRx":
                yield run, _NUMBERED.sub("", reason), step, category
            else:
                yield run, _NUMBERED.sub("", feedback.value.text), step, None


def examples(source: str, most: int | None) -> list[Example]:
    from workers.induce.embedding import Embedder
    from workers.induce.grounding import grounding_features
    from workers.induce.step_features import TrajectoryFeatures, extract_features

    encode, seen = Embedder(), dict[str, TrajectoryFeatures]()
    out = []
    for run, text, step, _ in comments(source):
        name = run.content_hash
        if name not in seen:
            if most is not None and len(seen) == most:
                break
            seen[name] = extract_features(run, encode)
        out.append(
            Example(source, name, grounding_features([text], [-1], seen[name], encode([text]))[0], step)
        )
    return out


def fit(given: list[Example]) -> Numbers:
    """Conditional logit: P(step) = softmax(features @ weights), McFadden (1974)."""

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        total, gradient = 0.0, 2 * L2 * weights
        for example in given:
            scores = example.features @ weights
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            total -= float(np.log(shares[example.step]))
            gradient = gradient - example.features[example.step] + shares @ example.features
        return total + L2 * float(weights @ weights), gradient

    found: Numbers = minimize(loss, np.zeros(given[0].features.shape[1]), jac=True).x
    return found


def hits(one: Example, scores: Numbers) -> list[float]:
    order = np.argsort(-scores, kind="stable")
    return [float(one.step in order[:count]) for count in _AT]


def measure(given: list[Example]) -> dict[str, Any]:
    """By source and way, the hit rate at 1 and at 3 with its interval."""
    by: dict[str, dict[str, list[list[float]]]] = {}
    for run in sorted({example.run for example in given}):
        weights = fit([example for example in given if example.run != run])
        for example in (example for example in given if example.run == run):
            steps = len(example.features)
            ways = by.setdefault(example.source, {})
            ways.setdefault("grounded", []).append(hits(example, example.features @ weights))
            ways.setdefault("random", []).append([min(count, steps) / steps for count in _AT])
            ways.setdefault("last", []).append(hits(example, np.arange(steps, dtype=float)))
            ways.setdefault("first", []).append(hits(example, -np.arange(steps, dtype=float)))
    return {
        source: {
            "comments": len(next(iter(ways.values()))),
            "steps": float(np.mean([len(example.features) for example in given if example.source == source])),
            **{
                way: _shares(np.array(rows), [o.run for o in given if o.source == source])
                for way, rows in ways.items()
            },
        }
        for source, ways in by.items()
    }


def _shares(rows: Numbers, runs: list[str]) -> dict[str, Any]:
    ordered = sorted(runs)  # as they were measured
    names = sorted(set(runs))
    of = [np.array([place for place, run in enumerate(ordered) if run == name]) for name in names]
    dice = np.random.default_rng(0)
    draws = [
        rows[np.concatenate([of[place] for place in dice.integers(len(of), size=len(of))])].mean(0)
        for _ in range(1000)
    ]
    low, high = np.quantile(np.array(draws), [0.025, 0.975], axis=0)
    return {
        f"at_{count}": {"value": float(rows[:, n].mean()), "interval": [float(low[n]), float(high[n])]}
        for n, count in enumerate(_AT)
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grounding", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="four runs of each: does it run?")
    parser.add_argument("--fit", action="store_true", help="print the weights of all runs together, and stop")
    options = parser.parse_args()
    os.environ.setdefault("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")  # nothing is asked of it
    django.setup()
    given = [
        example
        for source in ("AgentRx", "Who&When")
        for example in examples(source, 4 if options.quick else None)
    ]
    if options.fit:
        from workers.induce.grounding import FEATURES

        weights = dict(zip(FEATURES, np.round(fit(given), 2).tolist(), strict=True))
        print(json.dumps(weights))
        return 0
    found = measure(given)
    if options.json:
        print(json.dumps(found))
        return 0
    print("| source | comments | steps | way | first | among three |\n|---|---:|---:|---|---:|---:|")
    for source, row in found.items():
        for way in ("grounded", "random", "last", "first"):
            cells = []
            for count in _AT:
                one = row[way][f"at_{count}"]
                cells.append(
                    f"{100 * one['value']:.0f} [{100 * one['interval'][0]:.0f}, {100 * one['interval'][1]:.0f}]"
                )
            about = f"| {source} | {row['comments']} | {row['steps']:.1f} " if way == "grounded" else "| | | "
            print(f"{about}| {way} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
