"""An induction from its folder to its result: steps 1 to 5 with the embedded encoder, or all by a language model."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workers.errors import RewardError
from workers.induce.clusters import MetricClusters, build_tree
from workers.induce.comment_points import CommentPoint, read_points
from workers.induce.embedding import Embedder
from workers.induce.grounding import Evidence, gather_evidence
from workers.induce.induction_files import (
    Comment,
    Trait,
    aspect_to_json,
    read_comments,
    read_config,
    read_groups,
    read_previous,
    write_lines,
)
from workers.induce.induction_warnings import warn_of_comments, warn_of_metrics, warn_one_sided
from workers.induce.metric_classifier import (
    InducedMetrics,
    induce_from_groups,
    induce_metrics,
    judge_trajectories,
)
from workers.induce.metric_names import name_metrics
from workers.induce.metric_report import (
    match_previous_metrics,
    report_metrics,
    require_enough,
    resolve_groups,
)
from workers.induce.metric_selection import select_metrics
from workers.induce.point_space import place_points
from workers.induce.step_features import Encode, IndexArray, Projection, extract_features
from workers.json_files import write_json
from workers.schema import read_trajectories

ENGINE = "embedded"


def induce(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError."""
    config, comments = read_config(folder), read_comments(folder)
    if not comments:
        raise RewardError(
            "There is nothing to induce metrics from: no comment was written. Ask for comments in a campaign first."
        )
    encode = Embedder(device=config.device)
    if config.server is not None:
        # Imports openai, which only this engine needs.
        from workers.induce.llm_engine import induce_with_llm

        return induce_with_llm(folder, config.server, comments, encode, seed=config.seed)
    points, vectors = read_points(comments, encode)
    evidence, projection = gather_evidence(
        points,
        vectors,
        ((str(found.id), found) for found in read_trajectories(folder / "trajectories.jsonl.zst")),
        encode,
    )
    unsigned = sum(not point.sign for point in points)
    require_enough(evidence.aspects, len(comments), unsigned=unsigned)
    evidence, space = place_points(evidence, encode, Embedder(device=config.device, is_middle=True))
    induced, held_out = _induce_metrics(folder, evidence, config.seed)
    metrics = _describe_metrics(folder, evidence, induced.clusters, space)
    names = [metric["name"] for metric in metrics]
    report = report_metrics(evidence, np.arange(len(evidence.aspects)), induced, names, is_held_out=False)
    others = _judge_others(folder, induced, names, projection, encode)
    judged = _write_traits(folder, names, report.verdicts.traits, others)
    write_lines(
        folder / "aspects.jsonl", _aspect_lines(evidence, induced.clusters, report.matches, config.seed)
    )
    result = {
        "engine": ENGINE,
        "comments": len(comments),
        "points": len(points),
        "aspects": len(evidence.aspects),
        "trajectories": len(evidence.names),
        "judged": len(evidence.names) + judged,
        "metrics": metrics,
        **report.meta.shares,
        "alike": induced.clusters.similarity,
        "least": induced.least.tolist(),
        **held_out,
        "warnings": [
            *warn_one_sided(evidence.aspects),
            *warn_of_comments(comments, points),
            *warn_of_metrics(evidence, induced, names),
        ],
        "left_out": _list_left_out(comments, points, set(evidence.names)),
    }
    write_json(folder / "result.json", result)
    return result


def _induce_metrics(folder: Path, evidence: Evidence, seed: int) -> tuple[InducedMetrics, dict[str, Any]]:
    """As many metrics as fit best, and how good they are on held-out tasks; or those that people decided on."""
    groups = read_groups(folder)
    if groups is not None:
        points = [group.points for group in groups if group.stands]
        return induce_from_groups(evidence, resolve_groups(evidence.aspects, points), seed=seed), {}
    rows = np.arange(len(evidence.aspects))
    held_out = select_metrics(evidence, rows, seed)
    return induce_metrics(evidence, rows, held_out.pop("rounds"), seed=seed), held_out


