"""An induction by a language model (AutoLibra, https://arxiv.org/abs/2505.02820, sections 3.1 to 3.3).

Comments are grounded one by one, metrics proposed from all points, trajectories judged by them, and points matched to
what was found, each by a prompt of its own (`workers/prompts`, workers.induce.questions). Metrics are proposed in
several numbers from part of the tasks; the number is the one that does best on a second part, and the third tells how
good they are. What was answered is kept, so that only what failed is asked again the next time.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from workers.errors import RewardError
from workers.induce.choice import FOLDS, LEAST_RISE, MOST_ROUNDS, folds_by_task, worth
from workers.induce.clusters import EXAMPLES, typical
from workers.induce.directory import line_of, read_groups, read_previous, write_lines
from workers.induce.embedding import Embedder, Vectors
from workers.induce.evidence import Comment
from workers.induce.meta import Aspect, Meta, Trait
from workers.induce.questions import Named, Questions, Run, parts_of, run_of
from workers.induce.requirements import HELD_OUT, kept_of, known_of, one_sided, require_enough
from workers.json_files import write_json
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient
from workers.schema import read_trajectories

ENGINE = "llm"
NUMBERS = (2, 4, 6, 9, 13)  # of metrics that are tried
MORE = 3  # metrics that are asked for at most in each further round
MOST_TRIED = 40  # trajectories that a number of metrics is tried on
_ALIKE = 0.6  # cosine from which a metric's examples are those of one before


def induce_by_asking(
    folder: Path, server: LLMServer, comments: Sequence[Comment], encode: Embedder, *, seed: int
) -> dict[str, Any]:
    """As `workers.induce.run.induce`. OPENAI_API_KEY of the environment is the server's key. Raises RewardError."""
    questions = Questions(LLMClient(server, AnswersFile(folder / "answers.jsonl")), seed)
    closely: dict[str, set[int]] = {}
    for comment in comments:
        if comment.steps:
            closely.setdefault(comment.trajectory, set()).update(
                range(comment.steps[0], comment.steps[1] + 1)
            )
    runs = {
        str(one.id): run_of(one, closely.get(str(one.id), ()))
        for one in read_trajectories(folder / "trajectories.jsonl.zst")
    }
    aspects = questions.ground(comments, runs)
    require_enough(aspects, len(comments))
    groups = read_groups(folder)
    told: dict[str, Any] = {}
    if groups is None:
        metrics, told = _choose(questions, aspects, runs)
        questions.place(aspects, metrics)
    else:
        there = [group for group in groups if group.stands]
        known = known_of(aspects, [group.points for group in there])
        metrics = [
            Named(one.name, one.definition, rows.tolist()) for one, rows in zip(there, known, strict=True)
        ]
        aside = {key for group in groups if not group.stands for key in group.points}
        left = [row for row, one in enumerate(aspects) if (one.comment, one.feedback) not in aside]
        questions.place(aspects, metrics, left)
    questions.forget_runs()  # that failed where metrics were tried
    traits = questions.judge(list(runs.values()), metrics)
    meta, covered = questions.held_against(range(len(aspects)), aspects, traits)
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
        **_figures(meta),
        **told,
        "warnings": one_sided(aspects),
        "left_out": questions.left_out,
        "failed": questions.failed,
        "usage": asdict(questions.model.usage),
        "prompts": sorted(questions.model.asked),
    }
    write_json(folder / "result.json", result)
    return result


