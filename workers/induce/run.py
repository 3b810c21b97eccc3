"""An induction from its folder to its result, by the embedded engine unless there is a language model to be asked."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from workers.errors import RewardError
from workers.induce.choice import Induced, Tried, choose, fit, fit_groups, matched, split, worth
from workers.induce.clusters import grow
from workers.induce.directory import (
    line_of,
    read_comments,
    read_config,
    read_groups,
    read_previous,
    write_lines,
)
from workers.induce.embedding import Embedder
from workers.induce.evidence import Comment, Evidence, Gathering, Places, Point, Steps, read_points
from workers.induce.grounding import look
from workers.induce.judging import verdicts
from workers.induce.meta import Meta, Trait, meta_metrics
from workers.induce.naming import names_of
from workers.induce.points import MOST as MOST_POINTS
from workers.induce.points import points_of
from workers.induce.requirements import HELD_OUT, kept_of, known_of, one_sided, require_enough
from workers.json_files import write_json
from workers.schema import read_trajectories

ENGINE = "embedded"
MOST_EACH = 300  # points up to which one metric per comment is tried as a baseline
_LONG = 20_000  # characters of a comment from which it is worth a word


def induce(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError."""
    config, comments = read_config(folder), read_comments(folder)
    if not comments:
        raise RewardError(
            "There is nothing to induce metrics from: no comment was written. Ask for comments in a campaign first."
        )
    encode = Embedder(device=config.device)
    if config.server is not None:
        # Brings openai along, which only this engine needs.
        from workers.induce.asking import induce_by_asking

        return induce_by_asking(folder, config.server, comments, encode, seed=config.seed)
    points, vectors = read_points(comments, encode)
    signed = [place for place, point in enumerate(points) if point.sign]
    gathering = Gathering([points[place] for place in signed], vectors[signed], encode)
    there = set()
    for one in read_trajectories(folder / "trajectories.jsonl.zst"):
        there.add(str(one.id))
        gathering.add(str(one.id), one)
    evidence = gathering.evidence()
    unsigned = sum(not point.sign for point in points)
    require_enough(evidence.aspects, len(comments), unsigned=unsigned)
    rows = np.arange(len(evidence.aspects))
    groups = read_groups(folder)
    if groups is None:
        held_out = held_out_of(evidence, rows, config.seed)
        induced = fit(evidence, rows, held_out.pop("rounds"), seed=config.seed)
    else:
        held_out, known = {}, known_of(evidence.aspects, [group.points for group in groups if group.stands])
        induced = fit_groups(evidence, known, seed=config.seed)
    examples = [
        [
            (induced.sides[side].vectors, sign)
            for side, sign in ((one.good, 1), (one.bad, -1))
            if side is not None
        ]
        for one in induced.metrics
    ]
    kept = kept_of(examples, read_previous(folder), encode, induced.alike)
    metrics = _metrics(evidence, induced, kept)
    seen = _Seen(induced, [metric["name"] for metric in metrics])
    signs, traits = seen.judged(evidence.steps, evidence.names, evidence.tasks)
    best = matched(evidence, rows, induced, signs)
    meta = _meta(evidence, rows, best, [trait for trait, _ in traits])
    others = _judge_others(folder, encode, gathering, seen, traits)
    tree = grow(evidence, rows, seed=config.seed)
    write_lines(folder / "aspects.jsonl", _aspects(evidence, induced, best, tree))
    result = {
        "engine": ENGINE,
        "comments": len(comments),
        "points": len(points),
        "aspects": len(evidence.aspects),
        "trajectories": len(evidence.names),
        "judged": len(evidence.names) + others,
        "metrics": metrics,
        "coverage": meta.coverage,
        "redundancy": meta.redundancy,
        "coverage_interval": meta.coverage_interval,
        "redundancy_interval": meta.redundancy_interval,
        "alike": induced.alike,
        "least": induced.least,
        **held_out,
        "warnings": _warnings(comments, points, evidence),
        "left_out": _left_out(comments, points, there),
    }
    write_json(folder / "result.json", result)
    return result


