"""How far a judge agrees with people, by criterion: where it was measured, it may be trusted, and nowhere else.

A judge and people are two raters of the same things: a run by a criterion, as its place on the scale from 0 to 1, or a
comparison, as how far run a is the better one, from 0 to 1. People are the adjudication where there is one, else the
mean of what they said.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.annotation.feedback.records import current_annotations
from apps.annotation.models import Campaign, CriterionScore, Item, Preference
from apps.judges.models import Judge, JudgeResult, JudgeRun

RESAMPLES = 1000
FEWEST = 20  # things both judged, below which agreement is no measure
APART = 0.25  # of a scale: judge and people farther apart disagree
_CHOICES = {"a": 1.0, "b": 0.0, "tie": 0.5, "both_bad": 0.5}
Thing = tuple[int, int | None, int | None]  # item, run (None: both), criterion (None: overall)
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Opinion:
    """What people say of a thing, 0 to 1. each: by person; of an adjudication, the adjudicator's alone."""

    value: float
    each: Mapping[str, float]
    is_adjudicated: bool


@dataclass(frozen=True, slots=True)
class Figure:
    """Of one criterion, or of all. n: things both judged. tasks: they are of.

    alpha: Krippendorff's (2011, interval), judge and people. interval: 95 %, tasks resampled. bias: judge less people,
    of the scale. same: share of the comparisons that people decided where the judge names the same run, ties half.
    people: alpha of one person against the mean of the others, where several judged: what a person reaches.
    """

    name: str
    n: int
    tasks: int
    alpha: float | None
    interval: tuple[float, float] | None
    bias: float
    same: float | None
    people: float | None

    @property
    def is_measured(self) -> bool:
        return self.n >= FEWEST and self.interval is not None

    @property
    def trust(self) -> str:
        """In words: what the interval allows to say."""
        if self.interval is None or self.n < FEWEST:
            return "too few to tell"
        low = self.interval[0]
        return "agrees" if low >= 0.667 else "agrees somewhat" if low > 0.2 else "not shown to agree"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """value, people: 0 to 1."""

    judged: JudgeResult
    criterion: str
    value: float
    people: float
    reason: str
    is_adjudicated: bool


@dataclass(frozen=True, slots=True)
class Order:
    """How much the order of two runs matters.

    consistent: both orders name the same run. first: how often the run shown first is named. alone, both: right (as
    `same`) asking in one order, and averaging both; None without people.
    """

    n: int
    consistent: float
    first: float
    alone: float | None
    both: float | None


@dataclass(frozen=True, slots=True)
class Against:
    """Two judge runs on the things both judged, and people did. difference: of alpha, the first less the second."""

    n: int
    first: float | None
    second: float | None
    difference: float | None
    interval: tuple[float, float] | None


@dataclass
class Held:
    """A judge run held against people."""

    judge_run: JudgeRun
    said: dict[Thing, tuple[float, dict[str, Any], JudgeResult]] = field(default_factory=dict)
    opinions: dict[Thing, Opinion] = field(default_factory=dict)
    names: dict[int | None, str] = field(default_factory=dict)

    @property
    def both(self) -> list[Thing]:
        return sorted(self.said.keys() & self.opinions.keys(), key=str)


def held_against_people(judge_run: JudgeRun) -> Held:
    """With nothing beside it where it is a trial: nobody judges as one does there."""
    judge = judge_run.judge
    asks = judge.criteria
    held = Held(judge_run, names={(one.pk if one else None): one.name if one else "Overall" for one in asks})
    rows = judge_run.results.filter(state=JudgeResult.State.DONE, item__isnull=False).select_related(
        "item__task", "trajectory"
    )
    for row in rows.iterator(chunk_size=1000):
        for criterion, said in zip(asks, row.answer or (), strict=True):
            value = said["value"] if judge.mode == Judge.Mode.SCORE else said["chance"]
            if value is None:
                continue
            if criterion is not None and judge.mode == Judge.Mode.SCORE:
                value = (value - criterion.scale_low) / (criterion.scale_high - criterion.scale_low)
            run = row.trajectory_id if judge.mode == Judge.Mode.SCORE else None
            assert row.item_id is not None
            held.said[row.item_id, run, criterion.pk if criterion else None] = (value, said, row)
    if judge_run.campaign is not None:
        held.opinions = opinions_of(judge_run.campaign, judge.mode)
    return held


