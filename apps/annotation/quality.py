"""Annotation quality of a campaign: bias and speed of annotators, disputed items, pilot estimates."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import sqrt
from statistics import mean, median, stdev
from typing import Any

import numpy as np
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, F, FilteredRelation, Q, Sum
from django.db.models.functions import Least

from apps.annotation.agreement import agreement_by_type, current_agreement_values
from apps.annotation.agreement_values import (
    QuestionKey,
    collect_agreement_values,
    group_by_question,
    is_disputed,
)
from apps.annotation.feedback.records import work_annotations
from apps.annotation.feedback_types import FEEDBACK_TYPES, AgreementValue
from apps.annotation.gold import gold_accuracies
from apps.annotation.kept_figures import kept_figures
from apps.annotation.models import PREFERENCE_CHOICES, Campaign, Item, Preference
from apps.annotation.selectors import campaign_adjudicated_items
from apps.core.share_interval import wilson_interval

ALPHA_USES = (  # by Krippendorff (2004) down to 0.667; below, what a model can learn from many labels
    (0.8, "single labels and gold items"),
    (0.667, "tentative conclusions, training"),
    (0.2, "training on many labels; not single ones"),
    (1e-9, "weak: improve the guidelines first"),
)
FAST_SHARE = 1 / 3  # of the campaign's median seconds, below which an annotator is marked as fast


@dataclass(frozen=True, slots=True)
class Proportion:
    """n of `of`, with the 95 % interval of Wilson (1927), which holds for few and for extremes too."""

    n: int = 0
    of: int = 0

    def __add__(self, other: "Proportion") -> "Proportion":
        return Proportion(self.n + other.n, self.of + other.of)

    @property
    def interval(self) -> tuple[float, float]:
        return wilson_interval(self.n, self.of)

    @property
    def is_biased(self) -> bool:
        """Whether the interval does not contain one half."""
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
class AnnotatorFigures:
    """Figures of one annotator.

    left, chose_longer: how often chosen, of decided comparisons. majority_agreement: where the others had a majority.
    kappa: mean of Cohen's kappa with each other annotator, weighted by items in common. gold: answers as adjudicated.
    """

    name: str
    judged: int = 0
    seconds: list[float] = field(default_factory=list)
    left: Proportion = Proportion()
    chose_longer: Proportion = Proportion()
    majority_agreement: Proportion = Proportion()
    kappa: float | None = None
    gold: Proportion = Proportion()
    is_fast: bool = False

    @property
    def median_seconds(self) -> float | None:
        return median(self.seconds) if self.seconds else None


@dataclass
class QualityReport:
    """confusion: counts [choice of one annotator][choice of another on the same item]. disputed: ids of items."""

    people: list[AnnotatorFigures]
    left: Proportion
    chose_longer: Proportion
    median_seconds: float | None
    confusion: list[list[int]]
    disputed: list[int]
    annotated_twice: int

    @property
    def has_comparisons(self) -> bool:
        """Sides and lengths are known of decided comparisons only."""
        return bool(self.left.of or self.chose_longer.of)

    @property
    def has_majorities(self) -> bool:
        return any(person.majority_agreement.of for person in self.people)

    @property
    def has_gold(self) -> bool:
        return any(person.gold.of for person in self.people)


@dataclass(frozen=True, slots=True)
class PilotStatistics:
    """Estimates from the pilot items. wanted, done: annotations of `items`. left: annotations needed on all others.

    seconds: mean active seconds of an annotation, with a 95 % interval of the normal distribution. cost: of what is
    left, from low to high; None without `hourly_pay` or with fewer than two timed annotations.
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

    @property
    def has_agreement(self) -> bool:
        return any(found["alpha"] is not None for _, found in self.alphas)


