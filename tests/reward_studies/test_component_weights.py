"""Weights of components: against scikit-learn and SciPy, and on feedback whose weights are known."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import LinearRegression, LogisticRegression

from apps.core.errors import DomainError
from apps.reward_studies.component_weights import OrderedPairs, fit_weights
from apps.reward_studies.weight_likelihoods import (
    Comparisons,
    Numbers,
    OrderedLevels,
    Outcomes,
    PolicyOutcomes,
    likelihood_of,
)
from apps.reward_studies.weight_report import WeightFeedback, weight_report

RANDOM = np.random.default_rng(7)
ROWS = RANDOM.normal(size=(400, 3))
SCORES = ROWS @ [1.5, -1.0, 0.0]
TASKS = np.arange(400) % 40
SUCCESS = (RANDOM.random(400) < 1 / (1 + np.exp(-(SCORES + 0.4)))).astype(float)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_outcomes_agree_with_scikit_learn(penalty) -> None:
    strength = 0.02
    found = fit_weights(Outcomes(ROWS, SUCCESS, TASKS), strength, penalty=penalty, allow_negative=True)
    C = 1 / (strength * len(ROWS))
    ratio = {"l1": 1.0, "l2": 0.0}[penalty]
    peer = LogisticRegression(l1_ratio=ratio, C=C, solver="saga", max_iter=20_000, tol=1e-8)
    peer.fit(ROWS, SUCCESS)
    assert found.weights == pytest.approx(peer.coef_[0], abs=2e-3)
    assert found.other == pytest.approx(peer.intercept_, abs=2e-3)


def test_comparisons_agree_with_scikit_learn_without_an_intercept() -> None:
    found = fit_weights(Comparisons(ROWS, SUCCESS, TASKS), 0.01, penalty="l2", allow_negative=True)
    peer = LogisticRegression(C=1 / (0.01 * len(ROWS)), fit_intercept=False, tol=1e-9).fit(ROWS, SUCCESS)
    assert found.weights == pytest.approx(peer.coef_[0], abs=1e-3)


def test_numbers_agree_with_least_squares() -> None:
    target = SCORES + RANDOM.normal(size=400)
    likelihood = likelihood_of("ratings", ROWS, target, TASKS)
    assert isinstance(likelihood, Numbers)
    found = fit_weights(likelihood, 0.0, allow_negative=True)
    assert found.weights * target.std() == pytest.approx(LinearRegression().fit(ROWS, target).coef_, abs=1e-3)


def test_two_levels_are_logistic_regression_and_five_recover_the_weights() -> None:
    two = fit_weights(OrderedLevels(ROWS, SUCCESS, TASKS), 0.0, allow_negative=True)
    one = fit_weights(Outcomes(ROWS, SUCCESS, TASKS), 0.0, allow_negative=True)
    assert two.weights == pytest.approx(one.weights, abs=1e-3)
    assert two.other == pytest.approx(-one.other, abs=1e-3)
    level = np.digitize(SCORES + RANDOM.logistic(size=400), [-2.0, -0.5, 0.5, 2.0]).astype(float)
    five = fit_weights(OrderedLevels(ROWS, level, TASKS), 0.0, allow_negative=True)
    assert five.weights == pytest.approx([1.5, -1.0, 0.0], abs=0.3)


@pytest.mark.parametrize("kind", [Comparisons, Outcomes, OrderedLevels, Numbers, PolicyOutcomes])
def test_gradients(kind) -> None:
    target = np.digitize(SCORES, [-1, 0, 1]).astype(float) if kind is OrderedLevels else SUCCESS
    likelihood = kind(ROWS, target, TASKS)
    row_weights = (TASKS % 3).astype(float)  # as in a bootstrap over tasks
    split = ROWS.shape[1]

    def loss(parameters):
        return likelihood.loss(ROWS @ parameters[:split], parameters[split:], row_weights)[0]

    def gradient(parameters):
        _, by_score, by_other = likelihood.loss(ROWS @ parameters[:split], parameters[split:], row_weights)
        return np.concatenate([ROWS.T @ by_score, by_other])

    at = np.concatenate([[0.3, -0.2, 0.1], np.linspace(-0.5, 0.5, likelihood.other_parameters)])
    assert check_grad(loss, gradient, at) < 1e-5


def test_the_policy_of_a_reward_is_a_softmax() -> None:
    """Two tasks of two trajectories, by hand: sigmoid(1) of the first task, one half of the second."""
    rows, outcome = np.array([[1.0], [0.0], [2.0], [2.0]]), np.array([1.0, 0.0, 1.0, 0.0])
    likelihood = PolicyOutcomes(rows, outcome, np.array([0, 0, 1, 1]))
    loss, _, _ = likelihood.loss(rows[:, 0], np.empty(0), np.ones(4))
    assert -loss == pytest.approx((1 / (1 + np.exp(-1)) + 0.5) / 2)


def test_accuracy_counts_ties_half_and_pairs_as_often_as_their_tasks_are_drawn() -> None:
    first, second, task = np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([0, 1, 1])
    pairs = OrderedPairs(first, second, task, np.array([0, 1, 0]), np.zeros(3, int))
    scores = np.array([2.0, 1.0, 1.0])
    assert pairs.accuracy(scores) == pytest.approx((1 + 0.5 + 0) / 3)
    assert pairs.accuracy(scores, np.array([2.0, 1.0])) == pytest.approx((2 * 1 + 1 * 0.5 + 2 * 0) / 5)


def planted(form: str, tasks: int = 60, each: int = 6) -> WeightFeedback:
    """Components: one that matters, one that matters half as much, a harmful one, noise, a constant."""
    random = np.random.default_rng(3)
    of_task = np.repeat(np.arange(tasks), each)
    quality, detail = random.normal(size=(2, tasks * each))
    harmful = -quality + 0.7 * random.normal(size=tasks * each)
    noise, constant = 100 * random.normal(size=tasks * each), np.ones(tasks * each)
    truth = 2 * quality + detail
    values = np.stack([quality, detail, harmful, noise, constant], axis=1)
    names = ["quality", "detail", "harmful", "noise", "constant"]
    comparisons, labels = [], []
    for start in range(0, tasks * each, each):
        for a, b in ((0, 1), (2, 3), (4, 5)):
            gap = truth[start + a] - truth[start + b]
            comparisons.append((start + a, start + b, float(random.random() < 1 / (1 + np.exp(-gap)))))
    if form != "comparisons":
        labels = [
            (place, float(value > 0)) for place, value in enumerate(truth + random.logistic(size=len(truth)))
        ]
        comparisons = []
    return WeightFeedback(names, values, of_task, np.ones(5), form, comparisons, labels)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["comparisons", "outcomes", "policy"])
def test_a_bad_heuristic_gets_no_weight(form) -> None:
    feedback = planted(form)
    report = weight_report(feedback)
    by_name = {part["name"]: part for part in report["components"]}
    assert by_name["harmful"]["weight"] == by_name["noise"]["weight"] == by_name["constant"]["weight"] == 0
    weights = np.array([part["weight"] for part in report["components"]])
    # In the unit of the present reward, so that transforms keep their meaning.
    assert (feedback.values @ weights).std() == pytest.approx((feedback.values @ feedback.current).std())
    if form != "policy":  # which mostly needs to know what is best
        assert by_name["quality"]["weight"] / by_name["detail"]["weight"] == pytest.approx(2, rel=0.5)
    assert by_name["quality"]["low"] > 0
    assert by_name["quality"]["low"] <= by_name["quality"]["weight"] <= by_name["quality"]["high"]
    assert sum(part["share"] for part in report["components"]) == pytest.approx(1)
    accuracy = report["accuracy"]
    assert accuracy["single"]["component"] == "quality"
    assert accuracy["fitted"]["value"] >= accuracy["single"]["value"] > accuracy["equal"]["value"]
    assert accuracy["fitted"]["low"] > accuracy["equal"]["high"]
    assert (report["trade_off"]["first"], report["trade_off"]["second"]) == ("quality", "detail")
    path = report["path"]
    assert not any(path[0]["weights"].values())
    assert sum(point["is_chosen"] for point in path) == 1


def test_with_negative_weights_allowed_the_harmful_component_is_turned_round() -> None:
    feedback = planted("comparisons")
    only = WeightFeedback(
        ["detail", "harmful"],
        feedback.values[:, [1, 2]],
        feedback.tasks,
        np.ones(2),
        "comparisons",
        feedback.comparisons,
    )
    assert weight_report(only)["components"][1]["weight"] == 0
    assert weight_report(only, allow_negative=True)["components"][1]["high"] < 0


def test_too_little_is_refused_in_words() -> None:
    feedback = planted("comparisons", tasks=4)
    with pytest.raises(DomainError, match="12 comparisons of 4 tasks are too few"):
        weight_report(feedback)
