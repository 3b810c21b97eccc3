"""Are induced metrics any good? On comments people wrote on AgentRx, Who&When and ILF, and on the sample's.

`python -m benchmarks.induction [--json] [--quick] [--seeds 5] [--source NAME] [--write FILE]` prints, of each source,
how many metrics there are, their coverage and redundancy on held-out points, and the same of one metric for everything
and, where points are few, of one for each point (`induction_figures`). `--write` puts the tables between their marks in
a Markdown file, and draws coverage and redundancy over the number of metrics next to it. Where people gave no sign, it
is told by the engine; reasons of failures are blame.
"""

import argparse
import io
import itertools
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django
import numpy as np

from benchmarks.docs_writer import write_between
from benchmarks.drawing import levels
from benchmarks.induction_figures import measure_evidence
from benchmarks.public_data import data_folder

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
SOURCES = ("sample", "AgentRx", "AgentRx as imported", "Who&When", "ILF")
_SAMPLE = Path(__file__).parents[1] / "apps" / "demo" / "sample"


@dataclass(frozen=True, slots=True)
class Said:
    """truth: what it is about, where that is known."""

    run: Any
    text: str
    sign: int | None
    steps: tuple[int, int] | None
    truth: str | None


def said(source: str) -> Iterator[Said]:
    if source == "sample":
        yield from _sample()
    elif source == "ILF":
        yield from _ilf()
    elif source == "AgentRx as imported":
        yield from _agentrx_import()
    else:
        from benchmarks.grounding import comments

        for run, text, agent_step, category in comments(source):
            step = run.agent_steps[agent_step]
            yield Said(run, text, -1, (step, step), category)


def _sample() -> Iterator[Said]:
    from apps.demo.remarks import TEXTS
    from apps.trajectories.formats import detect

    about = {text.split("{")[0]: name for name, texts in TEXTS.items() for text in texts}
    runs = {}
    for line in (_SAMPLE / "trajectories.jsonl").read_text().splitlines():
        record = json.loads(line)
        runs[record["id"]] = detect(record).read(record)
    for line in (_SAMPLE / "comments.jsonl").read_text().splitlines():
        one = json.loads(line)
        steps = one["anchor"]["steps"] if one["anchor"] else None
        truth = next(name for text, name in about.items() if one["text"].startswith(text))
        run = runs[one["trajectory"]["trajectory_id"]]
        yield Said(run, one["text"], one["sign"], tuple(steps) if steps else None, truth)


def _agentrx_import() -> Iterator[Said]:
    """The comments as the product imports them: with the failure's category, and with the summary."""
    from apps.annotation.feedback.incoming import Incoming
    from apps.annotation.feedback.readers import agentrx

    files = ("agentrx_tau/tau_dataset_full.json", "agentrx_tau/tau_ground_truth.json")
    stream = io.BytesIO(b"\n".join((data_folder() / name).read_bytes() for name in files))
    for _, one in agentrx.read(stream):
        if isinstance(one, Incoming) and one.kind == "comment":
            steps = one.value.anchor.steps if one.value.anchor else None
            yield Said(one.places[0], one.value.text, one.value.sign, steps, None)


def _ilf() -> Iterator[Said]:
    from workers.schema import from_messages
    from workers.schema.messages import build_trajectory
    from workers.schema.records import Task

    path = data_folder() / "ilf_code" / "surge_annotations.jsonl"
    for line in path.read_text().splitlines():
        one = json.loads(line)
        wrong = one["original_model_completion"].removeprefix(one["prompt"])
        messages = [{"role": "user", "content": one["prompt"]}, {"role": "assistant", "content": wrong}]
        run = build_trajectory(from_messages(messages), Task(id=str(one["task_id"])))
        yield Said(run, one["Feedback"], None, None, None)