def pilot_statistics(campaign: Campaign) -> PilotStatistics:
    work = campaign.items.filter(purpose=Item.Purpose.WORK)
    sums = work.filter(in_pilot=True).aggregate(
        n=Count("pk"), wanted=Sum("overlap"), done=Sum(Least("completed_count", "overlap"))
    )
    rest = work.filter(in_pilot=False).aggregate(left=Sum(F("overlap") - Least("completed_count", "overlap")))
    annotations = work_annotations(campaign.project, campaign.name).filter(assignment__item__in_pilot=True)
    timed = annotations.filter(active_seconds__gt=0).values_list("active_seconds", flat=True)
    seconds, left = _mean([value for value in timed if value is not None]), rest["left"] or 0
    hours = None if seconds is None else _scaled(seconds, left / 3600)
    pay = campaign.hourly_pay
    return PilotStatistics(
        items=sums["n"],
        wanted=sums["wanted"] or 0,
        done=sums["done"] or 0,
        alphas=[
            (FEEDBACK_TYPES[name].label, found)
            for name, found in agreement_by_type(collect_agreement_values(annotations)).items()
        ],
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


def measure_quality(
    campaign: Campaign, answers: dict[str, list[AgreementValue]], kinds: dict[str, Any]
) -> QualityReport:
    """Quality of the annotations that count.

    answers, kinds: of the campaign, from `current_agreement_values` and `agreement_by_type`.
    """
    people = _people(campaign)
    _add_bias(campaign, people)
    questions = group_by_question(answers)
    _add_majority_agreement(people, questions)
    _add_kappas(people, kinds)
    for name, found in gold_accuracies(campaign).items():
        people.setdefault(name, AnnotatorFigures(name)).gold = Proportion(found.n, found.of)
    seconds = [value for person in people.values() for value in person.seconds]
    middle = median(seconds) if seconds else None
    for person in people.values():
        person.is_fast = bool(
            middle and person.median_seconds and person.median_seconds < FAST_SHARE * middle
        )
    return QualityReport(
        people=sorted(people.values(), key=lambda person: (-person.judged, person.name)),
        left=sum((person.left for person in people.values()), Proportion()),
        chose_longer=sum((person.chose_longer for person in people.values()), Proportion()),
        median_seconds=middle,
        confusion=_confusion(answers.get("pairwise", [])),
        disputed=disputed(questions),
        annotated_twice=len(
            {key[0] for key, question_answers in questions.items() if len(question_answers) > 1}
        ),
    )


def disputed_items(campaign: Campaign) -> list[int]:
    """Ids of disputed items, most disputed questions first."""
    return list(kept_figures(campaign, _disputed_items))


def _disputed_items(campaign: Campaign) -> list[int]:
    answers = current_agreement_values(campaign.project, campaign.name)
    return disputed(group_by_question(answers))


def undecided_items(campaign: Campaign) -> list[int]:
    """Ids of disputed items without an adjudication."""
    items = disputed_items(campaign)
    known = campaign_adjudicated_items(campaign)
    return [item for item in items if item not in known]


def disputed(questions: dict[QuestionKey, dict[str, AgreementValue]]) -> list[int]:
    counts = Counter(key[0] for key, answers in questions.items() if is_disputed(answers.values()))
    return [item for item, _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))]


def _people(campaign: Campaign) -> dict[str, AnnotatorFigures]:
    counted = work_annotations(campaign.project, campaign.name)
    timed = ArrayAgg("active_seconds", filter=Q(active_seconds__isnull=False) & ~Q(active_seconds=0))
    rows = counted.values("assignment__annotator__name").annotate(n=Count("pk"), seconds=timed)
    return {
        name: AnnotatorFigures(name, judged=n, seconds=seconds or [])
        for name, n, seconds in rows.values_list("assignment__annotator__name", "n", "seconds")
    }


def _add_bias(campaign: Campaign, people: dict[str, AnnotatorFigures]) -> None:
    """How often the left and the longer trajectory was chosen, of decided overall comparisons."""
    counted = work_annotations(campaign.project, campaign.name)
    assignment = "annotation__assignment"
    rows = Preference.objects.filter(annotation__in=counted, criterion=None, choice__in=["a", "b"])
    rows = rows.alias(
        first=FilteredRelation(f"{assignment}__item__places", condition=_at_position(0)),
        second=FilteredRelation(f"{assignment}__item__places", condition=_at_position(1)),
        a=F("first__trajectory__token_count"),
        b=F("second__trajectory__token_count"),
    )
    is_left = Q(choice="a", **{f"{assignment}__swapped": False}) | Q(
        choice="b", **{f"{assignment}__swapped": True}
    )
    is_longer = Q(choice="a", a__gt=F("b")) | Q(choice="b", b__gt=F("a"))
    figures = (
        rows.values(f"{assignment}__annotator__name")
        .annotate(
            n=Count("pk"),
            left=Count("pk", filter=is_left),
            unequal=Count("pk", filter=~Q(a=F("b"))),
            longer=Count("pk", filter=is_longer),
        )
        .values_list(f"{assignment}__annotator__name", "n", "left", "unequal", "longer")
    )
    for name, n, left, unequal, longer in figures:
        people[name].left, people[name].chose_longer = Proportion(left, n), Proportion(longer, unequal)


