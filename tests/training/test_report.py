"""What a report says in words."""

from typing import Any

import pytest
from django.template.loader import render_to_string

from apps.accounts.models import Project
from apps.training.report import report_context
from apps.training.report_charts import (
    best_of_n_chart,
    calibration_chart,
    over_optimisation_chart,
    reinforcement_charts,
)
from apps.training.report_measures import measured, measures
from apps.training.report_summary import summarize
from apps.trajectories.models import Trajectory
from tests.datasets.feedback import import_pairs, pair


def report(
    accuracy: float, interval: tuple[float, float], *, beaten: bool = True, **more: Any
) -> dict[str, Any]:
    low = 0.02 if beaten else -0.02
    rules = {
        "longer": {"accuracy": 0.52, "difference": 0.2, "interval": [0.1, 0.3]},
        "shorter": {"accuracy": 0.6, "difference": accuracy - 0.6, "interval": [low, 0.2]},
    }
    preference = {"accuracy": accuracy, "interval": list(interval), "n": 50, "baselines": rules}
    return {"preference": preference} | more


def annotators(share: float, between: tuple[float, float]) -> dict[str, Any]:
    return {"leave_one_out": share, "model": 0.7, "difference_interval": list(between), "n": 40, "tasks": 20}


def few_tasks(found: dict[str, Any]) -> dict[str, Any]:
    return found | {"preference": found["preference"] | {"tasks": 3}}


@pytest.mark.parametrize(
    ("given", "tone", "said"),
    [
        ({}, "neutral", "No held-out data"),
        (report(0.55, (0.48, 0.62)), "bad", "no better than chance"),
        (
            report(0.65, (0.6, 0.7), beaten=False),
            "bad",
            "not shown to beat a trivial baseline: “shorter wins” has 60.0 %.",
        ),
        (report(0.7, (0.6, 0.8)), "good", "beats every trivial baseline."),
        (
            report(0.7, (0.6, 0.8), annotators=annotators(0.82, (-0.2, -0.04))),
            "good",
            "less often than a single annotator does (70.0 % and 82.0 % of the same 40 choices)",
        ),
        (
            report(0.7, (0.6, 0.8), annotators=annotators(0.75, (-0.12, 0.02))),
            "good",
            "about as often as a single annotator",
        ),
        (
            report(0.7, (0.6, 0.8), annotators=annotators(0.6, (0.03, 0.17))),
            "good",
            "more often than a single annotator",
        ),
        (report(0.7, (0.6, 0.8), annotators={"leave_one_out": 0.6}), "good", "every trivial baseline."),
        (few_tasks(report(1.0, (0.7, 1.0))), "neutral", "too few tasks for a conclusion (3; at least 10"),
    ],
)
def test_the_verdict(given: dict[str, Any], tone: str, said: str) -> None:
    found = summarize(given)
    assert found.tone == tone
    assert said in found.sentence


def test_the_strongest_rule_comes_first() -> None:
    (found,) = measures(report(0.7, (0.6, 0.8)))
    assert [baseline.name for baseline in found.baselines] == ["shorter wins", "longer wins"]


OUTCOME = {
    "auc": 0.8,
    "interval": [0.7, 0.9],
    "n": 40,
    "baselines": {"longer": {"auc": 0.6, "difference": 0.2, "interval": [0.1, 0.3]}},
    "best_of_n": [{"n": n, "chosen": 0.25 * n, "random": 0.4, "best": 0.9, "tasks": 5} for n in (1, 2)],
}
STEPS = {
    "first_error_accuracy": 0.5,
    "interval": [0.4, 0.6],
    "n": 30,
    "baselines": {"first_step": {"accuracy": 0.45, "difference": 0.05, "interval": [-0.1, 0.2]}},
    "labels": {"accuracy": 0.9, "interval": [0.8, 1.0], "n": 90, "baselines": {}},
}
SCORES = {
    "spearman": 0.4,
    "interval": [0.1, 0.6],
    "n": 60,
    "baselines": {"longer": {"spearman": 0.3, "difference": 0.1, "interval": [0.02, 0.2]}},
}


