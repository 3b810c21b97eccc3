"""How good a generative model is in its two ways: two trajectories judged together, and each scored on its own.

`/compare` asks about both together, in both orders; `/score`, which trainers call, about each on its own.
"""

from collections.abc import Sequence
from typing import Any

from workers.evaluate.bootstrap import difference_interval, mean_interval
from workers.evaluate.learned_baselines import LearnedBaselines
from workers.evaluate.preference import Prediction, accuracy_report, correctness


def verdict_report(
    found: Sequence[Prediction], learned: LearnedBaselines | None = None
) -> dict[str, Any] | None:
    """{pairwise, pointwise, difference, interval} on the same comparisons with the same target; None without any.

    Over the strict comparisons that the model judged together. pairwise: `accuracy_report` of the mean probability of
    both orders, and {consistency, consistency_interval}: how often both orders name the same trajectory. pointwise:
    `accuracy_report` of the difference of the two scores. difference: pairwise less pointwise, paired, by task.
    """
    strict = [prediction for prediction in found if prediction.is_strict and prediction.compared]
    if not strict:
        return None
    alone = [prediction.pointwise for prediction in strict]
    tasks = [prediction.record.a.task.id for prediction in strict]
    same = [
        float(prediction.compared is not None and prediction.compared.is_consistent) for prediction in strict
    ]
    consistency, consistency_interval = mean_interval(same, tasks)
    difference, interval = difference_interval(
        [correctness(prediction.margin) for prediction in strict],
        [correctness(prediction.margin) for prediction in alone],
        tasks,
    )
    pairwise = {"consistency": consistency, "consistency_interval": consistency_interval}
    return {
        "pairwise": accuracy_report(strict, learned) | pairwise,
        "pointwise": accuracy_report(alone, learned),
        "difference": difference,
        "interval": interval,
    }


def position_report(found: Sequence[Prediction]) -> dict[str, Any] | None:
    """How much the order of two trajectories matters to a model that judges them together; None without any.

    {n, consistency: both orders name the same, first: how often the one shown first is named, formed: verdicts that
    came within the critique's tokens, accuracy: {one_order, both_orders}}. one_order: the mean of asking (a, b) and
    asking (b, a); both_orders: of the averaged probabilities.
    """
    strict_pairs = [
        (prediction.compared, 1 if prediction.record.choice == "a" else -1)
        for prediction in found
        if prediction.is_strict and prediction.compared is not None
    ]
    if not strict_pairs:
        return None
    n = len(strict_pairs)
    firsts = [answer for compared, _ in strict_pairs for answer in (compared.first, compared.second)]
    single = [
        correctness(sign * compared.first.log_odds) + correctness(-sign * compared.second.log_odds)
        for compared, sign in strict_pairs
    ]
    return {
        "n": n,
        "consistency": sum(compared.is_consistent for compared, _ in strict_pairs) / n,
        "first": sum(answer.log_odds > 0 for answer in firsts) / (2 * n),
        "formed": sum(answer.written.is_formed for answer in firsts) / (2 * n),
        "accuracy": {
            "one_order": sum(single) / (2 * n),
            "both_orders": sum(correctness(sign * compared.log_odds) for compared, sign in strict_pairs) / n,
        },
    }