def measure(source: str, seeds: int, most: int | None) -> dict[str, Any]:
    from workers.induce.comment_points import read_points
    from workers.induce.embedding import Embedder
    from workers.induce.grounding import gather_evidence
    from workers.induce.induction_files import Comment
    from workers.induce.point_space import place_points

    encode, given = Embedder(), list(itertools.islice(said(source), most))
    runs = {comment.run.content_hash: comment.run for comment in given}
    comments = [
        Comment(id=str(n), trajectory=one.run.content_hash, text=one.text, sign=one.sign, steps=one.steps)
        for n, one in enumerate(given)
    ]
    points, vectors = read_points(comments, encode)
    evidence, _ = gather_evidence(points, vectors, runs.items(), encode)
    evidence, _ = place_points(evidence, encode, Embedder(is_middle=True))
    truth = [given[int(aspect.comment)].truth for aspect in evidence.aspects]
    sizes = {"comments": len(comments), "points": len(points), "trajectories": len(runs)}
    return sizes | measure_evidence(evidence, truth, seeds)


def table(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield (
        "| source | points | trajectories | way | metrics | coverage | redundancy | coverage of perfect verdicts "
        "| stability | agreement |"
    )
    yield "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|"
    for source, one in found.items():
        for way, figures in one["ways"].items():
            first = way == "induced"
            cells = [
                *((source, one["aspects"], one["trajectories"]) if first else ("", "", "")),
                way,
                _spread(figures["metrics"], 0),
                *(_with_interval(figures[name]) for name in ("coverage", "redundancy", "bound")),
                _number(one["stability"]) if first else "",
                _with_interval(one["agreement"]) if first else "",
            ]
            yield f"| {' | '.join(map(str, cells))} |"


def match_table(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "| source | matched points that are about what most of the metric is about | points at large |"
    yield "|---|---:|---:|"
    for source, one in found.items():
        if one["right"] is not None:
            yield f"| {source} | {_with_interval(one['right'])} | {_number(one['right_at_large'])} |"


def draw(found: dict[str, dict[str, Any]], folder: Path) -> None:
    """Of the first round, over the folds that the number of metrics is chosen on; the band is of the seeds."""
    for what in ("coverage", "redundancy"):
        series = {}
        for source, one in found.items():
            by_sides: dict[int, list[dict[str, float]]] = {}
            for curve in one["curves"]:
                for tried in curve:
                    if len(tried["sides"]) == 1:
                        by_sides.setdefault(tried["sides"][0], []).append(tried)
            series[source] = [
                (
                    float(np.mean([tried["metrics"] for tried in some])),
                    float(np.mean([tried[what] for tried in some])),
                    min(tried[what] for tried in some),
                    max(tried[what] for tried in some),
                )
                for _, some in sorted(by_sides.items())
            ]
        drawing = levels(f"{what.capitalize()} on held-out folds", series, "metrics")
        (folder / f"induction-{what}.svg").write_text(drawing, encoding="utf-8")


def _spread(values: list[float], digits: int) -> str:
    """The mean, and the least and greatest."""
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _with_interval(value: tuple[float, float, float] | None) -> str:
    if value is None:
        return "–"
    mean, low, high = (f"{number:.2f}".replace("-", "−") for number in value)
    return f"{mean} [{low}, {high}]"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.induction", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quick", action="store_true", help="forty comments of each, one seed: does it run?")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--source", choices=SOURCES, action="append", help="only this one")
    parser.add_argument(
        "--write", type=Path, help="put the table into this Markdown file, and draw beside it"
    )
    options = parser.parse_args()
    os.environ.setdefault("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")  # nothing is asked of it
    django.setup()
    sources = options.source or SOURCES
    most, seeds = (40, 1) if options.quick else (None, options.seeds)
    found = {source: measure(source, seeds, most) for source in sources}
    if options.write:
        write_between(options.write, "induction", table(found))
        write_between(options.write, "induction_matches", match_table(found))
        draw(found, options.write.parent / "images")
    print(json.dumps(found) if options.json else "\n".join([*table(found), "", *match_table(found)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