def test_every_kind_of_feedback_has_its_measure() -> None:
    found = measures({"preference": None, "outcome": OUTCOME, "steps": STEPS, "scores": SCORES})
    assert [(finding.title, finding.value) for finding in found] == [
        ("Outcomes", 0.8),
        ("First errors", 0.5),
        ("Step labels", 0.9),
        ("Ratings and scores", 0.4),
    ]
    assert found[0].baselines[0].value == 0.6


def few_tasks(found: dict[str, Any]) -> dict[str, Any]:
    return found | {"preference": found["preference"] | {"tasks": 3}}


@pytest.mark.parametrize(
    ("given", "tone", "said"),
    [
        (
            {"outcome": OUTCOME},
            "good",
            "On 40 held-out trajectories the model has AUC 0.80 (95 % interval [0.70, 0.90])",
        ),
        ({"outcome": OUTCOME | {"interval": [0.45, 0.9]}}, "bad", "no better than chance"),
        ({"steps": STEPS}, "bad", "“first step” has 45.0 %"),
        ({"scores": SCORES}, "good", "Spearman's rank correlation"),
    ],
)
def test_the_verdict_rests_on_what_was_measured(given: dict[str, Any], tone: str, said: str) -> None:
    found = summarize(given)
    assert (found.tone, said in found.sentence) == (tone, True), found.sentence


def test_a_baseline_without_an_interval_is_beaten_by_its_difference() -> None:
    """Where all draws give the same there is no interval: AUC 1.00 of both is a tie, and not a win."""
    part = OUTCOME | {"auc": 1.0, "interval": None}
    for value, difference, tone in ((1.0, 0.0, "bad"), (0.0, 1.0, "good"), (0.6, None, "bad")):
        rule = {"auc": value, "difference": difference, "interval": None}
        found = summarize({"outcome": part | {"baselines": {"longer": rule}}})
        assert found.tone == tone
        assert ("beats every trivial baseline" in found.sentence) is (tone == "good")


def test_annotators_of_reports_without_their_tasks() -> None:
    known = annotators(0.6, (0.03, 0.17))
    del known["tasks"]
    assert (
        "more often than a single annotator" in summarize(report(0.7, (0.6, 0.8), annotators=known)).sentence
    )


def test_what_is_wrong_is_part_of_the_verdict() -> None:
    leak = {"name": "leak", "sentence": "The test leaks."}
    found = summarize(report(0.9, (0.8, 1.0), findings=[leak]))
    assert (found.tone, found.sentence.endswith("The test leaks.")) == ("bad", True)


def test_the_best_of_n_is_drawn_beside_chance_and_the_best() -> None:
    drawn = best_of_n_chart({"outcome": OUTCOME})
    assert drawn is not None
    assert [(series_point["name"], series_point["points"][1]) for series_point in drawn["series"]] == [
        ("highest reward", [2, 0.5]),
        ("random", [2, 0.4]),
        ("oracle", [2, 0.9]),
    ]
    assert best_of_n_chart({"outcome": OUTCOME | {"best_of_n": OUTCOME["best_of_n"][:1]}}) is None


def test_accept_and_reject_have_a_measure_with_its_threshold() -> None:
    part = {
        "f1": 0.7,
        "interval": [0.5, 0.9],
        "n": 30,
        "threshold": 0.25,
        "tasks": 12,
        "baselines": {"accept_all": {"f1": 0.6, "difference": 0.1, "interval": [0.02, 0.2]}},
    }
    (found,) = measures({"acceptance": part})
    assert (found.kind, found.name, found.shown_value) == ("acceptance", "F1", "0.70")
    assert "validation: 0.25" in found.formula
    (rule,) = found.baselines
    assert (rule.name, rule.value, rule.is_beaten) == ("accept everything", 0.6, True)