def _choose(
    questions: Questions, aspects: Sequence[Aspect], runs: Mapping[str, Run]
) -> tuple[list[Named], dict[str, Any]]:
    """Metrics proposed from part of the tasks, as many as do best on a second part; how they do on the third."""
    of = [aspect.trajectory for aspect in aspects]
    tasks = [runs[name].task for name in of]
    apart = folds_by_task(tasks, of, HELD_OUT, questions.seed)
    rest = [row for row in range(len(aspects)) if apart[row] != 0]
    folds = folds_by_task([tasks[row] for row in rest], [of[row] for row in rest], FOLDS, questions.seed + 1)
    train = [row for row, fold in zip(rest, folds, strict=True) if fold != 0]
    tried_on = [row for row, fold in zip(rest, folds, strict=True) if fold == 0]
    test = [row for row in range(len(aspects)) if apart[row] == 0]
    if not train or not tried_on or not test:
        raise RewardError(
            "The comments are about too few tasks for some to be held out. Collect more comments."
        )
    tried_on = _on_few(tried_on, aspects, questions.seed)
    curve: list[dict[str, Any]] = []

    def attempt(metrics: list[Named], sides: list[int]) -> dict[str, Any]:
        meta = _tried(questions, tried_on, aspects, metrics, runs)
        coverage, redundancy = _share(meta.coverage, 0.0), _share(meta.redundancy, 1.0)
        curve.append(
            {
                "sides": sides,
                "metrics": len(metrics),
                "coverage": coverage,
                "redundancy": redundancy,
                "worth": worth(coverage, redundancy),
            }
        )
        return curve[-1]

    best: list[Named] = []
    figures: dict[str, Any] = {}
    for number in NUMBERS:
        if number > max(len(train) // 2, 2):
            break
        metrics = questions.propose(aspects, train, number, [])
        tried = attempt(metrics, [number])
        if not best or tried["worth"] > figures["worth"]:
            best, figures = metrics, tried
    while len(figures["sides"]) < MOST_ROUNDS:
        placed = {row for metric in best for row in metric.rows}
        left = [row for row in train if row not in placed]
        if len(left) < 2:
            break
        further = [*best, *questions.propose(aspects, left, MORE, best)]
        tried = attempt(further, [*figures["sides"], MORE])
        if tried["coverage"] < figures["coverage"] + LEAST_RISE or tried["worth"] < figures["worth"]:
            break
        best, figures = further, tried
    one = questions.propose(aspects, train, 1, [])
    return best, {
        "held_out": _tested(questions, test, aspects, best, runs),
        "baselines": {"one metric": _tested(questions, test, aspects, one, runs)},
        "curve": curve,
    }


def _tried(
    questions: Questions,
    rows: Sequence[int],
    aspects: Sequence[Aspect],
    metrics: Sequence[Named],
    runs: Mapping[str, Run],
) -> Meta:
    names = sorted({aspects[row].trajectory for row in rows})
    return questions.held_against(rows, aspects, questions.judge([runs[name] for name in names], metrics))[0]


def _tested(
    questions: Questions,
    rows: Sequence[int],
    aspects: Sequence[Aspect],
    metrics: Sequence[Named],
    runs: Mapping[str, Run],
) -> dict[str, Any]:
    meta = _tried(questions, rows, aspects, metrics, runs)
    spoken_of = {aspects[row].trajectory for row in rows}
    return {
        "metrics": len(metrics),
        **_figures(meta),
        "n": meta.aspects,
        "traits": meta.traits,
        "trajectories": len(spoken_of),
    }


def _on_few(rows: Sequence[int], aspects: Sequence[Aspect], seed: int) -> list[int]:
    """The aspects of at most MOST_TRIED trajectories."""
    names = sorted({aspects[row].trajectory for row in rows})
    if len(names) > MOST_TRIED:
        names = np.random.default_rng(seed).choice(names, MOST_TRIED, replace=False).tolist()
    kept = set(names)
    return [row for row in rows if aspects[row].trajectory in kept]


def _judge_others(
    folder: Path, questions: Questions, metrics: Sequence[Named], traits: Mapping[str, Sequence[Trait]]
) -> int:
    """Writes all traits, those given and those of the other trajectories; how many trajectories they are of."""
    count = 0

    def lines() -> Iterator[dict[str, Any]]:
        nonlocal count
        path = folder / "others.jsonl.zst"
        others = (run_of(one) for one in read_trajectories(path)) if path.is_file() else iter(())
        groups = [traits, *(questions.judge(part, metrics) for part in parts_of(others, 100))]
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
    aspects: Sequence[Aspect], metrics: Sequence[Named], covered: Collection[int], vectors: Vectors
) -> tuple[list[dict[str, Any]], list[list[tuple[list[int], int]]]]:
    """The lines, and of each metric the rows of its examples on each side, with its sign."""
    metric_of = {row: number for number, metric in enumerate(metrics) for row in metric.rows}
    examples: list[list[tuple[list[int], int]]] = []
    rank: dict[int, int] = {}
    for metric in metrics:
        sides = []
        for sign in (1, -1):
            rows = [row for row in metric.rows if aspects[row].sign == sign]
            chosen = typical([aspects[row].feedback for row in rows], vectors[rows], EXAMPLES) if rows else []
            sides.append(([rows[place] for place in chosen], sign))
            rank |= {rows[place]: number for number, place in enumerate(chosen)}
        examples.append(sides)
    flat = vectors - vectors.mean(axis=0)
    at = flat @ np.linalg.svd(flat, full_matrices=False)[2][:2].T
    lines = [
        {
            **line_of(row, aspect),
            "metric": metric_of.get(row),
            "covered": row in covered,
            "example": rank.get(row),
            "at": [round(float(one), 4) for one in at[row]],
        }
        for row, aspect in enumerate(aspects)
    ]
    return lines, examples


def _metrics(
    folder: Path,
    aspects: Sequence[Aspect],
    metrics: Sequence[Named],
    examples: Sequence[Sequence[tuple[list[int], int]]],
    vectors: Vectors,
    encode: Embedder,
) -> list[dict[str, Any]]:
    shown_by = [[(vectors[rows], sign) for rows, sign in sides] for sides in examples]
    before = kept_of(shown_by, read_previous(folder), encode, _ALIKE)
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


def _figures(meta: Meta) -> dict[str, Any]:
    return {
        "coverage": meta.coverage,
        "redundancy": meta.redundancy,
        "coverage_interval": meta.coverage_interval,
        "redundancy_interval": meta.redundancy_interval,
    }


def _share(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
