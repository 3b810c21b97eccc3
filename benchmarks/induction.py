"""Are induced metrics any good? On comments people wrote on AgentRx, Who&When and ILF, and on the sample's.

`python -m benchmarks.induction [--json] [--quick] [--seeds 5] [--source NAME] [--write FILE]` prints, of each source,
for each seed of what is held out: how many metrics, their coverage and redundancy on held-out points, and the same of
one metric for everything and, where points are few, of one for each point. Next to them the stability of the groups
over the seeds (mean adjusted Rand index of every two), and where the truth is known (AgentRx's categories, the sample's
behaviours) how far the groups agree with it. `--write` puts the table between its marks in a Markdown file, and draws
coverage and redundancy over the number of metrics next to it. Where people gave no sign, it is told by the engine;
reasons of failures are blame.
"""

import argparse
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
from benchmarks.public_data import data_folder

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
SOURCES = ("sample", "AgentRx", "Who&When", "ILF")
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
    from sklearn.metrics import adjusted_rand_score

    from workers.induce.comment_points import read_points
    from workers.induce.embedding import Embedder
    from workers.induce.grounding import gather_evidence
    from workers.induce.induction_files import Comment
    from workers.induce.metric_classifier import induce_metrics
    from workers.induce.metric_selection import select_metrics

    encode, given = Embedder(), list(itertools.islice(said(source), most))
    runs = {comment.run.content_hash: comment.run for comment in given}
    comments = [
        Comment(id=str(n), trajectory=one.run.content_hash, text=one.text, sign=one.sign, steps=one.steps)
        for n, one in enumerate(given)
    ]
    points, vectors = read_points(comments, encode)
    evidence, _ = gather_evidence(points, vectors, runs.items(), encode)
    rows = np.arange(len(evidence.aspects))
    truth = [given[int(aspect.comment)].truth for aspect in evidence.aspects]
    by_seed, groups = [], []
    for seed in range(seeds):
        found = select_metrics(evidence, rows, seed)
        induced = induce_metrics(evidence, rows, found["rounds"], seed=seed)
        group = np.zeros(len(rows), dtype=int)
        for place, side in enumerate(induced.clusters.sides):
            group[side.rows] = place
        groups.append(group)
        row: dict[str, Any] = {"held_out": found["held_out"], **found["baselines"], "curve": found["curve"]}
        if truth[0] is not None:
            row["agreement"] = float(adjusted_rand_score([str(label) for label in truth], group))
        by_seed.append(row)
    pairs = [adjusted_rand_score(a, b) for a, b in itertools.combinations(groups, 2)]
    return {
        "comments": len(comments),
        "points": len(points),
        "aspects": len(rows),
        "trajectories": len(runs),
        "stability": float(np.mean(pairs)) if pairs else None,
        "seeds": by_seed,
    }


def table(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "| source | points | metrics | way | coverage | redundancy | stability | agreement |"
    yield "|---|---:|---:|---|---:|---:|---:|---:|"
    for source, one in found.items():
        for way in one["seeds"][0]:
            if way in ("agreement", "curve"):
                continue
            rows = [row[way] for row in one["seeds"]]
            cells = [_spread([row[name] for row in rows], 2) for name in ("coverage", "redundancy")]
            first = way == "held_out"
            agreement = _spread([row["agreement"] for row in one["seeds"] if "agreement" in row], 2)
            yield (
                f"| {source if first else ''} | {one['aspects'] if first else ''} "
                f"| {_spread([row['metrics'] for row in rows], 0)} | {'induced' if first else way} "
                f"| {' | '.join(cells)} | {_spread([one['stability']], 2) if first else ''} "
                f"| {agreement if first else ''} |"
            )


def draw(found: dict[str, dict[str, Any]], folder: Path) -> None:
    """Of the first round, over the folds that the number of metrics is chosen on; the band is of the seeds."""
    for what in ("coverage", "redundancy"):
        series = {}
        for source, one in found.items():
            by_sides: dict[int, list[dict[str, float]]] = {}
            for row in one["seeds"]:
                for tried in row["curve"]:
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


def _spread(values: list[float | None], digits: int) -> str:
    """The mean, and the least and greatest."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    mean = f"{np.mean(known):.{digits}f}"
    return mean if len(known) == 1 else f"{mean} [{min(known):.{digits}f}, {max(known):.{digits}f}]"


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
        draw(found, options.write.parent / "images")
    print(json.dumps(found) if options.json else "\n".join(table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
