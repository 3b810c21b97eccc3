"""What each channel of a model brings, as a report shows it."""

from typing import Any

import pytest
from django.template.loader import render_to_string

from apps.accounts.models import Project
from apps.training.ablation_report import ablation_report
from apps.training.report import report_context
from tests.training.test_report import report


def ablation(part: str, *, missing: tuple[str, ...] = ()) -> dict[str, Any]:
    helps, harms, unclear = ([0.01, 0.06], [-0.08, -0.01], [-0.02, 0.05])
    channels = {
        name: {
            "without": {"value": 0.6, "difference": 0.03, "interval": between} if between else None,
            "alone": {"value": 0.58, "difference": 0.05, "interval": [0.0, 0.1]},
        }
        for name, between in zip(
            ("overlap", "characters", "words", "embedding"), (unclear, harms, helps, None), strict=True
        )
    }
    values = {"value": 0.63, "interval": [0.6, 0.66], "n": 280, "tasks": 90, "channels": channels}
    return {"seconds": 9.7, "examples": 1234, "missing": list(missing), "parts": {part: values}}


def test_an_ablation_says_what_each_channel_brings(project: Project) -> None:
    found = ablation_report({"ablation": ablation("preference")})
    assert found is not None
    (table,) = found.tables
    assert (table.value, table.interval) == ("63.0 %", "[60.0 %, 66.0 %]")
    assert [(row.name, row.tone) for row in table.rows] == [
        ("Words", "good"),
        ("Characters", "bad"),
        ("Overlap with the context", "neutral"),
        ("Embedding", "neutral"),
    ]
    assert (table.rows[0].without, table.rows[0].brings, table.rows[0].alone) == (
        "60.0 %",
        "3.0 points",
        "58.0 %",
    )
    assert (table.rows[3].without, table.rows[3].interval) == ("–", "")
    given = report(0.63, (0.6, 0.66), ablation=ablation("preference"))
    page = render_to_string("training/_report.html", report_context(given, project))
    assert "to 1,234 training examples again" in page and "One split" in page
    assert page.count('aria-label="shown to help"') == page.count('aria-label="shown to harm"') == 1


def test_an_ablation_of_another_measure_and_what_is_missing(project: Project) -> None:
    found = ablation_report({"ablation": ablation("outcome", missing=("alone words",))})
    assert found is not None
    assert (found.tables[0].measure, found.tables[0].value) == ("AUC", "0.63")
    assert found.sentence.endswith("It took 10 s. Not fitted in that time: alone words.")
    assert ablation_report({"ablation": None}) is None is ablation_report(None)
    page = render_to_string("training/_report.html", report_context(report(0.7, (0.6, 0.8)), project))
    assert "Ablation" not in page


@pytest.mark.parametrize(
    ("prior", "said"),
    [
        (
            {"factor": 0.5, "losses": {"0": 0.66, "0.25": 0.655, "0.5": 0.641, "1": 0.7}},
            "The weights of the parent desk/first@1 times 0.5 are the mean of the prior, by the loss on held-out tasks "
            "of the training split: 0.6600 for 0, 0.6550 for 0.25, 0.6410 for 0.5, 0.7000 for 1 times the weights.",
        ),
        ({"factor": 0.0, "losses": {"0": 0.6, "1": 0.7}}, "were not used, by the loss on held-out tasks"),
        (
            {"factor": 0.0, "losses": {}},
            "were not used: there are too few tasks to choose how much of them to use.",
        ),
    ],
)
def test_a_report_says_how_much_of_a_parent_is_used(
    project: Project, prior: dict[str, Any], said: str
) -> None:
    trained = {"prior": prior, "parent": {"name": "desk/first@1"}}
    given = report(0.63, (0.6, 0.66), train=trained)
    assert said in render_to_string("training/_report.html", report_context(given, project))
    given["ablation"] = ablation("preference")
    brings = {"value": 0.61, "difference": 0.02, "interval": [0.01, 0.03]}
    given["ablation"]["parts"]["preference"]["parent"] = brings
    found = ablation_report(given)
    assert found is not None and said in found.prior
    first = found.tables[0].rows[0]
    assert (first.name, first.without, first.brings, first.alone) == (
        "Parent model",
        "61.0 %",
        "2.0 points",
        "–",
    )
