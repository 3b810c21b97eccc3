"""How far annotators agree: Krippendorff's alpha and Cohen's kappa on what counts now."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
from sklearn.metrics import cohen_kappa_score

from apps.accounts.models import Project
from apps.annotation.feedback.records import current_submissions

CATEGORIES = ("a", "tie", "b", "both_bad")


@dataclass(frozen=True)
class Said:
    annotator: str
    item: int
    value: str


def agreement(*, project: Project, campaign: str | None = None) -> dict[str, Any]:
    """{"kinds": {"pairwise": {"alpha", "level", "items", "annotators", "pairs", "criteria"}}}.

    alpha: nominal (Krippendorff 2011, "Computing Krippendorff's alpha-reliability") over items that at least two people
    judged; null where none were. pairs: Cohen's kappa of two annotators over the n items both judged; null where both
    always said one and the same thing. criteria: the same for each named criterion.
    """
    filters = {"campaigns": [campaign]} if campaign else {}
    by_criterion: dict[str | None, list[Said]] = defaultdict(list)
    rows = current_submissions(project, filters).values_list(
        "assignment__annotator__name",
        "assignment__item_id",
        "preferences__choice",
        "preferences__criterion__name",
    )
    for annotator, item, choice, criterion in rows:
        if choice:
            by_criterion[criterion].append(Said(annotator, item, choice))
    if not by_criterion:
        return {"kinds": {}}
    criteria = {
        name: of_one(said) for name, said in sorted(by_criterion.items(), key=str) if name is not None
    }
    return {"kinds": {"pairwise": of_one(by_criterion.get(None, [])) | {"criteria": criteria}}}


def of_one(said: list[Said]) -> dict[str, Any]:
    """Alpha and kappas of one question's answers."""
    values: dict[str, dict[int, str]] = defaultdict(dict)
    for one in said:
        values[one.annotator][one.item] = one.value
    annotators = sorted(values)
    items = sorted({one.item for one in said})
    return {
        "alpha": _alpha(values, annotators, items),
        "level": "nominal",
        "items": len(items),
        "annotators": len(annotators),
        "pairs": [pair for a, b in combinations(annotators, 2) if (pair := _kappa(values, a, b))],
    }


def _alpha(values: dict[str, dict[int, str]], annotators: list[str], items: list[int]) -> float | None:
    codes = {category: code for code, category in enumerate(CATEGORIES)}
    table = np.full((len(annotators), len(items)), np.nan)
    column = {item: index for index, item in enumerate(items)}
    for row, annotator in enumerate(annotators):
        for item, value in values[annotator].items():
            table[row, column[item]] = codes[value]
    paired = table[:, (~np.isnan(table)).sum(axis=0) >= 2]
    if paired.size == 0:
        return None
    if len(np.unique(paired[~np.isnan(paired)])) == 1:
        return 1.0  # everybody always said the same: nothing expected by chance to compare with, and no disagreement
    return float(krippendorff.alpha(reliability_data=paired, level_of_measurement="nominal"))


def _kappa(values: dict[str, dict[int, str]], a: str, b: str) -> dict[str, Any] | None:
    both = sorted(values[a].keys() & values[b].keys())
    if not both:
        return None
    said = [values[a][item] for item in both], [values[b][item] for item in both]
    constant = len({*said[0], *said[1]}) == 1
    return {"a": a, "b": b, "kappa": None if constant else float(cohen_kappa_score(*said)), "n": len(both)}