def opinions_of(campaign: Campaign, mode: str) -> dict[Thing, Opinion]:
    """What people say of the campaign's work now; judges are no people."""
    each: dict[Thing, dict[str, float]] = defaultdict(dict)
    decided: dict[Thing, dict[str, float]] = defaultdict(dict)
    said = current_annotations(campaign.project, {"campaigns": [campaign.name], "adjudication": "also"})
    said = said.filter(assignment__item__purpose=Item.Purpose.WORK).order_by()
    who = ("annotation__assignment__annotator__name", "annotation__assignment__is_adjudication")
    if mode == Judge.Mode.SCORE:
        scores = CriterionScore.objects.filter(annotation__in=said)
        of_score = ("annotation__assignment__item", "trajectory", "criterion", "value", "low", "high")
        for row in scores.values_list(*who, *of_score).iterator():
            name, decides, item, run, criterion, value, low, high = row
            (decided if decides else each)[item, run, criterion][name] = (value - low) / (high - low)
    else:
        chosen = Preference.objects.filter(annotation__in=said)
        fields = ("annotation__assignment__item", "criterion", "choice")
        for name, decides, item, criterion, choice in chosen.values_list(*who, *fields).iterator():
            (decided if decides else each)[item, None, criterion][name] = _CHOICES[choice]
    found = {thing: Opinion(_mean(values.values()), values, False) for thing, values in each.items()}
    return found | {thing: Opinion(_mean(values.values()), values, True) for thing, values in decided.items()}


def figures_of(held: Held) -> list[Figure]:
    """By criterion in the judge's order, and, of several, all of them together at the end."""
    by: dict[int | None, list[Thing]] = defaultdict(list)
    for thing in held.both:
        by[thing[2]].append(thing)
    found = [_figure(held, name, by[key]) for key, name in held.names.items()]
    return [*found, _figure(held, "All together", held.both)] if len(found) > 1 else found


def disagreements_of(held: Held) -> list[Disagreement]:
    """Where judge and people are farther apart than APART, the farthest first."""
    found = []
    for thing in held.both:
        (value, said, row), opinion = held.said[thing], held.opinions[thing]
        if abs(value - opinion.value) > APART:
            found.append(
                Disagreement(
                    row, held.names[thing[2]], value, opinion.value, said["reason"], opinion.is_adjudicated
                )
            )
    return sorted(found, key=lambda one: (-abs(one.value - one.people), one.judged.pk))


def order_of(held: Held) -> Order | None:
    """None where nothing was compared, or no order named a run."""
    named = [
        (thing, said["first"], said["second"])
        for thing, (_, said, _) in held.said.items()
        if said.get("first") is not None and said["first"] != 0.5 and said["second"] != 0.5
    ]
    if not named:
        return None
    first, second = (np.array([one[place] for one in named]) for place in (1, 2))
    shown_first = np.concatenate([first > 0.5, second < 0.5])
    people = np.array([held.opinions[thing].value if thing in held.opinions else 0.5 for thing, *_ in named])
    decided = people != 0.5
    alone = both = None
    if decided.any():
        is_a = people[decided] > 0.5
        one, two = first[decided], second[decided]
        alone = float(((one > 0.5) == is_a).mean() + ((two > 0.5) == is_a).mean()) / 2
        mean = (one + two) / 2
        both = float(np.where(mean == 0.5, 0.5, (mean > 0.5) == is_a).mean())
    return Order(
        n=len(named),
        consistent=float(((first > 0.5) == (second > 0.5)).mean()),
        first=float(shown_first.mean()),
        alone=alone,
        both=both,
    )


def spread_of(held: Held) -> float | None:
    """How far samples of one thing lie apart, of the scale: the mean standard deviation; None for one sample."""
    judge = held.judge_run.judge
    wide: dict[int | None, float] = {}
    if judge.mode == Judge.Mode.SCORE:
        wide = {one.pk: one.scale_high - one.scale_low for one in judge.criteria if one is not None}
    found = [
        said["spread"] / wide.get(thing[2], 1.0)
        for thing, (_, said, _) in held.said.items()
        if said.get("spread") is not None
    ]
    return float(np.mean(found)) if found else None


