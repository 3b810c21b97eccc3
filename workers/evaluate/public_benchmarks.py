"""Published benchmarks of reward models: their files as they come, and their own measures.

To add one: a reader (file -> `Case`s), a measure (rewards by case -> a report), and a line in BENCHMARKS.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from workers.errors import InvalidRecord, RewardError
from workers.evaluate.bootstrap import mean_interval, statistic_interval
from workers.evaluate.first_errors import best_threshold, first_below, process_bench_f1, step_scores
from workers.evaluate.predictions import ScoredRecord, score_records
from workers.models import LocalScorer
from workers.schema import OutcomeRecord, Part, Step, StepLabelRecord, Task, Trajectory
from workers.schema.records import Source

Rewards = Sequence[float]


@dataclass(frozen=True, slots=True)
class Case:
    """One row of a benchmark. answers: its trajectories. known: what the row says of them. subset: its part."""

    id: str
    answers: tuple[Trajectory, ...]
    subset: str
    known: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Benchmark:
    read: Callable[[Sequence[dict[str, Any]]], list[Case]]
    measure: Callable[[Sequence[Case], Sequence[Rewards]], dict[str, Any]]


def evaluate_published(model: LocalScorer, name: str, path: Path) -> dict[str, Any]:
    """{benchmark, n, score, ...} of a benchmark's file. Raises RewardError for a file that is not one."""
    if name == "processbench":
        return {"benchmark": name} | _process_bench(model, rows_of(path))
    benchmark = BENCHMARKS[name]
    cases = _read(benchmark, name, path)
    records = [OutcomeRecord(trajectory=answer, success=True) for case in cases for answer in case.answers]
    rewards = iter([scored.scores[0].raw for scored in score_records(model, records)])
    found = [[next(rewards) for _ in case.answers] for case in cases]
    return {"benchmark": name, "n": len(cases)} | benchmark.measure(cases, found)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """A JSON array, JSON lines, or Parquet where pyarrow is installed."""
    if path.suffix == ".parquet":
        try:
            import pyarrow.parquet as parquet
        except ImportError:
            raise RewardError(
                "reading Parquet needs pyarrow: pip install pyarrow, or save the file as JSON lines."
            ) from None
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
        return rows
    text = path.read_text(encoding="utf-8")
    try:
        found = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
    except ValueError as error:
        raise InvalidRecord(f"{path.name} is neither a JSON array nor JSON lines: {error}.") from None
    if not found:
        raise InvalidRecord(f"{path.name} has no rows.")
    return list(found)


def _read(benchmark: Benchmark, name: str, path: Path) -> list[Case]:
    try:
        return benchmark.read(rows_of(path))
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise InvalidRecord(
            f"{path.name} is not what {name} publishes: {type(error).__name__} {error}; take the file as it comes."
        ) from error


def conversation(prompt: str, answer: str, task: str) -> Trajectory:
    return Trajectory(steps=(_text_step("user", prompt), _text_step("agent", answer)), task=Task(id=task))


def _text_step(source: Source, text: str) -> Step:
    return Step(source=source, message=(Part(text=text),))


# LLMBar (arXiv 2310.07641): {input, output_1, output_2, label: 1 or 2}


def _llmbar(rows: Sequence[dict[str, Any]]) -> list[Case]:
    cases = []
    for place, row in enumerate(rows):
        task = f"llmbar-{place}"
        answers = tuple(conversation(row["input"], row[f"output_{side}"], task) for side in (1, 2))
        cases.append(Case(task, answers, "llmbar", {"right": {1: 0, 2: 1}[int(row["label"])]}))
    return cases


def _pairwise(cases: Sequence[Case], rewards: Sequence[Rewards]) -> dict[str, Any]:
    """Accuracy; equal rewards are half right."""
    right = [
        _half(reward[case.known["right"]] - reward[1 - case.known["right"]])
        for case, reward in zip(cases, rewards, strict=True)
    ]
    return _accuracies(cases, right)


# JudgeBench (arXiv 2410.12784): {pair_id, source, question, response_A, response_B, label: "A>B" or "B>A"}


def _judge_bench(rows: Sequence[dict[str, Any]]) -> list[Case]:
    cases = []
    for row in rows:
        task = str(row["pair_id"])
        answers = tuple(conversation(row["question"], row[f"response_{side}"], task) for side in "AB")
        subset = "mmlu-pro" if row["source"].startswith("mmlu-pro") else row["source"].split("-")[0]
        cases.append(Case(task, answers, subset, {"label": {"A>B": "A>B", "B>A": "B>A"}[row["label"]]}))
    return cases


