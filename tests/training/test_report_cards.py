"""Cards of a report that only some kinds of models have."""

from django.template.loader import render_to_string

from apps.accounts.models import Project
from apps.training.report import report_context


def test_violations_on_prefixes(project: Project) -> None:
    point = {
        "false_alarms": 4.0,
        "false_alarms_interval": [1.0, 9.0],
        "detected": 0.8,
        "before": 0.6,
        "lead": 2.0,
    }
    point |= {"detected_interval": [0.7, 0.9], "lead_interval": [1.0, 3.0], "f1": 0.85, "probability": 0.41}
    found = {
        "auc": 0.9,
        "interval": [0.8, 0.95],
        "n": 1234,
        "violating": 60,
        "reported_rate": 5.0,
        "tasks": 40,
    }
    curve = [{"seen": 1, "detected": 0.25, "violated": 0.1, "false": 0.02}]
    found |= {"rates": {"5": point}, "baselines": {"whole": point}, "curve": curve}
    context = report_context({"violations": found}, project)
    assert context["violations_chart"]["series"][0]["points"] == [[1, 0.25]]
    html = render_to_string("training/_report.html", {"project": project, **context})
    assert "1,234 held-out trajectories, 60 with a violation" in html and "0.410" in html
    assert "Baseline: learnt from whole trajectories" in html and "80.0" in html


def test_predicted_intervals_of_ratings(project: Project) -> None:
    found = {
        "intervals": [{"nominal": 0.9, "coverage": 0.845, "interval": [0.8, 0.88], "width": 0.98}],
        "spread": {"spearman": 0.35, "interval": [0.25, 0.45]},
        "n": 400,
        "tasks": 40,
    }
    scores = {"spearman": 0.4, "interval": [0.3, 0.5], "n": 90, "criteria": {}}
    page = render_to_string(
        "training/_report.html", report_context({"scores": scores, "rating_intervals": found}, project)
    )
    assert "Predicted intervals" in page and "84.5 %" in page and "0.35 <span" in page
    without = render_to_string("training/_report.html", report_context({"scores": scores}, project))
    assert "Predicted intervals" not in without


def test_certified_order_under_noise(project: Project) -> None:
    radii = [{"radius": 0.0, "accuracy": 0.92}, {"radius": 0.25, "accuracy": 0.415}]
    found = {"noise": 0.25, "samples": 64, "n": 50, "radii": radii}
    page = render_to_string("training/_report.html", report_context({"certified_order": found}, project))
    assert "Certified under noise" in page
    assert "92.0 %" in page
    assert "41.5 %" in page
    assert "Certified under noise" not in render_to_string(
        "training/_report.html", report_context({}, project)
    )


def test_zero_shot_next_to_what_comparisons_taught(project: Project) -> None:
    found = {"pairs": 40, "zero_shot": 0.625, "adapted": 0.85, "difference": 0.225, "interval": [0.1, 0.35]}
    found |= {"alpha": {"zero_shot": 0.5, "adapted": 0.71}, "is_better": True}
    page = render_to_string("training/_report.html", report_context({"zero_shot": found}, project))
    assert "62.5 %" in page and "85.0 %" in page and "Training made them better" in page
    found |= {"interval": [-0.1, 0.35], "is_better": False}
    page = render_to_string("training/_report.html", report_context({"zero_shot": found}, project))
    assert "not shown to have made them better" in page
    assert "Zero-shot" not in render_to_string("training/_report.html", report_context({}, project))


def test_attacks_before_and_after(project: Project) -> None:
    before = {"success": 0.731, "interval": [0.6, 0.8], "gain": 4.2, "n": 100, "tasks": 10, "changes": {}}
    before |= {"accuracy": 0.886, "accuracy_interval": [0.8, 0.9]}
    after = before | {
        "success": 0.0,
        "interval": None,
        "gain": 0.0,
        "accuracy": None,
        "accuracy_interval": None,
    }
    page = render_to_string(
        "training/_report.html", report_context({"attacks": {"before": before, "after": after}}, project)
    )
    assert "73.1 % <span" in page and "88.6 % <span" in page and ">0.0 %</td>" in page
    assert "Attacks that succeed" not in render_to_string(
        "training/_report.html", report_context({"attacks": None}, project)
    )