def against(first: Held, second: Held) -> Against:
    """Of judge runs of one campaign, by judges of one mode, on what both and people judged; criteria by name."""

    def named(held: Held) -> dict[tuple[int, int | None, str], Thing]:
        return {(thing[0], thing[1], held.names[thing[2]]): thing for thing in held.both}

    mine, theirs = named(first), named(second)
    common = sorted(mine.keys() & theirs.keys(), key=str)
    if not common:
        return Against(0, None, None, None, None)
    people = np.array([first.opinions[mine[one]].value for one in common])
    said = [
        np.array([held.said[of[one]][0] for one in common]) for held, of in ((first, mine), (second, theirs))
    ]
    alphas = [_alpha(one, people) for one in said]
    if alphas[0] is None or alphas[1] is None:
        return Against(len(common), alphas[0], alphas[1], None, None)
    tasks = [first.said[mine[one]][2].item.task_id for one in common]  # type: ignore[union-attr]
    drawn = []
    for rows in resampled(tasks):
        a, b = (_alpha(one[rows], people[rows]) for one in said)
        if a is not None and b is not None:
            drawn.append(a - b)
    return Against(
        len(common), alphas[0], alphas[1], alphas[0] - alphas[1], interval_of(drawn, len(set(tasks)))
    )


def _figure(held: Held, name: str, things: Sequence[Thing]) -> Figure:
    values = np.array([held.said[thing][0] for thing in things])
    people = np.array([held.opinions[thing].value for thing in things])
    tasks = [held.said[thing][2].item.task_id for thing in things]  # type: ignore[union-attr]
    drawn = [alpha for rows in resampled(tasks) if (alpha := _alpha(values[rows], people[rows])) is not None]
    decided = people != 0.5
    same = None
    if held.judge_run.judge.mode == Judge.Mode.COMPARE and decided.any():
        named = np.where(values == 0.5, 0.5, (values > 0.5) == (people > 0.5))
        same = float(named[decided].mean())
    return Figure(
        name=name,
        n=len(things),
        tasks=len(set(tasks)),
        alpha=_alpha(values, people),
        interval=interval_of(drawn, len(set(tasks))),
        bias=float((values - people).mean()) if len(things) else 0.0,
        same=same,
        people=_among_people([held.opinions[thing] for thing in things]),
    )


def _among_people(opinions: Iterable[Opinion]) -> float | None:
    """One person against the mean of the others, every person of every thing that several judged."""
    one, others = [], []
    for opinion in opinions:
        if len(opinion.each) < 2 or opinion.is_adjudicated:
            continue
        values = list(opinion.each.values())
        for place, value in enumerate(values):
            one.append(value)
            others.append(_mean(values[:place] + values[place + 1 :]))
    return _alpha(np.array(one), np.array(others))


def _alpha(a: Floats, b: Floats) -> float | None:
    """Krippendorff's alpha of two raters on an interval scale: 1 - observed by expected squared difference.

    a, b: [things]. None without things, or where all values are one, so that nothing could be agreed on.
    """
    if len(a) == 0:
        return None
    expected = 2 * np.concatenate([a, b]).var(ddof=1)
    if expected < 1e-12:
        return None
    return float(1 - ((a - b) ** 2).mean() / expected)


def resampled(tasks: Sequence[int]) -> Iterable[NDArray[np.int64]]:
    """Rows of tasks drawn with replacement, RESAMPLES times; always the same draws."""
    by: dict[int, list[int]] = defaultdict(list)
    for row, task in enumerate(tasks):
        by[task].append(row)
    groups = [np.array(rows) for rows in by.values()]
    dice = np.random.default_rng(0)
    if len(groups) < 2:
        return
    for _ in range(RESAMPLES):
        yield np.concatenate([groups[one] for one in dice.integers(0, len(groups), len(groups))])


def interval_of(drawn: Sequence[float], tasks: int) -> tuple[float, float] | None:
    """95 %; None where there are too few tasks to say."""
    if tasks < 5 or len(drawn) < RESAMPLES // 2:
        return None
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
