"""What a data manager asks of a campaign's judgements: who leans which way, who is quick, where people part."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import sqrt
from statistics import mean, median, stdev
from typing import Any

from django.db.models import Count, F, OuterRef, Subquery, Sum

from apps.annotation.agreement import answers_of, of_kinds
from apps.annotation.answers import Question, answers_to, by_question, part
from apps.annotation.feedback.records import judged_annotations
from apps.annotation.feedback_types import KINDS, Answer
from apps.annotation.gold import gold_shares
from apps.annotation.models import PREFERENCE_CHOICES, Campaign, Item, ItemTrajectory, Preference
from apps.annotation.selectors import decided_of

QUICK = 1 / 3  # of the campaign's median seconds: whoever is quicker is worth a look


@dataclass(frozen=True, slots=True)
class Share:
    """n of `of`, with the 95 % interval of Wilson (1927), which holds for few and for extremes too."""

    n: int = 0
    of: int = 0

    def __add__(self, other: "Share") -> "Share":
        return Share(self.n + other.n, self.of + other.of)

    @property
    def interval(self) -> tuple[float, float]:
        if not self.of:
            return 0.0, 1.0
        z, n, p = 1.96, self.of, self.n / self.of
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    @property
    def is_biased(self) -> bool:
        """Whether a fair coin is hard to believe."""
        return not self.interval[0] <= 0.5 <= self.interval[1]

    @property
    def percent(self) -> float:
        return 100 * self.n / self.of

    @property
    def low(self) -> float:
        return 100 * self.interval[0]

    @property
    def high(self) -> float:
        return 100 * self.interval[1]


@dataclass
class Person:
    """One annotator's judgements.

    left, longer: how often chosen, of decided comparisons. with_others: agreed, where the others had a majority.
    kappa: Cohen's with each of the others, the mean weighted by how much both judged. gold: answered as adjudicated.
    """

    name: str
    judged: int = 0
    seconds: list[float] = field(default_factory=list)
    left: Share = Share()
    longer: Share = Share()
    with_others: Share = Share()
    kappa: float | None = None
    gold: Share = Share()
    is_quick: bool = False

    @property
    def median_seconds(self) -> float | None:
        return median(self.seconds) if self.seconds else None


@dataclass
class Quality:
    """confusion: [what one said][what another said of the same], counts. disputed: items where people part."""

    people: list[Person]
    left: Share
    longer: Share
    median_seconds: float | None
    confusion: list[list[int]]
    disputed: list[int]
    judged_twice: int


@dataclass(frozen=True, slots=True)
class Pilot:
    """What the first items tell. done: of the judgements wanted on `items`. left: judgements wanted on all others.

    seconds: mean active seconds of a judgement, with a 95 % interval of the normal distribution. cost: of what is left,
    low to high by that interval; None without `hourly_pay` or with fewer than two timed judgements.
    """

    items: int
    wanted: int
    done: int
    alphas: list[tuple[str, Any]]
    seconds: tuple[float, float, float] | None
    left: int
    hours: tuple[float, float, float] | None
    cost: tuple[float, float, float] | None

    @property
    def is_done(self) -> bool:
        return self.done >= self.wanted


def pilot_of(campaign: Campaign) -> Pilot:
    work = campaign.items.filter(purpose=Item.Purpose.WORK)
    sums = work.filter(in_pilot=True).aggregate(
        n=Count("pk"), wanted=Sum("overlap"), done=Sum("completed_count")
    )
    rest = work.filter(in_pilot=False).aggregate(left=Sum(F("overlap") - F("completed_count")))
    annotations = judged_annotations(campaign.project, campaign.name).filter(assignment__item__in_pilot=True)
    timed = annotations.filter(active_seconds__gt=0).values_list("active_seconds", flat=True)
    seconds, left = _mean([value for value in timed if value is not None]), rest["left"] or 0
    hours = None if seconds is None else _scaled(seconds, left / 3600)
    pay = campaign.hourly_pay
    return Pilot(
        items=sums["n"],
        wanted=sums["wanted"] or 0,
        done=sums["done"] or 0,
        alphas=[(KINDS[name].label, found) for name, found in of_kinds(answers_to(annotations)).items()],
        seconds=seconds,
        left=left,
        hours=hours,
        cost=None if hours is None or pay is None else _scaled(hours, float(pay)),
    )


def _mean(values: list[float]) -> tuple[float, float, float] | None:
    if len(values) < 2:
        return None
    half = 1.96 * stdev(values) / sqrt(len(values))
    return max(0.0, mean(values) - half), mean(values), mean(values) + half


def _scaled(interval: tuple[float, float, float], by: float) -> tuple[float, float, float]:
    low, middle, high = interval
    return low * by, middle * by, high * by


def quality_of(campaign: Campaign, answers: dict[str, list[Answer]], kinds: dict[str, Any]) -> Quality:
    """Figures of the judgements that count. answers, kinds: of the campaign, by `answers_of` and `of_kinds`."""
    people = _people(campaign)
    _lean(campaign, people)
    questions = by_question(answers)
    _agree(people, questions)
    _kappas(people, kinds)
    for name, found in gold_shares(campaign).items():
        people.setdefault(name, Person(name)).gold = Share(found.n, found.of)
    seconds = [value for person in people.values() for value in person.seconds]
    middle = median(seconds) if seconds else None
    for person in people.values():
        person.is_quick = bool(middle and person.median_seconds and person.median_seconds < QUICK * middle)
    return Quality(
        people=sorted(people.values(), key=lambda one: (-one.judged, one.name)),
        left=sum((person.left for person in people.values()), Share()),
        longer=sum((person.longer for person in people.values()), Share()),
        median_seconds=middle,
        confusion=_confusion(answers.get("pairwise", [])),
        disputed=disputed(questions),
        judged_twice=len({key[0] for key, said in questions.items() if len(said) > 1}),
    )


def disputed_in(campaign: Campaign) -> list[int]:
    """Items on which people part, those with the most questions in dispute first."""
    answers = answers_of(campaign.project, campaign.name)
    return disputed(by_question(answers))


def undecided_in(campaign: Campaign) -> list[int]:
    """Items in dispute that nobody has adjudicated."""
    items = disputed_in(campaign)
    known = decided_of(items)
    return [item for item in items if item not in known]


def disputed(questions: dict[Question, dict[str, Answer]]) -> list[int]:
    counts = Counter(key[0] for key, said in questions.items() if part(said.values()))
    return [item for item, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]


def _people(campaign: Campaign) -> dict[str, Person]:
    counted = judged_annotations(campaign.project, campaign.name)
    people: dict[str, Person] = {}
    for name, seconds in counted.values_list("assignment__annotator__name", "active_seconds").iterator():
        person = people.setdefault(name, Person(name))
        person.judged += 1
        if seconds:
            person.seconds.append(seconds)
    return people


def _lean(campaign: Campaign, people: dict[str, Person]) -> None:
    """How often the left run and the longer one was chosen, of decided comparisons overall."""
    counted = judged_annotations(campaign.project, campaign.name)
    tokens = ItemTrajectory.objects.filter(item=OuterRef("annotation__assignment__item"))
    rows = Preference.objects.filter(
        annotation__in=counted, criterion=None, choice__in=["a", "b"]
    ).values_list(
        "annotation__assignment__annotator__name",
        "choice",
        F("annotation__assignment__swapped"),
        Subquery(tokens.filter(position=0).values("trajectory__token_count")[:1]),
        Subquery(tokens.filter(position=1).values("trajectory__token_count")[:1]),
    )
    for name, choice, swapped, a, b in rows.iterator():
        person = people[name]
        person.left += Share((choice == "a") != swapped, 1)
        if a != b:
            person.longer += Share((choice == "a") == (a > b), 1)


def _agree(people: dict[str, Person], questions: dict[Question, dict[str, Answer]]) -> None:
    """How often each says what most of the others say; where they have no majority nothing is said."""
    for said in questions.values():
        if len(said) < 3 or next(iter(said.values())).level == "interval":
            continue
        for name, one in said.items():
            others = Counter(other.value for each, other in said.items() if each != name).most_common(2)
            if len(others) == 1 or others[0][1] > others[1][1]:
                people[name].with_others += Share(one.value == others[0][0], 1)


def _kappas(people: dict[str, Person], kinds: dict[str, Any]) -> None:
    weighted: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for found in kinds.values():
        for pair in found["pairs"]:
            if pair["kappa"] is not None:
                weighted[pair["a"]].append((pair["kappa"], pair["n"]))
                weighted[pair["b"]].append((pair["kappa"], pair["n"]))
    for name, pairs in weighted.items():
        people[name].kappa = sum(kappa * n for kappa, n in pairs) / sum(n for _, n in pairs)


def _confusion(answers: list[Answer]) -> list[list[int]]:
    """[what one said][what another said of the same item], over both orders of every two annotators."""
    by_item: dict[int, list[int]] = defaultdict(list)
    for one in answers:
        if one.question is None:
            by_item[one.item].append(int(one.value))
    table = [[0] * len(PREFERENCE_CHOICES) for _ in PREFERENCE_CHOICES]
    for said in by_item.values():
        for place, mine in enumerate(said):
            for other, theirs in enumerate(said):
                table[mine][theirs] += place != other
    return table


def drawn_alphas(kinds: dict[str, Any]) -> dict[str, Any]:
    """Alphas as bars, for charts.js: each kind and its criteria."""
    bars = [
        (KINDS[kind].label if name is None else name, one["alpha"])
        for kind, found in kinds.items()
        for name, one in [(None, found), *found["criteria"].items()]
        if one["alpha"] is not None
    ]
    return {
        "kind": "bar",
        "x": {"labels": [name for name, _ in bars]},
        "y": {"name": "alpha", "max": 1},
        "series": [{"name": "Krippendorff's alpha", "points": [round(alpha, 4) for _, alpha in bars]}],
    }


def drawn_people(quality: Quality) -> dict[str, Any]:
    """Seconds and judgements of each annotator as points, for charts.js."""
    points = [
        (person.name, [person.judged, round(person.median_seconds, 1)])
        for person in quality.people
        if person.median_seconds is not None
    ]
    return {
        "kind": "scatter",
        "x": {"name": "judgements", "min": 0},
        "y": {"name": "median seconds", "min": 0},
        "series": [{"name": name, "points": [point]} for name, point in points],
    }
