"""What `benchmarks.sample_world` found, over its seeds: means and intervals, and how they are printed."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.sample_annotators import ADVERSARY, RANDOM_SHARE
from workers.evaluate.bootstrap import difference_interval, mean_interval


@dataclass(frozen=True)
class Measured:
    """On held-out tasks. accuracy: right choices, by task. credit: by trajectory, Spearman's with the true one."""

    right: dict[str, list[float]]
    pooled: float | None
    within: float | None

    @property
    def accuracy(self) -> float:
        return statistics.mean(right for some in self.right.values() for right in some)


def together(trainings: Sequence[Measured]) -> Measured:
    """Of several trainings on the same records: all their choices, and the credit of the first."""
    right = {
        task: [value for training in trainings for value in training.right[task]]
        for task in trainings[0].right
    }
    return replace(trainings[0], right=right)


def summary(by_seed: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Means over the seeds, with intervals over seeds and tasks; of the parts that were measured."""
    summaries = {
        "objectives": _objective_summary,
        "credit": _credit_summary,
        "annotators": _annotator_summary,
        "adversary": _adversary_summary,
    }
    return {"seeds": len(by_seed)} | {part: summaries[part](by_seed) for part in by_seed[0]}


def _objective_summary(by_seed: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    names = by_seed[0]["objectives"]
    return {
        name: _accuracy(by_seed, "objectives", name)
        | (
            {}
            if name == "joint" or "joint" not in names
            else {"joint_gains": _gain(by_seed, "objectives", "joint", name)}
        )
        for name in names
    }


def _credit_summary(by_seed: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    return {
        name: {
            "rank_correlation": _spread([seed_result["credit"][name].pooled for seed_result in by_seed]),
            "within_trajectories": _spread([seed_result["credit"][name].within for seed_result in by_seed]),
        }
        for name in by_seed[0]["credit"]
    }


def _annotator_summary(by_seed: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    noise: dict[str, Any] = {
        name: _accuracy(by_seed, "annotators", name) for name in by_seed[0]["annotators"]
    }
    back = _gain(by_seed, "annotators", "learnt", "equal")
    for reference in ("clean", "without"):
        lost = _gain(by_seed, "annotators", reference, "equal")
        share = back["difference"] / lost["difference"] if lost["difference"] > 0 else None
        noise[f"lost_compared_with_{reference}"] = lost
        noise[f"restored_of_{reference}"] = share
    return noise | {"learnt_gains": back}


def _adversary_summary(by_seed: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """The reliability that each annotator is taken to have, of the adversary and of the honest ones, by seed."""
    honest = [
        [q for name, q in seed_result["adversary"].items() if name != ADVERSARY] for seed_result in by_seed
    ]
    return {
        "adversary": [seed_result["adversary"][ADVERSARY] for seed_result in by_seed],
        "honest_mean": statistics.mean(q for values in honest for q in values),
        "honest_least": [min(values) for values in honest],
    }


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


def summary_lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"over {found['seeds']} seeds, against the hidden reward on held-out tasks"
    for name, one in found.get("objectives", {}).items():
        gain = one.get("joint_gains")
        advantage = f"; joint has {_points(gain)} more" if gain else ""
        yield f"    {name}: {_percent(one)}{advantage}"
    if "credit" in found:
        yield "credit, Spearman's with the true one"
    for name, one in found.get("credit", {}).items():
        whole, within = one["rank_correlation"]["mean"], one["within_trajectories"]["mean"]
        yield f"    {name}: {whole:.2f} over all steps, {within:.2f} within trajectories"
    if "annotators" in found:
        yield from _annotator_lines(found["annotators"])
    if "adversary" in found:
        learnt = found["adversary"]
        yield f"reliability learnt of an adversary: {', '.join(f'{q:.2f}' for q in learnt['adversary'])}; of honest "
        yield f"    annotators {learnt['honest_mean']:.2f}, {min(learnt['honest_least']):.2f} at least"


def _annotator_lines(noise: dict[str, Any]) -> Iterator[str]:
    yield f"{RANDOM_SHARE:.0%} of the comparisons at random by one annotator"
    for name in ("clean", "without", "equal", "learnt"):
        yield f"    {name}: {_percent(noise[name])}"
    for reference in ("clean", "without"):
        share = noise[f"restored_of_{reference}"]
        said = "nothing was lost" if share is None else f"{share:.0%} restored"
        yield f"    compared with {reference}, lost {_points(noise[f'lost_compared_with_{reference}'])}: {said}"


def _percent(one: dict[str, Any]) -> str:
    low, high = (100 * bound for bound in one["interval"])
    return f"{100 * one['accuracy']:.1f} % [{low:.1f}, {high:.1f}]"


def _points(one: dict[str, Any]) -> str:
    low, high = (100 * bound for bound in one["interval"])
    return f"{100 * one['difference']:+.1f} points [{low:.1f}, {high:.1f}]"
