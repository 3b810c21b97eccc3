"""What comments alone teach, where the truth is known: `python -m benchmarks.metric_rewards [--json] [--quick]`.

The sample world's conversations have a hidden reward and the true credit of every step. For every seed: other
conversations, other held-out tasks. Comments are written on the training tasks only; everything is measured on held-out
tasks, against the truth.

`rewards`: pairs of held-out conversations put into their true order, by a reward made of induced metrics alone (the
mean of the verdicts' values), without any training on preferences; next to it a model trained on the training tasks'
comparisons, longer, and fewer steps.
`steps`: how step rewards rank next to the true credit (Spearman), and how well they tell good steps from bad (AUC, by
the labels people would give), learnt by `process` from points of comments: where annotators anchored them, where the
engine grounds them without anchors, and at random steps; next to people's own labels of steps, and both together.
`joint`: accuracy on pairs of `joint` on comparisons, and on comparisons with weak labels of steps.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from apps.demo import annotators
from apps.demo.world import TASKS
from benchmarks.docs_writer import write_between
from benchmarks.sample_world import SEEDS
from benchmarks.sample_world_data import PER_TASK, Sample, sample
from workers.device import choose_device
from workers.errors import RewardError
from workers.evaluate.bootstrap import mean_interval
from workers.evaluate.predictions import score_records
from workers.evaluate.preference import correctness
from workers.evaluate.ranks import spearman
from workers.induce.comment_points import read_points
from workers.induce.embedding import Embedder
from workers.induce.grounding import Evidence, gather_evidence
from workers.induce.induction_files import Comment
from workers.induce.metric_classifier import induce_metrics
from workers.induce.metric_selection import select_metrics
from workers.induce.point_space import place_points
from workers.models import ModelScore, build
from workers.schema import FeedbackRecord, OutcomeRecord, PreferenceRecord, StepLabelRecord
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.cross_validation import CrossValidation

_SURE = 0.03  # two hidden rewards that differ by less are no comparison
_CACHE_BYTES = 1024**3
Rights = dict[str, list[float]]  # by task


def evidence_of(of: Sample, encode: Embedder, *, anchored: bool) -> Evidence:
    """Of all conversations; comments are on the training tasks. anchored: whether comments say the step."""
    held_out = set(of.held_out)
    spoken = [one for name, one in of.conversations.items() if name not in held_out]
    comments = []
    for number, raw in enumerate(annotators.comments(spoken)):
        steps = raw["anchor"]["steps"] if raw.get("anchor") and anchored else None
        comments.append(
            Comment(
                id=str(number),
                trajectory=raw["trajectory"]["trajectory_id"],
                text=raw["text"],
                sign=raw.get("sign"),
                steps=tuple(steps) if steps else None,
            )
        )
    points, vectors = read_points(comments, encode)
    evidence, _ = gather_evidence(points, vectors, of.trajectories.items(), encode)
    return place_points(evidence, encode, Embedder(is_middle=True))[0]


def metric_rewards(evidence: Evidence, seed: int) -> tuple[dict[str, float], int]:
    """By trajectory, the mean over metrics of the chance of praise less that of blame; and how many metrics."""
    rows = np.arange(len(evidence.aspects))
    induced = induce_metrics(evidence, rows, select_metrics(evidence, rows, seed)["rounds"], seed=seed)
    chances = induced.classifier.probabilities(evidence.steps, evidence.tasks)
    values = [
        sum(
            sign * chances[:, side] for sign, side in ((1, metric.good), (-1, metric.bad)) if side is not None
        )
        for metric in induced.clusters.metrics
    ]
    mean = np.mean(values, axis=0)
    return dict(zip(evidence.names, mean.tolist(), strict=True)), len(induced.clusters.metrics)


def pair_rights(rewards: dict[str, float], of: Sample) -> Rights:
    """Of every clear pair of held-out conversations of one task: 1 in the true order, 0 not, one half where equal."""
    by_task: dict[str, list[str]] = {}
    for name in of.held_out:
        by_task.setdefault(of.conversations[name].task.id, []).append(name)
    rights: Rights = {}
    for task, names in by_task.items():
        for a, b in combinations(names, 2):
            truth = of.conversations[a].world.reward - of.conversations[b].world.reward
            if abs(truth) >= _SURE:
                margin = (rewards[a] - rewards[b]) * (1 if truth > 0 else -1)
                rights.setdefault(task, []).append(correctness(margin))
    return rights


def weak_labels(evidence: Evidence, of: Sample) -> list[StepLabelRecord]:
    """As apps.metrics.derived makes them."""
    found = []
    for aspect in evidence.aspects:
        trajectory = of.trajectories[aspect.trajectory]
        if aspect.step is None:
            continue
        place = trajectory.agent_steps.index(aspect.step)
        found.append(
            StepLabelRecord(
                annotator="comments",
                origin="judge",
                weight=aspect.chance or 0.0,
                trajectory=trajectory,
                labels={place: "good" if aspect.sign > 0 else "bad"},
            )
        )
    return found


def at_random_steps(labels: Sequence[StepLabelRecord], seed: int) -> list[StepLabelRecord]:
    """The same signs at any step of the same conversations."""
    dice = random.Random(f"steps {seed}")
    return [
        StepLabelRecord(
            annotator=label.annotator,
            origin=label.origin,
            weight=label.weight,
            trajectory=label.trajectory,
            labels={dice.randrange(len(label.trajectory.agent_steps)): next(iter(label.labels.values()))},
        )
        for label in labels
    ]


class Bench:
    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.encode = Embedder()
        self.like = build(Recipe())
        self.cache = self.like.backbone.new_cache(_CACHE_BYTES)

    def seed(self, seed: int) -> dict[str, Any]:
        started = time.monotonic()
        of = sample(seed, tasks=15 if self.quick else len(TASKS), per_task=4 if self.quick else PER_TASK)
        anchored = evidence_of(of, self.encode, anchored=True)
        grounded = evidence_of(of, self.encode, anchored=False)
        mine, metrics = metric_rewards(anchored, seed)
        compared = [record for record in of.records if isinstance(record, PreferenceRecord)]
        people = [record for record in of.records if isinstance(record, StepLabelRecord)]
        trained = self._scores({"objective": "bradley_terry"}, compared, of, seed)
        lengths = {name: float(len(str(of.conversations[name].messages))) for name in of.held_out}
        few = {name: -float(len(of.trajectories[name].agent_steps)) for name in of.held_out}
        weak = {"anchored": weak_labels(anchored, of), "grounded": weak_labels(grounded, of)}
        taught: dict[str, list[FeedbackRecord]] = {
            "comments, anchored": [*weak["anchored"]],
            "comments, grounded": [*weak["grounded"]],
            "comments, random steps": [*at_random_steps(weak["anchored"], seed)],
            "people's labels": [*people],
            "people's labels and comments": [*people, *weak["anchored"]],
        }
        joint: dict[str, list[FeedbackRecord]] = {
            "comparisons": [*compared],
            "comparisons and comments": [*compared, *weak["anchored"]],
        }
        found = {
            "rewards": {
                "induced metrics alone": pair_rights(mine, of),
                "trained on comparisons": pair_rights(_raw(trained), of),
                "longer": pair_rights(lengths, of),
                "fewer steps": pair_rights(few, of),
            },
            "steps": {
                name: credit(self._scores({"objective": "process"}, records, of, seed), of)
                | {"n": len(records)}
                for name, records in taught.items()
            },
            "joint": {
                name: pair_rights(_raw(self._scores({"objective": "joint"}, records, of, seed)), of)
                for name, records in joint.items()
            },
            "metrics": metrics,
            "comments": len({aspect.comment for aspect in anchored.aspects}),
        }
        sys.stderr.write(f"seed {seed}: {time.monotonic() - started:.0f} s\n")
        return found

    def _scores(
        self, given: dict[str, Any], records: Sequence[FeedbackRecord], of: Sample, seed: int
    ) -> dict[str, ModelScore]:
        recipe = parse_recipe(given)
        if self.quick:
            recipe = replace(recipe, epochs=2)
        folds = CrossValidation(recipe, seed, choose_device("auto"), _quiet, cache=self.cache, like=self.like)
        _, model = folds.train(records)
        wanted = [OutcomeRecord(trajectory=of.trajectories[name], success=True) for name in of.held_out]
        return {
            name: one.scores[0]
            for name, one in zip(of.held_out, score_records(model, wanted, cache=self.cache), strict=True)
        }


def credit(scores: dict[str, ModelScore], of: Sample) -> dict[str, float | None]:
    """rank: Spearman's correlation with the true credit of all steps. auc: good steps against bad ones."""
    own = np.concatenate([score.step_rewards for score in scores.values()])
    true = np.concatenate([of.conversations[name].world.credit for name in scores])
    labels = [annotators.label_of(credit) for credit in true]
    told = np.array([label != "neutral" for label in labels])
    good = np.array([label == "good" for label in labels])
    return {
        "rank": spearman(own, true),
        "auc": float(roc_auc_score(good[told], own[told])),
    }


