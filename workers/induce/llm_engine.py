"""An induction by a language model (AutoLibra, https://arxiv.org/abs/2505.02820, sections 3.1 to 3.3).

Comments are grounded one by one, metrics proposed from all points, trajectories judged by them, and points matched to
the verdicts, each by a separate prompt (`workers/prompts`, workers.induce.llm_questions). Metrics are proposed in
several numbers from part of the tasks; the number is the one that does best on a second part, and the third measures
how good they are. Answers are cached, so that only what failed is asked again the next time.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workers.errors import RewardError
from workers.induce.clusters import EXAMPLES, typical_texts
from workers.induce.induction_files import (
    Aspect,
    Comment,
    Trait,
    aspect_to_json,
    read_groups,
    read_previous,
    write_lines,
)
from workers.induce.induction_warnings import warn_one_sided
from workers.induce.llm_prompts import NamedMetric, RenderedTrajectory, render_trajectory
from workers.induce.llm_questions import InductionQuestions, batched, sample_trajectories
from workers.induce.metric_classifier import metric_worth
from workers.induce.metric_report import (
    MetaMetrics,
    match_previous_metrics,
    require_enough,
    resolve_groups,
)
from workers.induce.metric_selection import (
    FOLDS,
    HELD_OUT_FOLDS,
    MAX_ROUNDS,
    MIN_COVERAGE_GAIN,
    assign_folds,
)
from workers.induce.step_features import Encode, FloatArray
from workers.json_files import write_json
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient
from workers.schema import read_trajectories

ENGINE = "llm"
METRIC_COUNTS = (2, 4, 6, 9, 13)  # of metrics that are tried
FURTHER_COUNT = 3  # metrics that are asked for at most in each further round
MAX_TRIED_TRAJECTORIES = 40  # trajectories that a number of metrics is tried on
_PREVIOUS_SIMILARITY = 0.6  # cosine of examples from which a metric is one of the previous induction


def induce_with_llm(
    folder: Path, server: LLMServer, comments: Sequence[Comment], encode: Encode, *, seed: int
) -> dict[str, Any]:
    """As `workers.induce.pipeline.induce`. The server's key is in OPENAI_API_KEY. Raises RewardError."""
    questions = InductionQuestions(LLMClient(server, AnswersFile(folder / "answers.jsonl")), seed)
    comments_on: dict[str, list[Comment]] = defaultdict(list)
    for comment in comments:
        comments_on[comment.trajectory].append(comment)
    trajectories = {
        str(trajectory.id): render_trajectory(trajectory, comments_on[str(trajectory.id)])
        for trajectory in read_trajectories(folder / "trajectories.jsonl.zst")
    }
    aspects = questions.ground(comments, trajectories)
    require_enough(aspects, len(comments))
    groups = read_groups(folder)
    held_out: dict[str, Any] = {}
    if groups is None:
        metrics, held_out = _select_metrics(questions, aspects, trajectories)
        questions.place(aspects, metrics)
    else:
        active = [group for group in groups if group.stands]
        known = resolve_groups(aspects, [group.points for group in active])
        metrics = [
            NamedMetric(group.name, group.definition, rows.tolist())
            for group, rows in zip(active, known, strict=True)
        ]
        rejected = {key for group in groups if not group.stands for key in group.points}
        left = [
            row for row, aspect in enumerate(aspects) if (aspect.comment, aspect.feedback) not in rejected
        ]
        questions.place(aspects, metrics, left)
    questions.forget_failed_trajectories()  # of the metrics that were only tried
    traits = questions.judge(list(trajectories.values()), metrics)
    meta, covered = questions.match_to_verdicts(range(len(aspects)), aspects, traits)
    count = _judge_others(folder, questions, metrics, traits)
    vectors = encode([aspect.feedback for aspect in aspects])
    lines, examples = _aspects(aspects, metrics, covered, vectors)
    write_lines(folder / "aspects.jsonl", lines)
    result = {
        "engine": ENGINE,
        "model": server.name,
        "comments": len(comments),
        "points": len(aspects),
        "aspects": len(aspects),
        "trajectories": len({aspect.trajectory for aspect in aspects}),
        "judged": count,
        "metrics": _metrics(folder, aspects, metrics, examples, vectors, encode),
        **meta.shares,
        **held_out,
        "warnings": warn_one_sided(aspects),
        "left_out": questions.left_out,
        "failed": questions.failed,
        "usage": asdict(questions.model.usage),
        "prompts": sorted(questions.model.asked),
    }
    write_json(folder / "result.json", result)
    return result