def _judge_bench_measure(cases: Sequence[Case], rewards: Sequence[Rewards]) -> dict[str, Any]:
    """A reward does not depend on the order, so both orders give the same decision."""
    decisions = ["A>B" if a > b else "B>A" if b > a else "A=B" for a, b in rewards]
    right = two_order_right(
        [case.known["label"] for case in cases], decisions, [turned(decision) for decision in decisions]
    )
    return _accuracies(cases, [float(is_right) for is_right in right])


def turned(decision: str | None) -> str | None:
    return {"A>B": "B>A", "B>A": "A>B"}.get(decision or "", decision)


def two_order_right(
    labels: Sequence[str], first: Sequence[str | None], second: Sequence[str | None]
) -> list[bool]:
    """JudgeBench, section 4.1: right where, of the decisions in both orders, more are the label than its opposite.

    second: decisions on the pair turned round, as they were said. None: there was none.
    """
    out = []
    for label, verdict, swapped in zip(labels, first, second, strict=True):
        both = (verdict, turned(swapped))
        out.append(sum(each == label for each in both) > sum(each == turned(label) for each in both))
    return out


# RM-Bench (arXiv 2410.16184): {id, prompt, chosen: [3 styles], rejected: [3 styles], domain}


def _rm_bench(rows: Sequence[dict[str, Any]]) -> list[Case]:
    cases = []
    for row in rows:
        task = str(row["id"])
        if len(row["chosen"]) != len(row["rejected"]):
            raise ValueError(
                f"row {task} has {len(row['chosen'])} chosen and {len(row['rejected'])} rejected answers"
            )
        answers = tuple(
            conversation(row["prompt"], answer, task) for answer in [*row["chosen"], *row["rejected"]]
        )
        domain = str(row.get("domain", "all"))
        subset = next(
            (name for name in ("chat", "math", "code", "safety") if domain.startswith(name)), domain
        )
        cases.append(Case(task, answers, subset))
    return cases


def _rm_bench_measure(cases: Sequence[Case], rewards: Sequence[Rewards]) -> dict[str, Any]:
    by_domain: dict[str, list[Rewards]] = defaultdict(list)
    for case, reward in zip(cases, rewards, strict=True):
        by_domain[case.subset].append(reward)
    domains = {name: style_matrix(found) for name, found in by_domain.items()}
    means = {
        name: float(np.mean([domain[name] for domain in domains.values()]))
        for name in ("hard", "normal", "easy", "average")
    }

    def whole(places: Any) -> float:
        chosen: dict[str, list[Rewards]] = defaultdict(list)
        for place in places:
            chosen[cases[place].subset].append(rewards[place])
        return float(np.mean([style_matrix(found)["average"] for found in chosen.values()]))

    interval = statistic_interval(whole, [case.id for case in cases], draws=300)
    return {"score": means["average"], "interval": interval, **means, "subsets": domains}


def style_matrix(rewards: Sequence[Rewards]) -> dict[str, Any]:
    """{matrix, hard, normal, easy, average}: rows are the styles of the chosen answer, columns of the rejected one.

    Hard: plainer answers against fancier ones (above the diagonal); normal: the same style; easy: below it. RM-Bench,
    section 3.4; average: the mean of the three. A tie is wrong.
    """
    scores = np.asarray(rewards, dtype=float)
    styles = scores.shape[1] // 2
    matrix = (scores[:, :styles, None] > scores[:, None, styles:]).mean(0)
    above, below = np.triu_indices(styles, 1), np.tril_indices(styles, -1)
    found = {
        "hard": float(matrix[above].mean()),
        "normal": float(np.diag(matrix).mean()),
        "easy": float(matrix[below].mean()),
    }
    return {"matrix": matrix.tolist(), **found, "average": float(np.mean(list(found.values())))}


# RewardBench 2 (arXiv 2506.01937): {id, prompt, chosen: [..], rejected: [..], subset, num_correct}


def _reward_bench_2(rows: Sequence[dict[str, Any]]) -> list[Case]:
    cases = []
    for row in rows:
        task = str(row["id"])
        answers = tuple(
            conversation(row["prompt"], answer, task) for answer in [*row["chosen"], *row["rejected"]]
        )
        cases.append(Case(task, answers, str(row["subset"]), {"correct": len(row["chosen"])}))
    return cases