def summary(by_seed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Accuracies with intervals over seeds and tasks; means over seeds, with the least and the greatest."""
    accuracies = {
        part: {
            name: _accuracy([seed_result[part][name] for seed_result in by_seed]) for name in by_seed[0][part]
        }
        for part in ("rewards", "joint")
    }
    steps = {
        name: {
            what: _spread([seed_result["steps"][name][what] for seed_result in by_seed])
            for what in ("rank", "auc", "n")
        }
        for name in by_seed[0]["steps"]
    }
    return {
        "seeds": len(by_seed),
        "metrics": [seed_result["metrics"] for seed_result in by_seed],
        "comments": [seed_result["comments"] for seed_result in by_seed],
        **accuracies,
        "steps": steps,
    }


def table(found: dict[str, Any]) -> str:
    lines = [
        f"{found['seeds']} seeds, {min(found['comments'])} to {max(found['comments'])} comments, "
        f"{min(found['metrics'])} to {max(found['metrics'])} metrics.",
        "",
        "| pairs in their true order | % |",
        "|---|---:|",
        *(_row(name, one) for name, one in found["rewards"].items()),
        *(_row(f"joint on {name}", one) for name, one in found["joint"].items()),
        "",
        "| `process` learnt from | labels | good against bad, AUC | rank correlation with the credit |",
        "|---|---:|---:|---:|",
    ]
    for name, one in found["steps"].items():
        auc, rank = (_between(one[what]) for what in ("auc", "rank"))
        lines.append(f"| {name} | {one['n']['mean']:.0f} | {auc} | {rank} |")
    return "\n".join(lines)


def _row(name: str, one: dict[str, Any]) -> str:
    low, high = one["interval"]
    return f"| {name} | {100 * one['accuracy']:.1f} [{100 * low:.1f}, {100 * high:.1f}] |"


def _between(one: dict[str, Any]) -> str:
    return f"{one['mean']:.2f} [{one['least']:.2f}, {one['greatest']:.2f}]"


def _accuracy(found: Sequence[Rights]) -> dict[str, Any]:
    rows = [(right, task) for rights in found for task, some in rights.items() for right in some]
    mean, interval = mean_interval([right for right, _ in rows], [task for _, task in rows])
    return {"accuracy": mean, "interval": interval, "pairs": len(rows)}


def _spread(values: Sequence[float | None]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    return {"mean": statistics.mean(known), "least": min(known), "greatest": max(known)}


def _raw(scores: dict[str, ModelScore]) -> dict[str, float]:
    return {name: score.raw for name, score in scores.items()}


def _quiet(**told: Any) -> None:
    """No one follows these trainings."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metric_rewards", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few tasks, one seed, two epochs: does it run?")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument(
        "--write", type=Path, help="put the tables into this Markdown file, between their marks"
    )
    options = parser.parse_args()
    try:
        bench = Bench(quick=options.quick)
        found = summary([bench.seed(seed) for seed in range(1 if options.quick else options.seeds)])
        if options.write:
            write_between(options.write, "metric_rewards", table(found).split("\n"))
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    print(json.dumps(found) if options.json else table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
