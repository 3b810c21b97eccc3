"""How well rewards tell success from failure, and what picking the best of n would give."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import comb
from typing import Any

import numpy as np

from workers.evaluate.bootstrap import interval, mean_interval, task_count, task_draws
from workers.evaluate.learned_baselines import LinearScores
from workers.evaluate.mistakes import Wrong, worst_records
from workers.evaluate.predictions import ScoredRecord, agent_text_length
from workers.evaluate.ranks import Numbers, auc, ranks
from workers.schema import OutcomeRecord

_MOST = 16  # of the best-of-n curve


def outcome_report(
    scored_records: Sequence[ScoredRecord], linear: LinearScores | None = None
) -> dict[str, Any] | None:
    """{auc, interval, n, successes, within_task, baselines, best_of_n, mistakes}; None without successes and failures.

    linear: one more baseline, where it has all of them. within_task: the AUC of pairs of one task only, which no
    difference between tasks can help. mistakes: failures among the rewards that as many successes would have, and
    successes below them, the farthest first.
    """
    found = [scored for scored in scored_records if isinstance(scored.record, OutcomeRecord)]
    positive = np.array([scored.record.success for scored in found], dtype=bool)
    if not positive.any() or positive.all():
        return None
    tasks = [scored.task for scored in found]
    rewards = np.array([scored.scores[0].raw for scored in found])
    drawn, distinct = task_draws(tasks), task_count(tasks)
    ours = auc(rewards, positive, drawn)
    whole = np.ones((1, len(found)))
    own = float(auc(rewards, positive, whole)[0])
    baselines = {}
    rules = _rules(found)
    by_linear = [(linear or {}).get(scored.record.trajectory.content_hash) for scored in found]
    if None not in by_linear:
        rules["linear"] = np.array([score.raw for score in by_linear if score is not None])
    for name, rule in rules.items():
        theirs, value = auc(rule, positive, drawn), float(auc(rule, positive, whole)[0])
        baselines[name] = {
            "auc": value,
            "difference": own - value,
            "interval": interval(ours - theirs, distinct),
        }
    return {
        "auc": own,
        "interval": interval(ours, distinct),
        "n": len(found),
        "tasks": distinct,
        "successes": int(positive.sum()),
        "within_task": _within(rewards, positive, tasks),
        "baselines": baselines,
        "best_of_n": best_of_n(rewards, positive.astype(float), tasks),
        "mistakes": worst_records(_wrong(found, rewards, float(1 - positive.mean()))),
    }


def _wrong(found: Sequence[ScoredRecord], rewards: Numbers, failed: float) -> Iterator[Wrong]:
    """By how much its place among all rewards, from 0 to 1, is on the wrong side of the share that failed."""
    places = (ranks(rewards) + 0.5) / len(found)
    for scored, place, reward in zip(found, places, rewards, strict=True):
        success = bool(scored.record.success)
        yield float(failed - place if success else place - failed), scored, success, float(reward)


def best_of_n(rewards: Numbers, values: Numbers, tasks: Sequence[str]) -> list[dict[str, float]]:
    """[{n, chosen, random, best, tasks}]: the mean value of the one with the highest reward among n of a task's runs.

    Over all sets of n, so without sampling noise: with runs sorted by reward, run i (from 0) is the best of
    C(i, n - 1) sets of C(N, n) (the estimator of Chen et al. 2021, section 2.1, for a ranking). Over tasks with n runs.
    """
    by_task: dict[str, list[int]] = defaultdict(list)
    for place, task in enumerate(tasks):
        by_task[task].append(place)
    groups = [np.array(places) for places in by_task.values()]
    longest = min(_MOST, max(map(len, groups)))
    curve = []
    for n in range(1, longest + 1):
        there = [places for places in groups if len(places) >= n]
        curve.append(
            {
                "n": n,
                "chosen": float(np.mean([_chosen(rewards[places], values[places], n) for places in there])),
                "random": float(np.mean([values[places].mean() for places in there])),
                "best": float(np.mean([_chosen(values[places], values[places], n) for places in there])),
                "tasks": len(there),
            }
        )
    return curve


def _chosen(rewards: Numbers, values: Numbers, n: int) -> float:
    """Equal rewards share their places: each has the mean of their values."""
    order = np.argsort(rewards, kind="stable")
    _, place = np.unique(rewards, return_inverse=True)
    shared = np.bincount(place, weights=values) / np.bincount(place)
    total = comb(len(rewards), n)
    return float(sum(comb(i, n - 1) / total * shared[place[index]] for i, index in enumerate(order)))


def _within(rewards: Numbers, positive: Any, tasks: Sequence[str]) -> dict[str, Any] | None:
    right: list[float] = []
    names: list[str] = []
    by_task: dict[str, list[int]] = defaultdict(list)
    for place, task in enumerate(tasks):
        by_task[task].append(place)
    for task, places in by_task.items():
        good = [rewards[place] for place in places if positive[place]]
        bad = [rewards[place] for place in places if not positive[place]]
        pairs = [float(g > b) + 0.5 * float(g == b) for g in good for b in bad]
        right += pairs
        names += [task] * len(pairs)
    if not right:
        return None
    mean, found = mean_interval(right, names)
    return {"accuracy": mean, "interval": found, "n": len(right)}


def _rules(found: Sequence[ScoredRecord]) -> dict[str, Numbers]:
    lengths = np.array([agent_text_length(scored.record.trajectory) for scored in found], dtype=float)
    steps = np.array([len(scored.record.trajectory.agent_steps) for scored in found], dtype=float)
    return {"longer": lengths, "shorter": -lengths, "fewer_steps": -steps}