def _reward_bench_2_measure(cases: Sequence[Case], rewards: Sequence[Rewards]) -> dict[str, Any]:
    """The mean of the subsets' scores: of `Ties` its own, of others the share of prompts whose right answer is best."""
    by_subset: dict[str, list[int]] = defaultdict(list)
    for place, case in enumerate(cases):
        by_subset[case.subset].append(place)

    def score(name: str, places: Sequence[int]) -> float | None:
        if name.lower() == "ties":
            return ties_score(
                [(cases[place].id, cases[place].known["correct"], rewards[place]) for place in places]
            )
        return float(
            np.mean([best_of_all(rewards[place], cases[place].known["correct"]) for place in places])
        )

    subsets = {name: {"score": score(name, places), "n": len(places)} for name, places in by_subset.items()}

    def whole(places: Any) -> float | None:
        drawn: dict[str, list[int]] = defaultdict(list)
        for place in places:
            drawn[cases[place].subset].append(place)
        found = [score(name, some) for name, some in drawn.items()]
        known = [accuracy for accuracy in found if accuracy is not None]
        return float(np.mean(known)) if known else None

    known = [subset["score"] for subset in subsets.values() if subset["score"] is not None]
    interval = statistic_interval(whole, [case.id.split(":")[-1] for case in cases], draws=300)
    return {"score": float(np.mean(known)) if known else None, "interval": interval, "subsets": subsets}


def best_of_all(rewards: Rewards, correct: int = 1) -> float:
    """1 where a right answer (the first `correct` ones) has the highest reward, shared by how many have it."""
    highest = max(rewards)
    best = [place for place, reward in enumerate(rewards) if reward == highest]
    return sum(place < correct for place in best) / len(best)


def ties_score(rows: Sequence[tuple[str, int, Rewards]]) -> float | None:
    """RewardBench 2, appendix on ties. rows: (id, how many of the first answers are right, rewards).

    Ids are `ref:N` (one right answer) and `tied:N` (several). 0.3 of each kind's accuracy (all right ones above all
    wrong ones), 0.2 of how often the gap to the wrong ones is wider than the spread of the right ones, 0.2 of the same
    with the narrower gap of the two kinds, and 0.01 of a smooth version of that. None without both kinds.
    """
    kinds: dict[str, dict[str, tuple[float, float]]] = {"ref": {}, "tied": {}}
    for name, correct, rewards in rows:
        kind, _, prompt = name.partition(":")
        right, wrong = rewards[:correct], rewards[correct:]
        kinds["ref" if kind == "ref" else "tied"][prompt] = (max(right) - min(right), min(right) - max(wrong))
    ref, tied = kinds["ref"], kinds["tied"]
    both = sorted(set(ref) & set(tied))
    if not both:
        return None
    spread = np.array([tied[trajectory][0] for trajectory in both])
    gap = np.array([tied[trajectory][1] for trajectory in both])
    narrower = np.minimum(gap, [ref[trajectory][1] for trajectory in both])
    with np.errstate(divide="ignore", invalid="ignore"):
        smooth = np.nan_to_num(np.tanh(narrower / spread - 1), nan=0.0)
    return float(
        0.3 * np.mean([gap_ > 0 for _, gap_ in tied.values()])
        + 0.3 * np.mean([gap_ > 0 for _, gap_ in ref.values()])
        + 0.2 * np.mean(gap > spread)
        + 0.2 * np.mean(narrower > spread)
        + 0.01 * np.mean(smooth)
    )


# RewardMATH (arXiv 2410.01729): {problem_id, problem, eval_solution: [..], solution_type: chosen or rejected, subject}


def _reward_math(rows: Sequence[dict[str, Any]]) -> list[Case]:
    """A row is an answer; those of a problem make a case, the right one first."""
    by_problem: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_problem[str(row["problem_id"])].append(row)
    cases = []
    for problem, found in by_problem.items():
        kinds = [{"chosen": 0, "rejected": 1}[row["solution_type"]] for row in found]
        if kinds.count(0) != 1 or len(kinds) < 2:
            raise ValueError(
                f"problem {problem} has {kinds.count(0)} chosen answers and {kinds.count(1)} rejected ones"
            )
        ordered = [row for _, row in sorted(zip(kinds, found, strict=True), key=lambda pair: pair[0])]
        answers = tuple(
            conversation(row["problem"], "\n".join(row["eval_solution"]), problem) for row in ordered
        )
        cases.append(Case(problem, answers, str(ordered[0].get("subject", "all"))))
    return cases


