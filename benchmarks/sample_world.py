"""What the objectives learn where the truth is known: `python -m benchmarks.sample_world [--json] [--quick]`.

The sample world's conversations have a hidden reward and the true credit of every step. For every seed: other
conversations, other held-out tasks, other dice of the simulated annotators. Measured on held-out tasks, against the
truth.

`objectives`: `joint` on everything that was said, next to every objective on its own kind of feedback.
`credit`: how step rewards rank next to the true credit, learnt from outcomes (the hidden reward, and a verifier that
sees less and errs) and from comparisons; three times as many conversations as for the rest.
`annotators`: one of five annotators gave 30 % of the comparisons, at random; how much of what that costs comes back
when reliabilities are learnt.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from apps.demo import annotators
from apps.demo.agents import STYLES, Conversation, converse
from apps.demo.generate import verdict
from apps.demo.world import TASKS
from benchmarks.output import put_out
from workers.device import choose_device
from workers.errors import RewardError
from workers.evaluate.bootstrap import difference_interval, mean_interval
from workers.evaluate.predictions import score_records
from workers.evaluate.preference import correctness
from workers.evaluate.ranks import spearman
from workers.models import ModelScore, build
from workers.objectives.bradley_terry import BradleyTerry
from workers.schema import FeedbackRecord, OutcomeRecord, PreferenceRecord, Task, Trajectory, from_messages
from workers.schema.recipe import SINGLE, Recipe, parse_recipe
from workers.schema.records import RECORD_TYPES, Kind
from workers.train.cross_validation import CrossValidation

SEEDS = 5
PER_TASK = 10
FOR_CREDIT = 30
_TOGETHER = 5  # conversations of a task that annotators have before them
_SURE = 0.03  # two hidden rewards that differ by less are no comparison
_RANDOM_SHARE = 0.3
_CACHE_BYTES = 1024**3

# By name: the recipe, and whether outcomes are the hidden reward itself.
CREDIT: dict[str, tuple[dict[str, Any], bool]] = {
    "progress": ({"objective": "progress"}, True),
    "progress, verifier": ({"objective": "progress"}, False),
    "bradley_terry, sum": ({"objective": "bradley_terry", "aggregation": "sum"}, False),
    "bradley_terry, value": ({"objective": "bradley_terry"}, False),
    "process": ({"objective": "process"}, False),
}


@dataclass(frozen=True)
class Sample:
    """One seed's conversations, with what was said of them, split by task."""

    conversations: dict[str, Conversation]
    trajectories: dict[str, Trajectory]
    records: list[FeedbackRecord]  # of the training tasks
    held_out: list[str]

    def with_true_outcomes(self) -> list[FeedbackRecord]:
        return [
            msgspec.structs.replace(record, reward=self.reward(record.trajectory))
            if isinstance(record, OutcomeRecord)
            else record
            for record in self.records
        ]

    def reward(self, one: Trajectory) -> float:
        return self.conversations[str(one.id)].world.reward


