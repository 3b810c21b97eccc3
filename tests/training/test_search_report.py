"""How the report of a run shows the search for its recipe."""

from typing import Any

from django.template.loader import render_to_string

from apps.accounts.models import Project
from apps.training.report import report_context
from apps.training.search_report import search_report


def search(*values: float | None, measure: list[str] | None, **more: Any) -> dict[str, Any]:
    rows = [
        {
            "name": name,
            "value": value,
            "interval": None if value is None else [-0.001, 0.5],
            "seconds": 2.0,
            "note": "" if value is not None else "too few records",
        }
        for name, value in zip(("linear", "frozen"), values, strict=False)
    ]
    found = {"chosen": "linear", "records": 1234, "tasks": 40, "too_few": False, "seconds": 7.0}
    return {"search": found | {"measure": measure, "candidates": rows} | more}


def test_a_search_in_words_and_its_numbers_by_their_measure() -> None:
    found = search_report(search(0.38, None, measure=["steps", "first_error_accuracy"]))
    assert found is not None and found.measure == "First-error accuracy"
    assert found.sentence.startswith("Cross-validated on the 1,234 records of 40 tasks")
    assert found.sentence.endswith("“linear” was taken: the simplest within one standard error of the best.")
    assert [(row.value, row.interval, row.note, row.is_chosen) for row in found.candidates] == [
        ("38.0 %", "[\N{MINUS SIGN}0.1 %, 50.0 %]", "", True),
        ("", "", "too few records", False),
    ]
    auc = search_report(search(0.701, measure=["outcome", "auc"]))
    assert auc is not None and (auc.measure, auc.candidates[0].value) == ("AUC", "0.70")
    ranks = search_report(search(0.4, measure=["scores", "spearman"]))
    assert ranks is not None and (ranks.measure, ranks.candidates[0].value) == ("Rank correlation", "0.40")
    nothing = search_report(search(None, None, measure=None))
    assert nothing is not None and nothing.sentence.startswith("No candidate could be measured")
    assert "standard error" not in nothing.sentence
    few = search_report(search(measure=None, too_few=True))
    assert few is not None and few.sentence.endswith(
        "too few to compare recipes. “linear” was taken, the simplest one."
    )
    assert search_report({}) is None


def test_the_report_shows_the_search(project: Project) -> None:
    context = report_context(search(0.38, None, measure=["preference", "accuracy"]), project)
    page = render_to_string("training/_report.html", context | {"project": project})
    assert "Recipe search" in page and "38.0 %" in page and "too few records" in page