def _at_position(position: int) -> Q:
    return Q(annotation__assignment__item__places__position=position)


def _add_majority_agreement(
    people: dict[str, AnnotatorFigures], questions: dict[QuestionKey, dict[str, AgreementValue]]
) -> None:
    """How often each annotator agrees with the majority of the others, where there is one."""
    agreed: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    for answers in questions.values():
        if len(answers) < 3 or next(iter(answers.values())).level == "interval":
            continue
        counts = Counter([answer.value for answer in answers.values()])
        for name, answer in answers.items():
            counts[answer.value] -= 1  # without their own
            most, is_tied, majority = 0, False, None
            for value, count in counts.items():
                if count > most:
                    most, is_tied, majority = count, False, value
                elif count == most:
                    is_tied = True
            counts[answer.value] += 1
            if not is_tied:
                compared[name] += 1
                agreed[name] += answer.value == majority
    for name, n in compared.items():
        people[name].majority_agreement = Proportion(agreed[name], n)


def _add_kappas(people: dict[str, AnnotatorFigures], kinds: dict[str, Any]) -> None:
    weighted: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for found in kinds.values():
        for pair in found["pairs"]:
            if pair["kappa"] is not None:
                weighted[pair["a"]].append((pair["kappa"], pair["n"]))
                weighted[pair["b"]].append((pair["kappa"], pair["n"]))
    for name, pairs in weighted.items():
        people[name].kappa = sum(kappa * n for kappa, n in pairs) / sum(n for _, n in pairs)


def _confusion(answers: list[AgreementValue]) -> list[list[int]]:
    """Counts [choice of one annotator][choice of another on the same item], over both orders of each pair."""
    overall = [answer for answer in answers if answer.question is None]
    items, item = np.unique([answer.item for answer in overall], return_inverse=True)
    counts = np.zeros((len(items), len(PREFERENCE_CHOICES)), dtype=np.int64)
    np.add.at(counts, (item, np.array([answer.value for answer in overall], dtype=np.intp)), 1)
    table: list[list[int]] = (counts.T @ counts - np.diag(counts.sum(axis=0))).tolist()
    return table


def read_alpha(found: dict[str, Any]) -> str:
    """What labels with this agreement are good for: by the lower end of the interval where there is one."""
    if found["alpha"] is None:
        return "unknown: no item has two annotations"
    low = found["interval"][0] if found["interval"] else found["alpha"]
    sure = "" if found["interval"] else ", if that holds for more items"
    for least, words in ALPHA_USES:
        if low >= least:
            return f"{words}{sure}"
    return f"not shown to be better than chance{sure}"


def alpha_chart(kinds: dict[str, Any]) -> dict[str, Any]:
    """Alphas of feedback types and criteria as bars with their intervals. See `apps.core.charts`."""
    bars = [
        (FEEDBACK_TYPES[kind].label if name is None else name, values)
        for kind, found in kinds.items()
        for name, values in [(None, found), *found["criteria"].items()]
        if values["alpha"] is not None
    ]
    return {
        "kind": "bar",
        "x": {"labels": [name for name, _ in bars]},
        "y": {"name": "Krippendorff's alpha", "max": 1},
        "n": "With 95 % intervals, where there are at least ten units",
        "series": [
            {
                "name": "alpha",
                "points": [round(found["alpha"], 4) for _, found in bars],
                "counts": [found["items"] for _, found in bars],
                "intervals": [
                    [place, *found["interval"]] for place, (_, found) in enumerate(bars) if found["interval"]
                ],
            }
        ],
    }


def speed_chart(quality: QualityReport) -> dict[str, Any]:
    """Median seconds and number of annotations of each annotator as points."""
    points = [
        (person.name, [person.judged, round(person.median_seconds, 1)])
        for person in quality.people
        if person.median_seconds is not None
    ]
    return {
        "kind": "scatter",
        "x": {"name": "annotations", "count": True, "min": 0},
        "y": {"name": "median time", "unit": "s", "min": 0},
        "series": [{"name": name, "points": [point]} for name, point in points],
    }
