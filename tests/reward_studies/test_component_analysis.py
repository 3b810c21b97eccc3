"""What a reward is made of: against NumPy and SciPy, and on rewards whose faults are known."""

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from apps.reward_studies.analysis_report import (
    AnalysedReward,
    ProbedTrajectory,
    StudiedTrajectory,
    analysis_report,
)
from apps.reward_studies.component_analysis import (
    correlations,
    probe_gain,
    rank_correlation,
    sensitivity,
    step_conflicts,
    task_bootstrap,
    variance_shares,
)
from apps.reward_studies.text_features import text_features
from workers import schema

RANDOM = np.random.default_rng(5)
PARTS = RANDOM.normal(size=(60, 3)) * [2.0, 1.0, 0.5]
TASKS = np.repeat(np.arange(20), 3)


def test_shares_are_covariances_with_the_sum() -> None:
    total = PARTS.sum(axis=1)
    expected = [np.cov(column, total, bias=True)[0, 1] / total.var() for column in PARTS.T]
    assert variance_shares(PARTS) == pytest.approx(expected)
    assert variance_shares(PARTS).sum() == pytest.approx(1)
    assert variance_shares(np.ones((4, 2))).tolist() == [0, 0]
    against = np.stack([PARTS[:, 0], -0.5 * PARTS[:, 0]], axis=1)
    assert variance_shares(against) == pytest.approx([2, -1])


def test_correlations_agree_with_numpy_and_scipy() -> None:
    assert np.array(correlations(PARTS)) == pytest.approx(np.corrcoef(PARTS.T))
    with_constant = correlations(np.column_stack([PARTS[:, 0], np.ones(60)]))
    assert with_constant == [[pytest.approx(1), None], [None, None]]
    tied = np.round(PARTS[:, 0])
    assert rank_correlation(tied, PARTS[:, 1]) == pytest.approx(spearmanr(tied, PARTS[:, 1]).statistic)
    assert rank_correlation(np.ones(5), np.arange(5.0)) is None


def test_sensitivity_agrees_with_scipy_and_with_the_best_of_each_task() -> None:
    without = sensitivity(PARTS, TASKS)[0][0]
    total, rest = PARTS.sum(axis=1), PARTS[:, 1:].sum(axis=1)
    assert without["tau"] == pytest.approx(kendalltau(total, rest).statistic)
    best = [total[rows].argmax() != rest[rows].argmax() for rows in np.arange(60).reshape(20, 3)]
    assert without["best_changed"] == pytest.approx(np.mean(best))
    alone = sensitivity(PARTS[:, :1], TASKS)[0]
    assert (alone[1]["tau"], alone[2]["tau"]) == (pytest.approx(1), pytest.approx(1))


def test_intervals_hold_the_mean_and_need_five_tasks() -> None:
    values = RANDOM.normal(loc=1.0, size=60)
    low, high = task_bootstrap(lambda rows: float(values[rows].mean()), TASKS)  # type: ignore[misc]
    by_task = values.reshape(20, 3).mean(axis=1)
    half = 1.96 * by_task.std(ddof=1) / np.sqrt(20)
    assert (low, high) == (
        pytest.approx(values.mean() - half, abs=0.05),
        pytest.approx(values.mean() + half, abs=0.05),
    )
    assert task_bootstrap(lambda rows: 1.0, np.array([0, 1, 2, 3])) is None


def test_a_conflict_is_found_where_it_is() -> None:
    """Two components agree but for one step, where one gives what the other takes."""
    same = np.array([[1.0, 1.0], [-1.0, -1.0], [0.5, 0.5]])
    apart = np.array([[0.2, 0.2], [3.0, -3.0]])
    (pair,) = step_conflicts([same, apart])
    assert [(step.trajectory, step.agent_step) for step in pair.steps] == [(1, 1)]
    assert (pair.steps[0].first_reward, pair.steps[0].second_reward) == (3.0, -3.0)
    assert pair.correlation == pytest.approx(np.corrcoef(np.concatenate([same, apart]).T)[0, 1])
    assert step_conflicts([]) == []


def test_what_a_penalty_takes_from_every_step_alike_is_no_conflict() -> None:
    (pair,) = step_conflicts([np.array([[1.0, -1.0], [2.0, -1.0]])])
    assert (pair.steps, pair.share, pair.correlation) == ([], 0.0, None)


def test_gain_of_a_probe() -> None:
    gain = probe_gain(np.zeros(60), np.where(np.arange(60) < 45, 1.0, -1.0), TASKS)
    assert (gain["mean"], gain["raised"], gain["count"]) == (0.5, 0.75, 60)
    assert gain["low"] < 0.5 < gain["high"]


def scored(key: int, *, words: int, quality: float) -> StudiedTrajectory:
    parts = {"quality": quality, "length": 0.01 * words}
    return StudiedTrajectory(
        key=key,
        task=f"t{key % 10}",
        reward=sum(parts.values()),
        contributions=parts,
        steps={"quality": [0.0, quality], "length": [0.01 * words, 0.0]},
        step_indices=[1, 3],
        features={"words": words, "headings": 0.0},
    )


def test_a_reward_that_pays_for_length_is_found_out() -> None:
    rows = [
        scored(key, words=int(RANDOM.integers(10, 500)), quality=float(RANDOM.normal())) for key in range(80)
    ]
    probes = {
        "pad": [
            ProbedTrajectory(
                place, row.reward + 0.9, {**row.contributions, "length": row.contributions["length"] + 0.9}
            )
            for place, row in enumerate(rows)
        ],
        "empty": [],
    }
    report = analysis_report(AnalysedReward(["quality", "length"], rows, probes))
    by_name = {part["name"]: part for part in report["components"]}
    assert by_name["length"]["share"] > 0.5
    assert by_name["length"]["low"] < by_name["length"]["share"] < by_name["length"]["high"]
    assert [row["feature"] for row in report["format"]] == ["words"]  # what does not vary is left out
    assert report["format"][0]["low"] > 0.5
    assert report["format"][0]["components"]["length"] == pytest.approx(1)
    pad = report["probes"]["pad"]
    assert (pad["mean"], pad["raised"]) == (pytest.approx(0.9), 1.0)
    assert pad["components"] == {"quality": pytest.approx(0), "length": pytest.approx(0.9)}
    assert report["probes"]["empty"] is None
    step = report["conflicts"][0]["steps"][0]
    assert step["step"] in (1, 3)  # among all steps, for links
    assert len(report["drawn"]) == 12
    assert report["drawn"][0]["trajectory"] == step["trajectory"]


def test_features_of_what_an_agent_wrote() -> None:
    text = "# Plan\n- one **two**\n- three!\n```\ncode\n```\nDone?"
    messages = [{"role": "user", "content": "Hi! - a"}, {"role": "assistant", "content": text}]
    found = text_features(schema.Trajectory(steps=schema.from_messages(messages), task=schema.Task(id="t")))
    assert found == {
        "agent_steps": 1,
        "words": 11,
        "words_per_step": 11,
        "tool_calls": 0,
        "list_items": 2,
        "headings": 1,
        "bold": 1,
        "code_blocks": 1,
        "exclamation_marks": 1,
        "question_marks": 1,
    }