def test_gains_are_drawn_by_the_root_of_the_divergence() -> None:
    points = [
        {"n": n, "kl": kl, "reward": 0.5 * n, "gold": 0.1, "value": 0.3} for n, kl in ((1, 0.0), (2, 0.25))
    ]
    drawn = over_optimisation_chart({"outcome": OUTCOME | {"over_optimisation": {"points": points}}})
    assert drawn is not None
    assert [(series["name"], series["points"][1]) for series in drawn["series"]] == [
        ("reward", [0.5, 1.0]),
        ("outcome", [0.5, 0.1]),
    ]
    assert over_optimisation_chart({"outcome": OUTCOME}) is None


def test_folds_stand_in_where_no_test_split_is() -> None:
    pooled = report(0.7, (0.6, 0.8))["preference"]
    assert measured({"preference": None, "pooled": {"preference": pooled, "folds": 5}}) == pooled
    assert measured(None) is None


def test_the_calibration_is_drawn_beside_the_diagonal() -> None:
    drawn = calibration_chart({"calibration": {"curve": [[0.6, 0.5, 10], [0.9, 0.8, 20]]}})
    assert drawn is not None
    assert [series["points"] for series in drawn["series"]] == [
        [[0.6, 0.5], [0.9, 0.8]],
        [[0.5, 0.5], [1, 1]],
    ]
    assert drawn["series"][0]["counts"] == [10, 20]
    assert drawn["series"][0]["intervals"][1][1:] == pytest.approx([0.584, 0.919], abs=1e-3)
    assert calibration_chart({"calibration": None}) is None


def test_single_trajectories_that_are_most_wrong_have_links(project: Project, known_hash: str) -> None:
    def wrong(said: Any, given: Any, about: str | None = None, hash_: str = "gone") -> dict[str, Any]:
        side = {"id": None, "hash": hash_, "raw": 0.5}
        return {"task": "t", "trajectory": side, "about": about, "said": said, "given": given}

    found = report_context(
        {
            "outcome": OUTCOME | {"mistakes": [wrong(True, -1.0, hash_=known_hash), wrong(False, 2.0)]},
            "steps": STEPS | {"mistakes": [wrong(3, None), wrong(None, 2)]},
            "scores": SCORES | {"criteria": {"polite": {"mistakes": [wrong(2.0, 4.5, "polite")]}}},
        },
        project,
    )["measures"]
    words = {finding.kind: [each.words for each in finding.mistakes] for finding in reversed(found)}
    assert words == {
        "outcome": ["succeeded, reward \u22121.00", "failed, reward 2.00"],
        "steps": ["first error in agent step 3, predicted: no error", "no error, predicted: step 2"],
        "scores": ["polite 2.00, predicted 4.50"],
    }
    assert [mistake.key is None for mistake in found[0].mistakes] == [False, True]


@pytest.fixture
def known_hash(project: Project) -> str:
    import_pairs(project, [pair("t")])
    return str(Trajectory.objects.filter(project=project).values_list("content_hash", flat=True)[0])


JUDGED = {
    "position": {
        "n": 40,
        "consistency": 0.95,
        "first": 0.525,
        "formed": 1.0,
        "accuracy": {"one_order": 0.8, "both_orders": 0.85},
    },
    "train": {
        "reasons": 12,
        "examples": 90,
        "reinforced": [
            {
                "step": float(step),
                "right": 0.6 + step / 10,
                "agrees": 0.7,
                "formed": 1.0,
                "reward": 1.5,
                "entropy": 0.5,
                "length": 20.0 - step,
                "clipped": 0.0,
                "divergence": 0.01 * step,
            }
            for step in (1, 2, 3)
        ],
    },
}


