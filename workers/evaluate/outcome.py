"""How well rewards tell success from failure, and what picking the best of n would give."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.evaluate.bootstrap import interval, mean_interval, task_count, task_draws
from workers.evaluate.learned_baselines import LearnedBaselines
from workers.evaluate.mistakes import Wrong, worst_records
from workers.evaluate.over_optimisation import chosen_value, over_optimisation
from workers.evaluate.predictions import ScoredRecord
from workers.evaluate.ranks import Numbers, auc, ranks
from workers.objectives.length_effect import agent_text_length
from workers.schema import OutcomeRecord

_MOST = 16  # of the best-of-n curve
_MOST_PAIRED, _PAIR_DRAWS = 2_000, 500  # of pairs of a success and a failure


def outcome_report(
    scored_records: Sequence[ScoredRecord], learned: LearnedBaselines | None = None
) -> dict[str, Any] | None:
    """{auc, interval, n, successes, within_task, length_controlled, baselines, best_baseline, best_of_n,
    over_optimisation, mistakes}; None without successes and failures.

    learned: more baselines, each where it has all of them. within_task: the AUC of pairs of one task only, which no
    difference between tasks can help. mistakes: failures among the rewards that as many successes would have, and
    successes below them, the farthest first.
    """
    learned = learned or LearnedBaselines()
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
    for name, rule in _rules(found, learned).items():
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
        "length_controlled": _length_controlled(found, rewards, positive),
        "baselines": baselines,
        "best_baseline": learned.best_of("outcome", baselines),
        "best_of_n": best_of_n(rewards, positive.astype(float), tasks),
        "over_optimisation": over_optimisation(rewards, _gold(found), tasks),
        "mistakes": worst_records(_wrong(found, rewards, float(1 - positive.mean()))),
    }


def _gold(found: Sequence[ScoredRecord]) -> Numbers:
    """The verifier's rewards where it gave all of them, else 1 for success and 0."""
    records = [scored.record for scored in found]
    if all(record.reward is not None for record in records):
        return np.array([record.reward for record in records], dtype=float)
    return np.array([float(record.success) for record in records])


def _wrong(found: Sequence[ScoredRecord], rewards: Numbers, failed: float) -> Iterator[Wrong]:
    """By how much its place among all rewards, from 0 to 1, is on the wrong side of the share that failed."""
    places = (ranks(rewards) + 0.5) / len(found)
    for scored, place, reward in zip(found, places, rewards, strict=True):
        success = bool(scored.record.success)
        yield float(failed - place if success else place - failed), scored, success, float(reward)


def best_of_n(rewards: Numbers, values: Numbers, tasks: Sequence[str]) -> list[dict[str, float]]:
    """[{n, chosen, random, best, tasks}]: the mean value of the one with the highest reward among n of a task's runs.

    Over all sets of n, so without sampling noise (`chosen_value`), and over tasks with n runs.
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
                "chosen": float(
                    np.mean([chosen_value(rewards[places], values[places], n) for places in there])
                ),
                "random": float(np.mean([values[places].mean() for places in there])),
                "best": float(np.mean([chosen_value(values[places], values[places], n) for places in there])),
                "tasks": len(there),
            }
        )
    return curve


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


def outcome_baselines(scored_records: Sequence[ScoredRecord], learned: LearnedBaselines) -> dict[str, float]:
    """By name, the AUC of each baseline; none without successes and failures."""
    found = [scored for scored in scored_records if isinstance(scored.record, OutcomeRecord)]
    positive = np.array([scored.record.success for scored in found], dtype=bool)
    if not positive.any() or positive.all():
        return {}
    whole = np.ones((1, len(found)))
    return {name: float(auc(rule, positive, whole)[0]) for name, rule in _rules(found, learned).items()}


def _rules(found: Sequence[ScoredRecord], learned: LearnedBaselines) -> dict[str, Numbers]:
    lengths = _lengths(found)
    steps = np.array([len(scored.record.trajectory.agent_steps) for scored in found], dtype=float)
    models = learned.scores_of_all("outcome", (scored.record for scored in found))
    return {
        "longer": lengths,
        "shorter": -lengths,
        "fewer_steps": -steps,
        **{
            name: np.array([scores[scored.record.trajectory.content_hash].raw for scored in found])
            for name, scores in models.items()
        },
    }


def _lengths(found: Sequence[ScoredRecord]) -> Numbers:
    return np.array([agent_text_length(scored.record.trajectory) for scored in found], dtype=float)


def _length_controlled(
    found: Sequence[ScoredRecord], rewards: Numbers, positive: NDArray[np.bool_]
) -> dict[str, Any] | None:
    """{auc, interval, longer, shorter}: the mean of the AUC over pairs of a success and a failure of which the success
    has the longer agent text (`longer`) and over those of which it has the shorter one. A reward by length alone gets
    one half. None without both kinds of pairs. Of many trajectories, _MOST_PAIRED of either outcome are looked at."""
    good, bad = (_some(np.flatnonzero(chosen)) for chosen in (positive, ~positive))
    lengths, tasks = _lengths(found), [scored.task for scored in found]
    margins = rewards[good][:, None] - rewards[bad]
    right = (margins > 0) + 0.5 * (margins == 0)
    sign = np.sign(lengths[good][:, None] - lengths[bad])
    sides = [(sign == way).astype(float) for way in (1, -1)]
    if not all(side.any() for side in sides):
        return None

    def by_side(weights: Numbers) -> Numbers:
        """[2, draws]"""

        def total(values: Numbers) -> Numbers:
            summed: Numbers = ((weights[:, good] @ values) * weights[:, bad]).sum(1)
            return summed

        with np.errstate(invalid="ignore", divide="ignore"):
            return np.stack([total(right * side) / total(side) for side in sides])

    longer, shorter = by_side(np.ones((1, len(found))))[:, 0].tolist()
    drawn = by_side(task_draws(tasks, draws=_PAIR_DRAWS)).mean(0)
    return {
        "auc": (longer + shorter) / 2,
        "interval": interval(drawn, task_count(tasks)),
        "longer": longer,
        "shorter": shorter,
    }


def _some(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most _MOST_PAIRED of them, from all over."""
    if len(places) <= _MOST_PAIRED:
        return places
    return places[np.arange(_MOST_PAIRED) * len(places) // _MOST_PAIRED]