def _describe_metrics(
    folder: Path, evidence: Evidence, clusters: MetricClusters, encode: Encode
) -> list[dict[str, Any]]:
    def read_side(number: int | None) -> tuple[list[int], list[str]]:
        """Rows of its aspects, and the texts of its examples."""
        if number is None:
            return [], []
        side = clusters.sides[number]
        return side.rows.tolist(), [evidence.aspects[row].feedback for row in side.examples]

    sides = [(read_side(metric.good), read_side(metric.bad)) for metric in clusters.metrics]
    names = name_metrics(
        [[evidence.aspects[row].feedback for row in [*good[0], *bad[0]]] for good, bad in sides]
    )
    vectors = [
        [
            (clusters.sides[number].vectors, sign)
            for number, sign in ((metric.good, 1), (metric.bad, -1))
            if number is not None
        ]
        for metric in clusters.metrics
    ]
    previous = match_previous_metrics(vectors, read_previous(folder), encode, clusters.similarity)
    return [
        {
            "name": name,
            "good": good[1],
            "bad": bad[1],
            "aspects": [*good[0], *bad[0]],
            "praised": len(good[0]),
            "blamed": len(bad[0]),
            "before": before,
        }
        for name, (good, bad), before in zip(names, sides, previous, strict=True)
    ]


def _aspect_lines(
    evidence: Evidence, clusters: MetricClusters, matches: IndexArray, seed: int
) -> Iterator[dict[str, Any]]:
    metric_of_row = np.full(len(evidence.aspects), -1)
    rank = {int(row): place for side in clusters.sides for place, row in enumerate(side.examples)}
    for place, metric in enumerate(clusters.metrics):
        for number in (metric.good, metric.bad):
            if number is not None:
                metric_of_row[clusters.sides[number].rows] = place
    tree = build_tree(evidence, np.arange(len(evidence.aspects)), seed=seed)
    plane = tree.principal_plane()[tree.leaf]
    for row, aspect in enumerate(evidence.aspects):
        yield {
            **aspect_to_json(row, aspect),
            "metric": int(metric_of_row[row]) if metric_of_row[row] >= 0 else None,
            "covered": bool(matches[row] >= 0),
            "example": rank.get(row),
            "at": [round(float(coordinate), 4) for coordinate in plane[row]],
        }


def _judge_others(
    folder: Path, induced: InducedMetrics, names: Sequence[str], projection: Projection, encode: Embedder
) -> Iterator[list[tuple[Trait, float]]]:
    """The traits of each trajectory that no comment is about."""
    path = folder / "others.jsonl.zst"
    for trajectory in read_trajectories(path) if path.is_file() else ():
        steps = projection(extract_features(trajectory, encode))
        yield judge_trajectories(induced, steps, [str(trajectory.id)], [trajectory.task.id], names).traits


def _write_traits(
    folder: Path,
    names: Sequence[str],
    traits: Sequence[tuple[Trait, float]],
    others: Iterator[list[tuple[Trait, float]]],
) -> int:
    """The number of the other trajectories."""
    numbers = {name: number for number, name in enumerate(names)}
    count = 0

    def read_all() -> Iterator[tuple[Trait, float]]:
        nonlocal count
        yield from traits
        for more in others:
            count += 1
            yield from more

    write_lines(
        folder / "traits.jsonl",
        (
            {
                "trajectory": trait.trajectory,
                "metric": numbers[trait.metric],
                "sign": trait.sign,
                "value": round(value, 4),
                "step": trait.step,
                "because": trait.because,
                "reason": trait.reason,
            }
            for trait, value in read_all()
        ),
    )
    return count


def _list_left_out(
    comments: Sequence[Comment], points: Sequence[CommentPoint], trajectories: Collection[str]
) -> list[dict[str, str]]:
    with_points = {point.comment.id for point in points}
    found = []
    for comment in comments:
        if comment.trajectory not in trajectories:
            found.append({"comment": comment.id, "why": "its trajectory was deleted"})
        elif comment.id not in with_points:
            found.append({"comment": comment.id, "why": "there is no word in it"})
    return found