def _select_metrics(
    questions: InductionQuestions, aspects: Sequence[Aspect], trajectories: Mapping[str, RenderedTrajectory]
) -> tuple[list[NamedMetric], dict[str, Any]]:
    """Metrics proposed from part of the tasks, as many as do best on a second part; how they do on the third."""
    names = [aspect.trajectory for aspect in aspects]
    tasks = [trajectories[name].task for name in names]
    held_out = assign_folds(tasks, names, HELD_OUT_FOLDS, questions.seed)
    rest = [row for row in range(len(aspects)) if held_out[row] != 0]
    folds = assign_folds(
        [tasks[row] for row in rest], [names[row] for row in rest], FOLDS, questions.seed + 1
    )
    train = [row for row, fold in zip(rest, folds, strict=True) if fold != 0]
    tried_on = [row for row, fold in zip(rest, folds, strict=True) if fold == 0]
    test = [row for row in range(len(aspects)) if held_out[row] == 0]
    if not train or not tried_on or not test:
        raise RewardError(
            "The comments are about too few tasks for some to be held out. Collect more comments."
        )
    tried_on = sample_trajectories(tried_on, aspects, MAX_TRIED_TRAJECTORIES, questions.seed)
    metric_test = _MetricTest(questions, aspects, trajectories)
    curve: list[dict[str, Any]] = []

    def attempt(metrics: list[NamedMetric], sides: list[int]) -> dict[str, Any]:
        meta = metric_test.measure(tried_on, metrics)
        coverage = meta.coverage or 0.0
        redundancy = 1.0 if meta.redundancy is None else meta.redundancy
        curve.append(
            {
                "sides": sides,
                "metrics": len(metrics),
                "coverage": coverage,
                "redundancy": redundancy,
                "worth": metric_worth(coverage, redundancy),
            }
        )
        return curve[-1]

    best: list[NamedMetric] = []
    figures: dict[str, Any] = {}
    for number in METRIC_COUNTS:
        if number > max(len(train) // 2, 2):
            break
        metrics = questions.propose(aspects, train, number, [])
        tried = attempt(metrics, [number])
        if not best or tried["worth"] > figures["worth"]:
            best, figures = metrics, tried
    while len(figures["sides"]) < MAX_ROUNDS:
        placed = {row for metric in best for row in metric.rows}
        left = [row for row in train if row not in placed]
        if len(left) < 2:
            break
        further = [*best, *questions.propose(aspects, left, FURTHER_COUNT, best)]
        tried = attempt(further, [*figures["sides"], FURTHER_COUNT])
        if tried["coverage"] < figures["coverage"] + MIN_COVERAGE_GAIN or tried["worth"] < figures["worth"]:
            break
        best, figures = further, tried
    single = questions.propose(aspects, train, 1, [])
    return best, {
        "held_out": metric_test.report(test, best),
        "baselines": {"one metric": metric_test.report(test, single)},
        "curve": curve,
    }


@dataclass(frozen=True, slots=True)
class _MetricTest:
    """Metrics are tried on some of the aspects and their trajectories."""

    questions: InductionQuestions
    aspects: Sequence[Aspect]
    trajectories: Mapping[str, RenderedTrajectory]

    def measure(self, rows: Sequence[int], metrics: Sequence[NamedMetric]) -> MetaMetrics:
        names = sorted({self.aspects[row].trajectory for row in rows})
        traits = self.questions.judge([self.trajectories[name] for name in names], metrics)
        return self.questions.match_to_verdicts(rows, self.aspects, traits)[0]

    def report(self, rows: Sequence[int], metrics: Sequence[NamedMetric]) -> dict[str, Any]:
        meta = self.measure(rows, metrics)
        return {
            "metrics": len(metrics),
            **meta.shares,
            "n": meta.aspects,
            "traits": meta.traits,
            "trajectories": len({self.aspects[row].trajectory for row in rows}),
        }


def _judge_others(
    folder: Path,
    questions: InductionQuestions,
    metrics: Sequence[NamedMetric],
    traits: Mapping[str, Sequence[Trait]],
) -> int:
    """Write all traits, those given and those of the other trajectories. The number of trajectories they are of."""
    count = 0

    def lines() -> Iterator[dict[str, Any]]:
        nonlocal count
        path = folder / "others.jsonl.zst"
        others = (
            (render_trajectory(trajectory) for trajectory in read_trajectories(path))
            if path.is_file()
            else iter(())
        )
        groups = [traits, *(questions.judge(part, metrics) for part in batched(others, 100))]
        for group in groups:
            for name in sorted(group):
                count += 1
                for number, trait in enumerate(group[name]):
                    yield {
                        "trajectory": name,
                        "metric": number,
                        "sign": trait.sign,
                        "value": float(trait.sign),
                        "step": trait.step,
                        "because": None,
                        "reason": trait.reason,
                    }

    write_lines(folder / "traits.jsonl", lines())
    return count


def _aspects(
    aspects: Sequence[Aspect], metrics: Sequence[NamedMetric], covered: Collection[int], vectors: FloatArray
) -> tuple[list[dict[str, Any]], list[list[tuple[list[int], int]]]]:
    """The lines, and of each metric the rows of its examples on each side, with its sign."""
    metric_of = {row: number for number, metric in enumerate(metrics) for row in metric.rows}
    examples: list[list[tuple[list[int], int]]] = []
    rank: dict[int, int] = {}
    for metric in metrics:
        sides = []
        for sign in (1, -1):
            rows = [row for row in metric.rows if aspects[row].sign == sign]
            chosen = (
                typical_texts([aspects[row].feedback for row in rows], vectors[rows], EXAMPLES)
                if rows
                else []
            )
            sides.append(([rows[place] for place in chosen], sign))
            rank |= {rows[place]: number for number, place in enumerate(chosen)}
        examples.append(sides)
    flat = vectors - vectors.mean(axis=0)
    at = flat @ np.linalg.svd(flat, full_matrices=False)[2][:2].T
    lines = [
        {
            **aspect_to_json(row, aspect),
            "metric": metric_of.get(row),
            "covered": row in covered,
            "example": rank.get(row),
            "at": [round(float(coordinate), 4) for coordinate in at[row]],
        }
        for row, aspect in enumerate(aspects)
    ]
    return lines, examples


def _metrics(
    folder: Path,
    aspects: Sequence[Aspect],
    metrics: Sequence[NamedMetric],
    examples: Sequence[Sequence[tuple[list[int], int]]],
    vectors: FloatArray,
    encode: Encode,
) -> list[dict[str, Any]]:
    example_vectors = [[(vectors[rows], sign) for rows, sign in sides] for sides in examples]
    before = match_previous_metrics(example_vectors, read_previous(folder), encode, _PREVIOUS_SIMILARITY)
    return [
        {
            "name": metric.name,
            "definition": metric.definition,
            "good": [aspects[row].feedback for row in sides[0][0]],
            "bad": [aspects[row].feedback for row in sides[1][0]],
            "aspects": metric.rows,
            "praised": sum(aspects[row].sign > 0 for row in metric.rows),
            "blamed": sum(aspects[row].sign < 0 for row in metric.rows),
            "before": known,
        }
        for metric, sides, known in zip(metrics, examples, before, strict=True)
    ]