@pytest.mark.django_db
def test_a_judge_that_writes_is_asked_in_both_orders_and_drawn(project: Project) -> None:
    found = report_context(report(0.85, (0.8, 0.9), **JUDGED), project)
    assert found["reinforced"]["lengths"]["series"] == [
        {"name": "tokens", "points": [[1.0, 19.0], [2.0, 18.0], [3.0, 17.0]]}
    ]
    assert found["reinforced"]["rights"]["series"][0]["name"] == "correct"
    page = render_to_string("training/_report.html", found | {"project": project})
    assert "Each of 40 pairs was compared twice" in page and "52.5 %" in page and "85.0 %" in page
    assert page.count('class="chart is-small"') == 3 and 'id="entropies-data"' in page
    assert reinforcement_charts(report(0.7, (0.6, 0.8))) == {}


@pytest.mark.django_db
def test_a_judge_that_writes_is_shown_by_comparisons_and_by_single_scores(project: Project) -> None:
    given = report(0.85, (0.8, 0.9))
    alone = {"accuracy": 0.6, "interval": [0.52, 0.68], "n": 50, "tasks": 25, "baselines": {}}
    together = given["preference"] | {"consistency": 0.9, "consistency_interval": [0.82, 0.95]}
    given["generative"] = {
        "pairwise": together,
        "pointwise": alone,
        "difference": 0.25,
        "interval": [0.1, 0.4],
    }
    first, second = measures(given)
    assert (
        (first.value, second.value) == (0.85, 0.6)
        and "/compare" in first.formula
        and "/score" in second.formula
    )
    sentence = "by single scores, which trainers get, it is correct on 60.0 % of 50 (95 % interval [52.0 %, 68.0 %])."
    assert sentence in summarize(given).sentence and summarize(given).tone == "good"
    page = render_to_string("training/_report.html", report_context(given, project) | {"project": project})
    assert "Both orders agree on 90.0 %" in page and "[82.0 %, 95.0 %]" in page
    assert "Judged together less by single scores: 25.0 points" in page


def test_corrections_are_counted_with_what_was_left_out(project: Project) -> None:
    given = report(0.65, (0.6, 0.7))
    given["train"] = {"corrections": {"pairs": 1200, "skipped": {"that another record makes too": 3}}}
    page = render_to_string("training/_report.html", report_context(given, project))
    assert "1,200 step pairs" in page and "left out: 3 that another record makes too" in page
    given["train"] = {"corrections": None}
    assert "step pairs" not in render_to_string("training/_report.html", report_context(given, project))


def test_worse_and_not_shown_look_different(project: Project) -> None:
    given = report(0.65, (0.6, 0.7), beaten=False)
    given["preference"]["baselines"]["longest"] = {
        "accuracy": 0.8,
        "difference": -0.15,
        "interval": [-0.3, -0.05],
    }
    page = render_to_string("training/_report.html", report_context(given, project))
    assert page.count('aria-label="better than the baseline"') == 1
    assert page.count('aria-label="worse than the baseline"') == 1 and page.count("#cross") == 1
    assert page.count(">not shown</span>") == 1
    page = render_to_string("training/_report.html", report_context(few_tasks(given), project))
    assert "than the baseline" not in page and page.count(">too few tasks</span>") == 3


def with_linear(linear: float, other: float, **more: Any) -> str:
    """The sentence of a model that is not shown to beat a linear one nor a rule."""
    found = report(0.65, (0.6, 0.7), **more)
    unbeaten = {"difference": 0.0, "interval": [-0.1, 0.1]}
    found["preference"]["baselines"] = {
        "longer": unbeaten | {"accuracy": other},
        "linear": unbeaten | {"accuracy": linear},
    }
    return summarize(found).sentence


def test_a_linear_model_is_advised_only_where_it_is_the_best_baseline() -> None:
    said = with_linear(0.66, 0.5)
    assert "baseline: “linear model” has 66.0 %. The linear model is simpler and faster" in said
    assert said.endswith("deploy that, or let “auto” choose.")
    assert with_linear(0.66, 0.5, search={"chosen": "frozen"}).endswith("deploy that.")
    assert "simpler" not in with_linear(0.6, 0.64)


