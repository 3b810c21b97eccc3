"""Outcomes, step labels, scores, distances and what is wrong with a model: numbers worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from workers.evaluate.comparison import reward_distance
from workers.evaluate.diagnostics import findings, with_leaks
from workers.evaluate.first_errors import best_threshold, first_below, process_bench_f1
from workers.evaluate.outcome import best_of_n, outcome_report
from workers.evaluate.predictions import ScoredRecord, expand_rankings
from workers.evaluate.ranks import auc, spearman
from workers.evaluate.scores import scores_report
from workers.evaluate.steps import steps_report
from workers.schema import (
    OutcomeRecord,
    RankingRecord,
    RatingRecord,
    ScoreRecord,
    StepLabelRecord,
    Trajectory,
)


def scored(raw: float, **fields) -> SimpleNamespace:
    values = {"labels": None, "criteria": {}, "step_rewards": (raw,), "dropped": (), "truncated": False}
    return SimpleNamespace(raw=raw, **(values | fields))


class TestRanks:
    def test_auc_is_scikit_learns(self) -> None:
        dice = np.random.default_rng(0)
        scores = dice.integers(0, 6, 40).astype(float)  # with ties
        positive = dice.random(40) < 0.4
        weights = dice.integers(0, 3, (3, 40)).astype(float)
        expected = [roc_auc_score(positive, scores, sample_weight=weight) for weight in weights]
        assert auc(scores, positive, weights).tolist() == pytest.approx(expected)

    def test_spearman_is_scipys(self) -> None:
        dice = np.random.default_rng(0)
        one, other = dice.integers(0, 5, 30).astype(float), dice.normal(size=30)
        assert spearman(one, other) == pytest.approx(spearmanr(one, other).statistic)
        assert spearman(one * 0, other) is None


class TestOutcome:
    @pytest.fixture
    def scored_records(self, make_trajectory):
        def make(*rows) -> list[ScoredRecord]:
            """(task, text, success, reward)"""
            return [
                ScoredRecord(
                    OutcomeRecord(trajectory=make_trajectory(text, task=task), success=success),
                    (scored(reward),),
                )
                for task, text, success, reward in rows
            ]

        return make

    def test_auc_beside_rules(self, scored_records) -> None:
        rows = [
            ("t", "good " * 9, True, 3.0),
            ("t", "bad", False, 1.0),
            ("u", "good " * 5, True, 2.0),
            ("u", "bad " * 7, False, 2.5),
        ]
        report = outcome_report(scored_records(*rows))
        assert report["auc"] == 0.75
        assert (report["n"], report["successes"]) == (4, 2)
        assert report["within_task"]["accuracy"] == 0.5
        assert report["baselines"]["longer"]["auc"] == 0.75  # lengths 45, 3, 25, 28
        assert report["baselines"]["shorter"]["difference"] == 0.5
        wrong = [(mistake["task"], mistake["said"], mistake["given"]) for mistake in report["mistakes"]]
        # Half succeeded: the better half should be they.
        assert wrong == [("u", True, 2.0), ("u", False, 2.5)]

    def test_length_control_counts_longer_and_shorter_successes_alike(self, scored_records) -> None:
        """Lengths 45, 25 of successes and 3, 28 of failures: three pairs with the longer success, one without."""
        rows = [
            ("t", "good " * 9, True, 3.0),
            ("t", "bad", False, 1.0),
            ("u", "good " * 5, True, 2.0),
            ("u", "bad " * 7, False, 2.5),
        ]
        found = outcome_report(scored_records(*rows))["length_controlled"]
        assert (found["longer"], found["shorter"], found["auc"]) == (1.0, 0.0, 0.5)
        assert outcome_report(scored_records(*rows[:2]))["length_controlled"] is None

    def test_without_both_outcomes_there_is_nothing(self, scored_records) -> None:
        assert outcome_report(scored_records(("t", "good", True, 1.0))) is None
        assert outcome_report([]) is None

    def test_best_of_n_over_all_sets(self) -> None:
        """Three runs, values 0, 1, 0 by rising reward: the best of one pair is the middle one, of two the top one."""
        curve = best_of_n(np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 0.0]), ["t"] * 3)
        assert [round(point["chosen"], 6) for point in curve] == pytest.approx([1 / 3, 1 / 3, 0], abs=1e-6)
        assert [point["random"] for point in curve] == pytest.approx([1 / 3] * 3)
        assert [round(point["best"], 6) for point in curve] == pytest.approx([1 / 3, 2 / 3, 1], abs=1e-6)

    def test_best_of_n_with_equal_rewards_is_chance(self) -> None:
        curve = best_of_n(np.zeros(4), np.array([0.0, 1.0, 0.0, 1.0]), ["t"] * 4)
        assert [point["chosen"] for point in curve] == pytest.approx([0.5] * 4)

    def test_only_tasks_with_enough_runs_are_counted(self) -> None:
        curve = best_of_n(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0]), ["t", "t", "u"])
        assert [point["tasks"] for point in curve] == [2, 1]
        assert curve[1]["chosen"] == 1.0


class TestSteps:
    @pytest.fixture
    def scored_records(self, make_trajectory):
        def make(good: list[float], first: int | None, *, task: str = "t", **fields) -> ScoredRecord:
            """good: the probability that each step is."""
            one = make_trajectory("good", task=task)
            longer = Trajectory(steps=(one.steps[0], *[one.steps[1]] * len(good)), task=one.task)
            record = StepLabelRecord(
                trajectory=longer, annotator="ann", has_first_error=True, first_error=first, **fields
            )
            return ScoredRecord(record, (scored(0.0, labels=tuple({"good": p, "bad": 1 - p} for p in good)),))

        return make

    def test_f1_is_the_harmonic_mean_of_both_sides(self) -> None:
        """Two errors, one found; three without, two left alone: 2 * 1/2 * 2/3 / (1/2 + 2/3)."""
        found = [(1, 1), (2, 0), (None, None), (None, None), (None, 3)]
        assert process_bench_f1(found) == pytest.approx(2 * 0.5 * (2 / 3) / (0.5 + 2 / 3))
        assert process_bench_f1([(1, 0), (None, 2)]) == 0.0
        assert process_bench_f1(found[:2]) is None

    def test_the_first_below(self) -> None:
        assert first_below([0.9, 0.4, 0.1], 0.5) == 1
        assert first_below([0.9, 0.8], 0.5) is None

    def test_the_threshold_is_that_of_validation(self, scored_records) -> None:
        known = [
            scored_records([0.9, 0.6, 0.9], None),
            scored_records([0.9, 0.5, 0.9], 1),
            scored_records([0.8, 0.9, 0.4], 2),
        ]
        assert 0.5 < best_threshold(known) <= 0.6
        assert best_threshold([]) == 0.5

    def test_the_report(self, scored_records) -> None:
        known = [scored_records([0.9, 0.8], None), scored_records([0.9, 0.2], 1)]
        test = [
            scored_records([0.9, 0.1, 0.9], 1, task="a"),
            scored_records([0.9, 0.9], None, task="b"),
            scored_records([0.1], None, task="c"),
        ]
        report = steps_report(test, known)
        assert (report["first_error_accuracy"], report["n"], report["errors"]) == (pytest.approx(2 / 3), 3, 1)
        assert report["f1"] == pytest.approx(2 * 1 * 0.5 / 1.5)
        assert report["baselines"]["no_error"]["accuracy"] == pytest.approx(2 / 3)
        assert report["baselines"]["first_step"]["accuracy"] == 0.0
        assert [(mistake["task"], mistake["said"], mistake["given"]) for mistake in report["mistakes"]] == [
            ("c", None, 0)
        ]
        assert report["labels"]["n"] == 2 + 2 + 1
        assert report["labels"]["accuracy"] == pytest.approx(4 / 5)
        assert report["labels"]["baselines"]["majority"]["accuracy"] == pytest.approx(4 / 5)

    def test_the_weakest_step_of_those_with_an_error(self, scored_records) -> None:
        test = [
            scored_records([0.9, 0.1, 0.3], 1, task="a"),
            scored_records([0.9, 0.8, 0.3], 1, task="b"),
            scored_records([0.9, 0.8, 0.7], None, task="c"),
        ]
        assert [(mistake["said"], mistake["given"]) for mistake in steps_report(test, [])["mistakes"]] == [
            (1, 2)
        ]
        located = steps_report(test, [])["located"]
        assert (located["accuracy"], located["n"]) == (0.5, 2)
        rules = {name: one["accuracy"] for name, one in located["baselines"].items()}
        assert rules == {"first_step": 0.0, "last_step": 0.0, "most_common": 1.0}
        assert steps_report([scored_records([0.9, 0.8], None)], [])["located"] is None

    def test_without_labels_there_is_nothing(self) -> None:
        assert steps_report([], []) is None


class TestScores:
    def test_by_criterion_and_by_reward(self, make_trajectory) -> None:
        scored_records = []
        for place, (value, raw, polite) in enumerate(
            [(1.0, 3.0, 0.1), (3.0, 2.0, 0.2), (5.0, 1.0, 0.3), (5.0, 0.5, 0.4)]
        ):
            one = make_trajectory(f"good {'sent ' * place}", task=f"t{place}")
            score = ScoreRecord(
                trajectory=one, annotator="ann", criterion="polite", value=value, scale=(1.0, 5.0)
            )
            rating = RatingRecord(trajectory=one, annotator="ann", rating=value, scale=(1.0, 5.0))
            scored_records += [
                ScoredRecord(record, (scored(raw, criteria={"polite": polite}),))
                for record in (score, rating)
            ]
        report = scores_report(scored_records)
        expected = spearmanr([0.1, 0.2, 0.3, 0.4], [1, 3, 5, 5]).statistic
        assert report["criteria"]["polite"]["spearman"] == pytest.approx(expected)
        assert report["criteria"]["rating"]["spearman"] == pytest.approx(-expected)
        assert report["spearman"] == pytest.approx(0.0)
        assert report["baselines"]["longer"]["spearman"] == pytest.approx(expected)
        wrong = report["criteria"]["rating"]["mistakes"]
        assert [
            (mistake["task"], mistake["about"], mistake["said"], mistake["given"]) for mistake in wrong
        ] == [
            ("t0", "rating", 1.0, 3.0),
            ("t3", "rating", 5.0, 0.5),
            ("t2", "rating", 5.0, 1.0),
        ]

    def test_length_control_is_the_partial_rank_correlation(self, make_trajectory) -> None:
        dice = np.random.default_rng(0)
        lengths = dice.permutation(20)
        ratings, raw = lengths + dice.integers(0, 12, 20), lengths + dice.integers(0, 12, 20)
        records = [
            ScoredRecord(
                RatingRecord(
                    trajectory=make_trajectory("x" * int(length), task=f"t{place}"),
                    annotator="ann",
                    rating=float(rating),
                    scale=(0.0, 40.0),
                ),
                (scored(float(value)),),
            )
            for place, (length, rating, value) in enumerate(zip(lengths, ratings, raw, strict=True))
        ]
        inverse = np.linalg.inv(spearmanr(np.stack([raw, ratings, lengths], 1)).statistic)
        found = scores_report(records)["length_controlled"]
        assert found["spearman"] == pytest.approx(-inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1]))
        assert found["interval"][0] < found["spearman"] < found["interval"][1]
        of_length = [
            ScoredRecord(each.record, (scored(float(n)),)) for each, n in zip(records, lengths, strict=True)
        ]
        assert scores_report(of_length)["length_controlled"]["spearman"] is None

    def test_what_people_said_counts_before_what_judges_said(self, make_trajectory) -> None:
        scored_records = []
        for place in range(4):
            one = make_trajectory(f"good {'sent ' * place}", task=f"t{place}")
            said = {"trajectory": one, "criterion": "polite", "scale": (1.0, 5.0)}
            records = [ScoreRecord(annotator="metric", origin="judge", value=5.0 - place, **said)]
            if place != 3:
                records.append(ScoreRecord(annotator="ann", value=1.0 + place, **said))
            scored_records += [
                ScoredRecord(record, (scored(0.0, criteria={"polite": float(place)}),)) for record in records
            ]
        report = scores_report(scored_records)
        # People's 1, 2, 3 on three of them, and only a judge's 2 on the last.
        assert report["spearman"] == pytest.approx(spearmanr([0, 1, 2, 3], [1, 2, 3, 2]).statistic)
        assert (report["n"], report["by_judges"]) == (4, 1)

    def test_without_scores_there_is_nothing(self) -> None:
        assert scores_report([]) is None


def test_a_ranking_is_its_pairs(make_trajectory) -> None:
    sides = tuple(make_trajectory(f"good {word}") for word in ("sent", "lost", "yes"))
    record = RankingRecord(trajectories=sides, ranks=(2, 1, 2), annotator="ann")
    pairs = expand_rankings([ScoredRecord(record, (scored(1.0), scored(2.0), scored(3.0)))])
    assert [(pair.record.choice, [score.raw for score in pair.scores]) for pair in pairs] == [
        ("b", [1.0, 2.0]),
        ("tie", [1.0, 3.0]),
        ("a", [2.0, 3.0]),
    ]


class TestDistance:
    @pytest.fixture
    def scored_records(self, make_trajectory):
        def make(rewards) -> list[ScoredRecord]:
            return [
                ScoredRecord(
                    OutcomeRecord(trajectory=make_trajectory(f"good {place}", task=task), success=True),
                    (scored(raw),),
                )
                for place, (task, raw) in enumerate(rewards)
            ]

        return make

    def test_scale_and_a_constant_for_each_task_do_not_count(self, scored_records) -> None:
        ours = scored_records([("t", 1.0), ("t", 2.0), ("u", 5.0), ("u", 3.0)])
        same = scored_records([("t", 12.0), ("t", 14.0), ("u", 100.0), ("u", 96.0)])
        opposite = scored_records([("t", 2.0), ("t", 1.0), ("u", 3.0), ("u", 5.0)])
        assert reward_distance(ours, same) == pytest.approx(0.0, abs=1e-7)
        assert reward_distance(ours, opposite) == pytest.approx(1.0)

    def test_by_hand(self, scored_records) -> None:
        """Centred (-1, 1) and (0, 0) against (-1, 1) and (-1, 1): rho = 1 / sqrt 2."""
        ours = scored_records([("t", 0.0), ("t", 2.0), ("u", 1.0), ("u", 1.0)])
        theirs = scored_records([("t", 0.0), ("t", 2.0), ("u", 0.0), ("u", 2.0)])
        assert reward_distance(ours, theirs) == pytest.approx(np.sqrt((1 - 1 / np.sqrt(2)) / 2))

    def test_one_trajectory_a_task_says_nothing(self, scored_records) -> None:
        one = scored_records([("t", 1.0), ("u", 2.0)])
        assert reward_distance(one, one) is None


class TestFindings:
    GOOD = {"preference": {"interval": [0.6, 0.8], "baselines": {"longer": {"interval": [0.1, 0.2]}}}}

    def names(self, report: dict) -> list[str]:
        return [finding["name"] for finding in findings(report)]

    def test_nothing_is_wrong_with_a_good_model(self) -> None:
        assert self.names(self.GOOD | {"length_correlation": 0.9}) == []

    def test_a_model_of_length(self) -> None:
        rule = {"longer": {"interval": [-0.1, 0.1]}}
        report = {"preference": {"interval": [0.6, 0.8], "baselines": rule}, "length_correlation": 0.97}
        assert self.names(report) == ["length"]
        assert "0.97" in findings(report)[0]["sentence"]
        assert self.names(report | {"length_correlation": 0.5}) == []

    def test_chance_and_worse(self) -> None:
        assert self.names({"preference": {"interval": [0.45, 0.6]}}) == ["chance"]
        assert self.names({"preference": {"interval": [0.3, 0.45]}}) == ["worse_than_chance"]

    @pytest.mark.parametrize(
        "part",
        [
            {"outcome": {"interval": [0.45, 0.6]}},
            {"scores": {"interval": [-0.1, 0.2]}},
            {"steps": {"baselines": {"most_common": {"interval": [-0.1, 0.2]}}}},
            {"steps": {"labels": {"baselines": {"majority": {"interval": [0.0, 0.2]}}}}},
        ],
    )
    def test_chance_on_other_feedback(self, part: dict) -> None:
        (found,) = findings(self.GOOD | part)
        assert (found["name"], found["kind"]) == ("chance", next(iter(part)))

    def test_a_model_of_length_without_comparisons(self) -> None:
        outcome = {"interval": [0.6, 0.8], "baselines": {"shorter": {"interval": [-0.1, 0.1]}}}
        assert self.names({"outcome": outcome, "length_correlation": -0.9}) == ["length"]
        beaten = outcome | {"baselines": {"shorter": {"interval": [0.1, 0.2]}}}
        assert self.names({"outcome": beaten, "length_correlation": -0.9}) == []

    def test_a_leak(self) -> None:
        leaks = {"tasks": [], "near_copies": 3, "of": 100, "pairs": []}
        assert self.names(with_leaks(self.GOOD, leaks)) == ["leak"]
        assert self.names(with_leaks(self.GOOD, leaks | {"near_copies": 1})) == []
        assert self.names(with_leaks(self.GOOD, leaks | {"near_copies": 0, "tasks": ["t"]})) == ["leak"]

    def test_unknown_training_data(self) -> None:
        (found,) = with_leaks(self.GOOD, {"unknown": ["p/bought@1"]})["findings"]
        assert found["name"] == "unchecked"
        assert found["sentence"].startswith("The training data of p/bought@1 is unknown")

    def test_what_did_not_fit(self) -> None:
        assert self.names({"truncated": {"n": 20, "of": 100}}) == ["truncated"]
        assert self.names({"truncated": {"n": 5, "of": 100}}) == []