class _Seen:
    """Judges trajectories by metrics, and says of each verdict what it goes by."""

    def __init__(self, induced: Induced, names: Sequence[str]) -> None:
        self.induced, self.names = induced, names

    def judged(
        self, steps: Steps, names: Sequence[str], tasks: Sequence[str]
    ) -> tuple[NDArray[np.int8], list[tuple[Trait, float]]]:
        """[trajectories, metrics]; and every trait, trajectory by trajectory, with its value."""
        judge, metrics = self.induced.judge, self.induced.metrics
        scores, where, which = judge.scores(steps, tasks)
        chances = judge.chances(scores)
        signs = verdicts(chances, metrics, self.induced.least)
        traits: list[tuple[Trait, float]] = []
        for row, name in enumerate(names):
            for place, metric in enumerate(metrics):
                sides = {1: metric.good, -1: metric.bad}
                value = sum(sign * chances[row, side] for sign, side in sides.items() if side is not None)
                sign = int(signs[row, place])
                side, step, because = sides.get(sign), None, None
                if side is not None and where[row, side] >= 0:
                    step = int(where[row, side])
                    because = int(judge.exemplar_aspects[side][which[row, side]])
                trait = Trait(
                    trajectory=name, metric=self.names[place], sign=sign, step=step, because=because
                )
                traits.append((trait, float(value)))
        return signs, traits


def held_out_of(evidence: Evidence, rows: Places, seed: int) -> dict[str, Any]:
    """How many metrics, chosen without one task in HELD_OUT, and how they do on that."""
    folds = split(evidence, rows, HELD_OUT, seed)
    train, test = rows[folds != 0], rows[folds == 0]
    if not len(train) or not len(test):
        train, test = rows, rows[:0]
    rounds, tried = choose(evidence, train, seed=seed)
    baselines = {"one metric": (1,)}
    if len(train) <= MOST_EACH:
        baselines["one for each point"] = (len(train),)
    return {
        "rounds": rounds,
        "held_out": _tested(evidence, train, test, rounds, seed),
        "baselines": {name: _tested(evidence, train, test, one, seed) for name, one in baselines.items()},
        "curve": [_told(one) for one in tried],
    }


def _tested(
    evidence: Evidence, train: Places, test: Places, rounds: Sequence[int], seed: int
) -> dict[str, Any]:
    induced = fit(evidence, train, rounds, seed=seed)
    spoken_of = sorted(set(evidence.of[test].tolist()))
    seen = _Seen(induced, [str(place) for place in range(len(induced.metrics))])
    signs, traits = seen.judged(evidence.steps, evidence.names, evidence.tasks)
    theirs = {evidence.names[of] for of in spoken_of}
    best = matched(evidence, test, induced, signs)
    meta = _meta(evidence, test, best, [trait for trait, _ in traits if trait.trajectory in theirs])
    return {
        "metrics": len(induced.metrics),
        "coverage": meta.coverage,
        "redundancy": meta.redundancy,
        "coverage_interval": meta.coverage_interval,
        "redundancy_interval": meta.redundancy_interval,
        "n": meta.aspects,
        "traits": meta.traits,
        "trajectories": len(spoken_of),
    }


def _meta(evidence: Evidence, rows: Places, best: Places, traits: Sequence[Trait]) -> Meta:
    """best: of each row the metric it is matched to, or -1. traits: trajectory by trajectory, of all metrics."""
    first: dict[str, int] = {}
    for place, trait in enumerate(traits):
        first.setdefault(trait.trajectory, place)
    matches = {
        place: [first[evidence.aspects[row].trajectory] + int(metric)]
        for place, (row, metric) in enumerate(zip(rows, best, strict=True))
        if metric >= 0
    }
    return meta_metrics([evidence.aspects[row] for row in rows], traits, matches)


def _metrics(
    evidence: Evidence, induced: Induced, kept: Sequence[dict[str, Any] | None]
) -> list[dict[str, Any]]:
    def of(side: int | None) -> tuple[list[int], list[str]]:
        if side is None:
            return [], []
        found = induced.sides[side]
        return found.rows.tolist(), [evidence.aspects[row].feedback for row in found.examples]

    sides = [(of(metric.good), of(metric.bad)) for metric in induced.metrics]
    names = names_of([[evidence.aspects[row].feedback for row in [*good[0], *bad[0]]] for good, bad in sides])
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
        for name, (good, bad), before in zip(names, sides, kept, strict=True)
    ]