def with_best(key: str, values: dict[str, float], *, beaten: bool = False) -> dict[str, Any]:
    """A report with a baseline that was chosen in training, and one that the model is not shown to beat."""
    found = report(0.65, (0.6, 0.7))
    unbeaten, below = ({"difference": 0.05, "interval": [low, 0.1]} for low in (-0.01, 0.01))
    rules = {name: unbeaten | {"accuracy": 0.6} for name in values}
    rules[key] = (below if beaten else unbeaten) | {"accuracy": 0.58}
    best = {"name": key, "value": values[key], "n": 1234, "tasks": 40, "values": values}
    found["preference"] |= {"baselines": rules, "best_baseline": best}
    return found


def test_the_best_baseline_is_the_one_chosen_in_training() -> None:
    """Another one is higher on the held-out data."""
    said = summarize(with_best("linear", {"linear": 0.63, "longer": 0.55}))
    assert said.tone == "bad"
    assert (
        "not shown to beat the best baseline: “linear model”, chosen by cross-validation within the training data, has "
        "58.0 %. The linear model is simpler" in said.sentence
    )
    said = summarize(with_best("linear", {"linear": 0.63, "longer": 0.55}, beaten=True))
    assert said.tone == "neutral"
    assert "It beats the best baseline: “linear model”" in said.sentence
    assert said.sentence.endswith("It is not shown to beat another: “longer wins” has 60.0 %.")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"structure": 0.6, "longer": 0.5}, "channels = [“structure”, “overlap”], and deploy that."),
        ({"ngrams": 0.6, "longer": 0.5}, "channels = [“words”, “characters”], which read about the same"),
        ({"shorter": 0.6, "linear": 0.5}, "deploy a component “token_penalty” instead of the model."),
        ({"fewer_steps": 0.6}, "deploy a component “step_penalty” instead of the model."),
        (
            {"neighbours": 0.6, "linear": 0.58, "longer": 0.5},
            "has 58.0 %. Of what can be deployed, “linear model” was the best there. The linear model is simpler",
        ),
        ({"neighbours": 0.6}, "has 58.0 %."),
        ({"longer": 0.6, "linear": 0.6}, "has 58.0 %. A rule does as well"),
    ],
)
def test_what_to_deploy_instead(values: dict[str, float], said: str) -> None:
    key = next(iter(values))
    stored = dict(sorted(values.items()))  # as a database returns them
    assert said in summarize(with_best(key, stored)).sentence


def test_the_page_marks_the_best_baseline(project: Project) -> None:
    given = with_best("ngrams", {"ngrams": 0.63, "longer": 0.55})
    page = render_to_string("training/_report.html", report_context(given, project))
    assert page.count(">chosen in training</span>") == 1
    assert "Baseline: n-gram regression <span" in page and "(1,234 records)" in page


def test_length_control_of_outcomes_and_scores(project: Project) -> None:
    controlled = {"auc": 0.61, "interval": [0.5, 0.7], "longer": 0.4, "shorter": 0.82}
    given = {
        "outcome": OUTCOME | {"length_controlled": controlled},
        "scores": {
            "spearman": 0.4,
            "interval": [0.3, 0.5],
            "n": 90,
            "criteria": {},
            "length_controlled": {"spearman": 0.11, "interval": [-0.1, 0.3]},
        },
    }
    page = render_to_string("training/_report.html", report_context(given, project))
    assert page.count("This model, length-controlled") == 2
    assert ">0.61 <" in page and ">0.11 <" in page


@pytest.mark.parametrize(("low", "is_beaten"), [(0.0, False), (0.0004, False), (0.0006, True)])
def test_a_bound_that_is_shown_as_zero_is_zero(low: float, is_beaten: bool) -> None:
    found = report(0.65, (0.6, 0.7))
    found["preference"]["baselines"] = {
        "longer": {"accuracy": 0.61, "difference": 0.04, "interval": [low, 0.08]}
    }
    assert measures(found)[0].baselines[0].is_beaten is is_beaten