def _reward_math_measure(cases: Sequence[Case], rewards: Sequence[Rewards]) -> dict[str, Any]:
    """One right answer against many wrong ones."""
    places = [first_rank(reward) for reward in rewards]
    return _accuracies(cases, [float(place == 1) for place in places]) | {
        "mean_reciprocal_rank": float(np.mean([1 / place for place in places]))
    }


def first_rank(rewards: Rewards) -> int:
    """The place of the first answer among all, from 1; RewardMATH, section 3.3. Equal rewards come before it, and where
    one of two is NaN, so does the other."""
    return 1 + sum(not other < rewards[0] for other in rewards[1:])


# ProcessBench (arXiv 2412.06559): {id, problem, steps: [..], label: the first wrong step, -1 for none}


def process_bench_records(rows: Sequence[dict[str, Any]]) -> list[StepLabelRecord]:
    """Also of BIG-Bench-Mistake-like rows: every step is an agent step."""
    records = []
    for row in rows:
        task = Task(id=str(row["id"]), metadata={"subset": str(row["id"]).rsplit("-", 1)[0]})
        steps = (_text_step("user", row["problem"]), *(_text_step("agent", step) for step in row["steps"]))
        first = None if row["label"] == -1 else int(row["label"])
        trajectory = Trajectory(steps=steps, task=task)
        records.append(
            StepLabelRecord(
                trajectory=trajectory,
                has_first_error=True,
                first_error=first,
                annotator="processbench",
                origin="imported",
            )
        )
    return records


def _process_bench(model: LocalScorer, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The threshold is fitted on every fifth row, which is not measured on; the benchmark leaves it to the makers."""
    try:
        records = process_bench_records(rows)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidRecord(f"not what processbench publishes: {type(error).__name__} {error}.") from error
    scored_records = score_records(model, records)
    fitted, measured = (
        scored_records[::5],
        [scored for place, scored in enumerate(scored_records) if place % 5],
    )
    threshold = best_threshold(fitted)
    by_subset: dict[str, list[ScoredRecord]] = defaultdict(list)
    for scored in measured:
        by_subset[scored.record.trajectory.task.metadata["subset"]].append(scored)
    subsets = {name: _first_errors(some, threshold) for name, some in by_subset.items()}
    known = [subset["f1"] for subset in subsets.values() if subset["f1"] is not None]
    return {
        "n": len(measured),
        "score": float(np.mean(known)) if known else None,
        "threshold": threshold,
        "subsets": subsets,
    }


def _first_errors(some: Sequence[ScoredRecord], threshold: float) -> dict[str, Any]:
    found = [
        (scored.record.first_error, first_below(step_scores(scored.scores[0]), threshold)) for scored in some
    ]
    return {
        "f1": process_bench_f1(found),
        "interval": statistic_interval(
            lambda places: process_bench_f1([found[place] for place in places]),
            [scored.task for scored in some],
            draws=300,
        ),
        "n": len(found),
    }


BENCHMARKS: dict[str, Benchmark] = {
    "llmbar": Benchmark(_llmbar, _pairwise),
    "judgebench": Benchmark(_judge_bench, _judge_bench_measure),
    "rm-bench": Benchmark(_rm_bench, _rm_bench_measure),
    "rewardbench2": Benchmark(_reward_bench_2, _reward_bench_2_measure),
    "rewardmath": Benchmark(_reward_math, _reward_math_measure),
}


def _accuracies(cases: Sequence[Case], right: Sequence[float]) -> dict[str, Any]:
    by_subset: dict[str, list[float]] = defaultdict(list)
    for case, is_right in zip(cases, right, strict=True):
        by_subset[case.subset].append(is_right)
    accuracy, interval = mean_interval(right, [case.id for case in cases])
    subsets = {name: {"score": float(np.mean(some)), "n": len(some)} for name, some in by_subset.items()}
    return {"score": accuracy, "interval": interval, "subsets": subsets}


def _half(margin: float) -> float:
    return 1.0 if margin > 0 else 0.0 if margin < 0 else 0.5