def sample(seed: int, *, tasks: int, per_task: int) -> Sample:
    chosen = random.Random(seed).sample(sorted(TASKS), tasks)
    held_out = set(chosen[: tasks // 3])
    spoken = [
        converse(TASKS[task], agent, f"{task}-{seed}-{place}")
        for task in chosen
        for place, agent in enumerate(random.Random(f"{seed}/{task}").choices(list(STYLES), k=per_task))
    ]
    read = {conversation.id: _trajectory(conversation) for conversation in spoken}
    training = [conversation for conversation in spoken if conversation.task.id not in held_out]
    return Sample(
        {conversation.id: conversation for conversation in spoken},
        read,
        [*_feedback(training, read)],
        [conversation.id for conversation in spoken if conversation.task.id in held_out],
    )


def _trajectory(one: Conversation) -> Trajectory:
    return Trajectory(steps=from_messages(one.messages), task=Task(id=one.task.id), id=one.id)


def _feedback(spoken: list[Conversation], read: dict[str, Trajectory]) -> Iterator[FeedbackRecord]:
    said: dict[Kind, Callable[[list[Conversation]], Iterator[dict[str, Any]]]] = {
        "pairwise": annotators.pairs,
        "ranking": annotators.rankings,
        "step": annotators.steps,
        "rubric": annotators.rubric,
        "rating": annotators.ratings,
    }
    by_task: dict[str, list[Conversation]] = {}
    for conversation in spoken:
        by_task.setdefault(conversation.task.id, []).append(conversation)
    for start in range(0, max(map(len, by_task.values())), _TOGETHER):
        some = [
            conversation for group in by_task.values() for conversation in group[start : start + _TOGETHER]
        ]
        for kind, speak in said.items():
            for raw in speak(some):
                yield _record(kind, raw, read)
    for conversation in spoken:
        reward, success = verdict(conversation)
        yield OutcomeRecord(trajectory=read[conversation.id], success=success, reward=reward)


def pairwise_record(raw: dict[str, Any], read: dict[str, Trajectory]) -> PreferenceRecord:
    found = _record("pairwise", raw, read)
    assert isinstance(found, PreferenceRecord)
    return found


def _record(kind: Kind, raw: dict[str, Any], read: dict[str, Trajectory]) -> FeedbackRecord:
    """A record as imports have it, with its trajectories in the place of their names."""
    fields = {key: value for key, value in raw.items() if key not in ("task", "campaign")}
    if "first_error" in fields:
        fields["has_first_error"] = True
    for key in ("a", "b", "trajectory"):
        if key in fields:
            fields[key] = read[fields[key]["trajectory_id"]]
    if "items" in fields:
        fields["trajectories"] = tuple(read[item["trajectory_id"]] for item in fields.pop("items"))
    known: FeedbackRecord = msgspec.convert(fields, RECORD_TYPES[kind], strict=False)
    return known


@dataclass(frozen=True)
class Measured:
    """On held-out tasks. accuracy: right choices, by task. credit: by trajectory, Spearman's with the true one."""

    right: dict[str, list[float]]
    pooled: float | None
    within: float | None

    @property
    def accuracy(self) -> float:
        return statistics.mean(right for some in self.right.values() for right in some)


def measure(model: Any, of: Sample, cache: Any) -> Measured:
    wanted = [OutcomeRecord(trajectory=of.trajectories[name], success=True) for name in of.held_out]
    scores = {
        name: one.scores[0]
        for name, one in zip(of.held_out, score_records(model, wanted, cache=cache), strict=True)
    }
    return _against_the_truth(scores, of)


def _against_the_truth(scores: dict[str, ModelScore], of: Sample) -> Measured:
    right: dict[str, list[float]] = {}
    by_task: dict[str, list[str]] = {}
    for name in scores:
        by_task.setdefault(of.conversations[name].task.id, []).append(name)
    for task, names in by_task.items():
        for a, b in combinations(names, 2):
            difference = of.reward(of.trajectories[a]) - of.reward(of.trajectories[b])
            if abs(difference) >= _SURE:
                margin = (scores[a].raw - scores[b].raw) * (1 if difference > 0 else -1)
                right.setdefault(task, []).append(correctness(margin))
    found = [
        (np.array(score.step_rewards), np.array(of.conversations[name].world.credit))
        for name, score in scores.items()
    ]
    own, true = (np.concatenate([credit_pair[side] for credit_pair in found]) for side in (0, 1))
    each = [value for credit_pair in found if (value := spearman(*credit_pair)) is not None]
    return Measured(right, spearman(own, true), statistics.mean(each) if each else None)


def annotator_records(of: Sample, seed: int) -> dict[str, list[FeedbackRecord]]:
    """The same comparisons three times: `clean`; `noisy`, 30 % of them given at random by one; `without` those."""
    dice = random.Random(f"random annotator {seed}")
    clean, noisy, without = list[FeedbackRecord](), list[FeedbackRecord](), list[FeedbackRecord]()
    for record in of.records:
        if not isinstance(record, PreferenceRecord) or record.choice not in ("a", "b"):
            continue
        clean.append(record)
        if dice.random() < _RANDOM_SHARE:
            noisy.append(
                msgspec.structs.replace(record, annotator="sim-dice", choice=dice.choice("ab"), strength=1)
            )
        else:
            noisy.append(record)
            without.append(record)
    return {"clean": clean, "noisy": noisy, "without": without}


class Bench:
    def __init__(self, *, quick: bool, say: Callable[..., None]) -> None:
        self.quick = quick
        self.say = say
        self.like = build(Recipe())
        self.cache = self.like.backbone.new_cache(_CACHE_BYTES)
        self.tasks = 15 if quick else len(TASKS)

    def seed(self, seed: int) -> dict[str, dict[str, Any]]:
        """By part and name, what was measured."""
        of = sample(seed, tasks=self.tasks, per_task=4 if self.quick else PER_TASK)
        objectives = {
            name: self._trained({"objective": name}, of.records, of, seed) for name in ("joint", *SINGLE)
        }
        many = sample(seed, tasks=self.tasks, per_task=4 if self.quick else FOR_CREDIT)
        credit = {
            name: self._trained(recipe, many.with_true_outcomes() if true else many.records, many, seed)
            for name, (recipe, true) in CREDIT.items()
        }
        by_noise = annotator_records(of, seed)
        noise = {
            name: self._trained({"annotators": how}, by_noise[records], of, seed)
            for name, (records, how) in {
                "clean": ("clean", "equal"),
                "without": ("without", "equal"),
                "equal": ("noisy", "equal"),
                "learnt": ("noisy", "learnt"),
            }.items()
        }
        return {"objectives": objectives, "credit": credit, "annotators": noise}

    def _trained(
        self, given: dict[str, Any], records: Sequence[FeedbackRecord], of: Sample, seed: int
    ) -> Any:
        recipe = parse_recipe(given)
        if self.quick:
            recipe = replace(recipe, epochs=2)
        started = time.monotonic()
        folds = CrossValidation(recipe, seed, choose_device("auto"), _quiet, cache=self.cache, like=self.like)
        module, model = folds.train(records)
        found = measure(model, of, self.cache)
        learnt = [part.reliabilities() for part in module.parts.values() if isinstance(part, BradleyTerry)]
        self.say(
            seed=seed,
            recipe=given,
            examples=len(module.examples),
            accuracy=round(found.accuracy, 4),
            credit=found.pooled,
            within=found.within,
            reliabilities=next(iter(learnt), None),
            seconds=round(time.monotonic() - started, 1),
        )
        return found


def summary(by_seed: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Means over the seeds, with intervals over seeds and tasks."""
    first = by_seed[0]
    objectives = {
        name: _accuracy(by_seed, "objectives", name)
        | ({} if name == "joint" else {"joint_gains": _gain(by_seed, "objectives", "joint", name)})
        for name in first["objectives"]
    }
    credit = {
        name: {
            "rank_correlation": _spread([seed_result["credit"][name].pooled for seed_result in by_seed]),
            "within_trajectories": _spread([seed_result["credit"][name].within for seed_result in by_seed]),
        }
        for name in first["credit"]
    }
    noise: dict[str, Any] = {name: _accuracy(by_seed, "annotators", name) for name in first["annotators"]}
    for reference in ("clean", "without"):
        lost = _gain(by_seed, "annotators", reference, "equal")
        back = _gain(by_seed, "annotators", "learnt", "equal")
        share = back["difference"] / lost["difference"] if lost["difference"] > 0 else None
        noise[f"lost_beside_{reference}"] = lost
        noise[f"restored_of_{reference}"] = share
    noise["learnt_gains"] = _gain(by_seed, "annotators", "learnt", "equal")
    return {"seeds": len(by_seed), "objectives": objectives, "credit": credit, "annotators": noise}


def _spread(values: list[float | None]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    return {"mean": statistics.mean(known) if known else None, "seeds": values}


def _accuracy(by_seed: list[dict[str, dict[str, Any]]], part: str, name: str) -> dict[str, Any]:
    values, groups = _choices([seed_result[part][name] for seed_result in by_seed])
    mean, interval = mean_interval(values, groups)
    return {
        "accuracy": mean,
        "interval": interval,
        "seeds": [seed_result[part][name].accuracy for seed_result in by_seed],
    }


def _gain(by_seed: list[dict[str, dict[str, Any]]], part: str, one: str, other: str) -> dict[str, Any]:
    ours, groups = _choices([seed[part][one] for seed in by_seed])
    theirs, _ = _choices([seed[part][other] for seed in by_seed])
    mean, interval = difference_interval(ours, theirs, groups)
    return {"difference": mean, "interval": interval}


def _choices(found: Sequence[Measured]) -> tuple[list[float], list[str]]:
    """Right or not, with the task: one task of different seeds has different conversations but hangs together."""
    rows = [(right, task) for seed in found for task, some in seed.right.items() for right in some]
    return [one for one, _ in rows], [task for _, task in rows]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sample_world", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="few tasks, one seed, two epochs: does it run?")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--threads", type=int, help="for torch; its own choice without")
    parser.add_argument("--out", type=Path, help="also write the JSON object here")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    try:
        bench = Bench(quick=arguments.quick, say=_say)
        found = summary([bench.seed(seed) for seed in range(1 if arguments.quick else arguments.seeds)])
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    put_out(found, _lines(found), arguments)
    return 0


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"over {found['seeds']} seeds, against the hidden reward on held-out tasks"
    for name, one in found["objectives"].items():
        gain = one.get("joint_gains")
        beside = f"; joint has {_points(gain)} more" if gain else ""
        yield f"    {name}: {_percent(one)}{beside}"
    yield "credit, Spearman's with the true one"
    for name, one in found["credit"].items():
        whole, within = one["rank_correlation"]["mean"], one["within_trajectories"]["mean"]
        yield f"    {name}: {whole:.2f} over all steps, {within:.2f} within trajectories"
    noise = found["annotators"]
    yield f"{_RANDOM_SHARE:.0%} of the comparisons at random by one annotator"
    for name in ("clean", "without", "equal", "learnt"):
        yield f"    {name}: {_percent(noise[name])}"
    for reference in ("clean", "without"):
        share = noise[f"restored_of_{reference}"]
        said = "nothing was lost" if share is None else f"{share:.0%} restored"
        yield f"    beside {reference}, lost {_points(noise[f'lost_beside_{reference}'])}: {said}"


def _percent(one: dict[str, Any]) -> str:
    low, high = (100 * bound for bound in one["interval"])
    return f"{100 * one['accuracy']:.1f} % [{low:.1f}, {high:.1f}]"


def _points(one: dict[str, Any]) -> str:
    low, high = (100 * bound for bound in one["interval"])
    return f"{100 * one['difference']:+.1f} points [{low:.1f}, {high:.1f}]"


def _say(**event: Any) -> None:
    sys.stderr.write(json.dumps(event) + "\n")


def _quiet(**event: Any) -> None:
    """What a training says of itself; `say` has the summary."""


if __name__ == "__main__":
    sys.exit(main())
