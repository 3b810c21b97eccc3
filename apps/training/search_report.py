"""The search for a recipe of a training run, as its report shows it."""

from dataclasses import dataclass
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma

from apps.core.number_format import decimal, decimal_interval, percent, percent_interval

# By the key of a report: its name, and whether it is a share, shown in percent.
_MEASURES = {
    "accuracy": ("Accuracy", True),
    "first_error_accuracy": ("First-error accuracy", True),
    "auc": ("AUC", False),
    "spearman": ("Rank correlation", False),
}


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """value, interval: as they are shown; empty where the candidate was not measured, and note says why."""

    name: str
    is_chosen: bool
    value: str
    interval: str
    note: str
    seconds: float


@dataclass(frozen=True, slots=True)
class SearchReport:
    """sentence: what was compared, and why the chosen recipe was taken. measure: the name of what is compared."""

    sentence: str
    measure: str
    candidates: list[CandidateRow]


def search_report(report: dict[str, Any] | None) -> SearchReport | None:
    """None for a run without a search."""
    search = (report or {}).get("search")
    if not search:
        return None
    key = (search.get("measure") or ["", ""])[1]
    name, is_share = _MEASURES.get(key, ("Result", False))
    return SearchReport(
        _sentence(search), name, [_row(row, search, is_share) for row in search["candidates"]]
    )


def _sentence(search: dict[str, Any]) -> str:
    data = f"{intcomma(search['records'])} records of {intcomma(search['tasks'])} tasks"
    splits = "of the training and validation splits"
    chosen = f"“{search['chosen']}” was taken"
    if search.get("too_few"):
        return f"{data} are too few to compare recipes. {chosen}, the simplest one."
    if all(row["value"] is None for row in search["candidates"]):
        return f"No candidate could be measured on the {data} {splits}. {chosen}, the first one."
    return (
        f"Cross-validated on the {data} {splits}, in {search['seconds']:.0f} s. {chosen}: "
        "the simplest within one standard error of the best."
    )


def _row(row: dict[str, Any], search: dict[str, Any], is_share: bool) -> CandidateRow:
    value, interval = row["value"], row.get("interval")
    shown, shown_interval = (percent, percent_interval) if is_share else (decimal, decimal_interval)
    return CandidateRow(
        row["name"],
        row["name"] == search["chosen"],
        "" if value is None else shown(value),
        shown_interval(interval) if interval else "",
        row.get("note", ""),
        row["seconds"],
    )