def _aspects(evidence: Evidence, induced: Induced, best: Places, tree: Any) -> Iterator[dict[str, Any]]:
    metric_of = np.full(len(evidence.aspects), -1)
    rank = {int(row): place for side in induced.sides for place, row in enumerate(side.examples)}
    for place, metric in enumerate(induced.metrics):
        for side in (metric.good, metric.bad):
            if side is not None:
                metric_of[induced.sides[side].rows] = place
    drawing = tree.drawing()
    for row, aspect in enumerate(evidence.aspects):
        yield {
            **line_of(row, aspect),
            "metric": int(metric_of[row]) if metric_of[row] >= 0 else None,
            "covered": bool(best[row] >= 0),
            "example": rank.get(row),
            "at": [round(float(one), 4) for one in drawing[tree.leaf[row]]],
        }


def _judge_others(
    folder: Path,
    encode: Embedder,
    gathering: Gathering,
    seen: _Seen,
    traits: Sequence[tuple[Trait, float]],
) -> int:
    """Writes all traits, those given and those of the other trajectories; how many these are."""
    count = 0

    def lines() -> Iterator[dict[str, Any]]:
        nonlocal count
        numbers = {name: place for place, name in enumerate(seen.names)}
        for trait, value in traits:
            yield _line(trait, value, numbers)
        path = folder / "others.jsonl.zst"
        for one in read_trajectories(path) if path.is_file() else ():
            looked = look(one, encode)
            done, back, flags = gathering.projection(looked)
            steps = Steps(
                done, back, flags, np.zeros(len(done), dtype=np.intp), np.array(looked.steps, dtype=np.intp)
            )
            count += 1
            for trait, value in seen.judged(steps, [str(one.id)], [one.task.id])[1]:
                yield _line(trait, value, numbers)

    write_lines(folder / "traits.jsonl", lines())
    return count


def _line(trait: Trait, value: float, numbers: dict[str, int]) -> dict[str, Any]:
    return {
        "trajectory": trait.trajectory,
        "metric": numbers[trait.metric],
        "sign": trait.sign,
        "value": round(value, 4),
        "step": trait.step,
        "because": trait.because,
        "reason": trait.reason,
    }


def _told(one: Tried) -> dict[str, Any]:
    return {
        "sides": list(one.rounds),
        "metrics": one.metrics,
        "coverage": one.coverage,
        "redundancy": one.redundancy,
        "worth": worth(one.coverage, one.redundancy),
    }


def _warnings(comments: Sequence[Comment], points: Sequence[Point], evidence: Evidence) -> list[str]:
    found = one_sided(evidence.aspects)
    unsigned = sum(not point.sign for point in points)
    if unsigned:
        found.append(
            f"{unsigned} of {len(points)} points neither praise nor blame and were left out; a sign given with the "
            "comment settles it."
        )
    foreign = sum(not _reads_as_english(comment.text) for comment in comments)
    if foreign:
        found.append(
            f"{foreign} of {len(comments)} comments do not read as English, which is all the embedded engine knows: "
            "what it makes of them is not to be relied on."
        )
    found += [
        f"Comment {one.id} has {len(one.text):,} characters; at most {MOST_POINTS} points of it were read."
        for one in comments
        if len(one.text) > _LONG or len(points_of(one.text)) == MOST_POINTS
    ]
    return found


def _left_out(comments: Sequence[Comment], points: Sequence[Point], there: set[str]) -> list[dict[str, str]]:
    said = {point.comment.id for point in points}
    found = []
    for comment in comments:
        if comment.trajectory not in there:
            found.append({"comment": comment.id, "why": "its trajectory was deleted"})
        elif comment.id not in said:
            found.append({"comment": comment.id, "why": "there is no word in it"})
    return found


def _reads_as_english(text: str) -> bool:
    """A short text says too little; a longer one has some of the commonest words."""
    words = [word.strip(".,;:!?()\"'").casefold() for word in text.split()]
    letters = sum(letter.isalpha() for letter in text)
    if letters and sum(letter.isascii() and letter.isalpha() for letter in text) < 0.7 * letters:
        return False
    return len(words) < 6 or any(word in ENGLISH_STOP_WORDS for word in words)
