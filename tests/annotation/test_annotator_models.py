"""Models of annotators next to crowd-kit's, on simulated answers."""

from typing import Any

import numpy as np
import pytest

from apps.annotation.annotator_models import AnswerTable, dawid_skene_accuracy, mace_competence


def simulated(
    seed: int, items: int = 80, annotators: int = 5, labels: int = 3, share: float = 1.0
) -> tuple[AnswerTable, np.ndarray]:
    """Answers, each annotator's right as often as drawn (the second value). Sorted by annotator and label: crowd-kit's
    MACE mixes up annotators' habits where they come in another order."""
    draw = np.random.default_rng(seed)
    truth, accuracy = draw.integers(0, labels, items), draw.uniform(0.4, 1, annotators)
    rows = [
        (item, annotator, label)
        for annotator in range(annotators)
        for item, label in enumerate(range(labels))
    ]
    for item in range(labels, items):
        for annotator in draw.permutation(annotators)[: max(2, round(share * annotators))]:
            is_right = draw.random() < accuracy[annotator]
            rows.append((item, int(annotator), int(truth[item] if is_right else draw.integers(0, labels))))
    rows.sort(key=lambda row: row[1:])
    return AnswerTable(*(np.array(column) for column in zip(*rows, strict=True))), accuracy


def frame(table: AnswerTable) -> Any:
    import pandas

    return pandas.DataFrame({"task": table.items, "worker": table.annotators, "label": table.labels})


@pytest.mark.parametrize("share", [0.4, 1.0])  # of an item's annotators who answered
@pytest.mark.parametrize("seed", range(2))
def test_dawid_skene_gives_what_crowd_kit_gives(seed: int, share: float) -> None:
    table, _ = simulated(seed, share=share)
    from crowdkit.aggregation import DawidSkene

    theirs = DawidSkene(n_iter=30).fit(frame(table))
    expected = [
        sum(theirs.priors_[label] * theirs.errors_.loc[(annotator, label), label] for label in range(3))
        for annotator in range(5)
    ]
    assert dawid_skene_accuracy(table) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_mace_ends_where_that_of_crowd_kit_does(seed: int) -> None:
    table, _ = simulated(seed)
    from crowdkit.aggregation import MACE

    theirs = MACE(n_restarts=1, n_iter=60, random_state=0).fit(frame(table))
    assert mace_competence(table, iterations=60) == pytest.approx(theirs.spamming_[:, 1], abs=1e-6)


@pytest.mark.parametrize("model", [dawid_skene_accuracy, mace_competence])
def test_the_order_of_answers_does_not_matter(model: object) -> None:
    table, _ = simulated(0)
    mixed = np.random.default_rng(1).permutation(len(table.items))
    again = AnswerTable(table.items[mixed], table.annotators[mixed], table.labels[mixed])
    assert model(again) == pytest.approx(model(table), abs=1e-6)  # type: ignore[operator]


def test_who_is_right_more_often_comes_out_so() -> None:
    table, accuracy = simulated(0, items=400)
    expected = accuracy + (1 - accuracy) / 3  # who guesses is right by chance too
    assert dawid_skene_accuracy(table) == pytest.approx(expected, abs=0.06)


def test_thousands_of_answers_to_an_item_do_not_underflow() -> None:
    count = 3000
    items = np.repeat([0, 1], count)
    annotators, labels = np.tile(np.arange(count), 2), np.repeat([0, 1], count)
    table = AnswerTable(items, annotators, labels)
    assert dawid_skene_accuracy(table) == pytest.approx(np.ones(count))
    assert np.isfinite(mace_competence(table)).all()
