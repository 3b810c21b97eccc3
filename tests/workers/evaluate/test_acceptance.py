"""F1 of accepting, next to rules and a model of the same training data."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import f1_score as peer_f1
from sklearn.metrics import precision_recall_curve

from workers.evaluate.acceptance import acceptance_report, f1_score, f1_threshold
from workers.evaluate.learned_baselines import LearnedBaselines
from workers.evaluate.predictions import ScoredRecord
from workers.schema import RatingRecord


def test_f1_is_scikit_learns() -> None:
    dice = np.random.default_rng(0)
    decided, accepted = dice.random(50) < 0.4, dice.random(50) < 0.5
    weights = dice.integers(0, 3, (4, 50)).astype(float)
    found = f1_score(decided, accepted, weights)
    assert found == pytest.approx([peer_f1(accepted, decided, sample_weight=drawn) for drawn in weights])


def test_the_threshold_is_the_best_of_scikit_learns_curve() -> None:
    dice = np.random.default_rng(1)
    values = dice.integers(0, 12, 60).astype(float)  # with ties
    accepted = dice.random(60) < values / 12
    precision, recall, thresholds = precision_recall_curve(accepted, values)
    curve = 2 * precision * recall / (precision + recall)
    assert f1_threshold(values, accepted) == thresholds[np.nanargmax(curve[:-1])]


@pytest.fixture
def rated(make_trajectory):
    def make(*rows: tuple[str, bool | None, float]) -> list[ScoredRecord]:
        return [
            ScoredRecord(
                RatingRecord(
                    trajectory=make_trajectory(f"{'word ' * (place % 3)}{place}", task=task),
                    annotator="ann",
                    accept=accept,
                    **({"rating": 3.0, "scale": (1.0, 5.0)} if accept is None else {}),
                ),
                (SimpleNamespace(raw=raw),),
            )
            for place, (task, accept, raw) in enumerate(rows)
        ]

    return make


def test_the_report(rated) -> None:
    validation = rated(("a", True, 2.0), ("b", True, 1.5), ("c", False, 1.0))
    test = rated(("t", True, 1.6), ("u", True, 0.0), ("v", False, 1.5), ("w", False, -1.0), ("x", None, 9.0))
    found = acceptance_report(test, validation)
    assert (found["threshold"], found["n"], found["accepted"]) == (1.5, 4, 2)
    assert (found["f1"], found["precision"], found["recall"], found["accuracy"]) == (0.5, 0.5, 0.5, 0.5)
    assert found["baselines"]["accept_all"]["f1"] == pytest.approx(2 / 3)
    assert found["baselines"]["accept_all"]["difference"] == pytest.approx(0.5 - 2 / 3)

    known = {scored.record.trajectory.content_hash: scored.scores[0] for scored in (*validation, *test)}
    both = acceptance_report(test, validation, LearnedBaselines(models={"linear": known}))
    assert both["baselines"]["linear"]["f1"] == 0.5
    assert both["baselines"]["linear"]["difference"] == 0


def test_one_sided_ratings_have_no_report(rated) -> None:
    both = rated(("a", True, 2.0), ("b", False, 1.0))
    assert acceptance_report(both, both[:1]) is None
    assert acceptance_report(both[1:], both) is None
    assert acceptance_report([], []) is None
