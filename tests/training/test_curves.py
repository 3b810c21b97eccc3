"""The curves of one training run, and of several overlaid."""

from apps.training.curves import (
    MAX_POINTS,
    RunCurves,
    chart_in_words,
    curves,
    metric_names,
    overlaid_chart,
    read_metrics,
)


class TestCurves:
    def test_a_step_said_twice_counts_as_said_last(self) -> None:
        drawn = curves([{"step": 1, "loss": 3.0}, {"message": "resumed"}, {"step": 1, "loss": 2.0}])
        assert drawn["loss"]["series"] == [{"name": "training loss", "points": [[1, 2.0]]}]
        assert drawn["accuracy"]["series"] == []
        assert chart_in_words(drawn["accuracy"]) == "Accuracy by training step: no data yet"

    def test_several_objectives_have_an_accuracy_each(self) -> None:
        measured = {"loss": 0.5, "bradley_terry accuracy": 0.7, "outcome accuracy": 0.6}
        events = [{"step": 1, "validation": measured}, {"step": 2, "validation": measured}]
        names = [series_point["name"] for series_point in curves(events)["accuracy"]["series"]]
        assert names == ["bradley_terry", "outcome"]

    def test_any_logged_number_of_several_runs_is_overlaid(self) -> None:
        first = [{"step": 1, "loss": 0.7, "learning_rate": 0.1, "validation": {"accuracy": 0.5, "loss": 0.6}}]
        second = [{"step": 2, "loss": 0.6, "pairs_per_second": 9.5, "progress": {"done": 2}, "message": "x"}]
        runs = [RunCurves("run 11", 11, read_metrics(first)), RunCurves("run 12", 12, read_metrics(second))]
        assert metric_names(runs) == [
            "validation accuracy",
            "validation loss",
            "training loss",
            "comparisons per second",
            "learning rate",
        ]
        drawn = overlaid_chart(runs, "training loss")
        assert drawn["series"] == [
            {"name": "run 11", "points": [[1, 0.7]], "style": 11},
            {"name": "run 12", "points": [[2, 0.6]], "style": 12},
        ]
        assert [series["name"] for series in overlaid_chart(runs, "learning rate")["series"]] == ["run 11"]

    def test_a_long_run_is_thinned_and_ends_where_it_ended(self) -> None:
        drawn = curves({"step": step, "loss": 1 / step} for step in range(1, 5001))
        points = drawn["loss"]["series"][0]["points"]
        assert len(points) <= MAX_POINTS + 1
        assert (points[0], points[-1]) == ([1, 1.0], [5000, 1 / 5000])
