"""The q of strict answers: numbers worked out by hand, and simulated annotators of known reliability."""

import math
import random

import pytest

from apps.datasets.strict_reliability import StrictReliability
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory

A, B = (
    Trajectory(steps=(Step(source="agent", message=(Part(text=text),)),), task=Task(id="t")) for text in "ab"
)


def collected(items: dict[str, dict[str, str]], **fields: object) -> StrictReliability:
    reliability = StrictReliability()
    for item, choices in items.items():
        for name, choice in choices.items():
            record = PreferenceRecord(a=A, b=B, choice=choice, annotator=name, item=item, **fields)  # type: ignore[arg-type]
            reliability.add(record)
    return reliability


def simulated(
    reliabilities: dict[str, float], items: int, *, difference: float, tie: float = 0.0, seed: int = 0
) -> dict[str, dict[str, str]]:
    """Three annotators for each item, Crowd-BT with differences of +-`difference`; ties at random."""
    numbers = random.Random(seed)

    def choice(q: float, p: float) -> str:
        if numbers.random() < tie:
            return numbers.choice(("tie", "both_bad"))
        return "a" if numbers.random() < q * p + (1 - q) * (1 - p) else "b"

    found = {}
    for item in range(items):
        p = 1 / (1 + math.exp(-numbers.choice((difference, -difference))))
        names = numbers.sample(sorted(reliabilities), 3)
        found[str(item)] = {name: choice(reliabilities[name], p) for name in names}
    return found


def test_by_hand() -> None:
    # Three agree on all of 2 items and the fourth never: v = 1, 1, 1, -1; each answer has full information.
    items = {item: {"ann": "a", "ben": "a", "cid": "a", "dov": "b"} for item in "12"}
    assert collected(items).estimates() == pytest.approx({"ann": 1, "ben": 1, "cid": 1, "dov": 4 / 6})


def test_gold_answers_count_as_they_are() -> None:
    assert StrictReliability().estimates({"ann": (8, 10), "ben": (0, 0)}) == {"ann": (4 + 8) / (4 + 10)}
    both = collected({"1": {"ann": "a", "ben": "a", "cid": "b", "dov": "a"}}).estimates({"cid": (1, 6)})
    assert both["cid"] == pytest.approx((4 + 1) / (4 + 6 + 1))


def test_without_evidence_there_is_no_estimate() -> None:
    two = {str(item): {"ann": "a", "ben": "b"} for item in range(20)}  # nothing says who is wrong
    ties = {"1": {"ann": "tie", "ben": "both_bad", "cid": "a"}}
    alone = {"1": {"ann": "a"}}
    for items in ({}, two, ties, alone):
        assert collected(items).estimates() == {}
    judged = collected({"1": {"ann": "a", "ben": "a", "cid": "b"}}, origin="judge")
    assert judged.estimates() == {}


def test_honest_annotators_of_hard_pairs_with_ties_are_trusted() -> None:
    """Before, their plain agreement with the majority was stored, 0.43 to 0.51: training learnt nothing from them."""
    for seed in range(3):
        honest = collected(simulated(dict.fromkeys("pqrstu", 1.0), 400, difference=1.0, tie=0.4, seed=seed))
        estimates = honest.estimates()
        assert len(estimates) == 6
        assert min(estimates.values()) > 0.7
        assert sum(estimates.values()) / 6 > 0.9


def test_a_guesser_and_an_adversary_are_found() -> None:
    truth = {"good": 0.97, "fine": 0.97, "ok": 0.9, "also": 0.9, "guesser": 0.5, "adversary": 0.15}
    for seed in range(3):
        estimates = collected(simulated(truth, 400, difference=2.0, seed=seed)).estimates()
        assert estimates["adversary"] < 0.35
        assert 0.3 < estimates["guesser"] < 0.7
        assert min(estimates[name] for name in ("good", "fine", "ok", "also")) > 0.75


def test_many_annotators_of_one_item_take_linear_time() -> None:
    crowd = {f"{number}": "a" if number % 10 else "b" for number in range(20_000)}
    estimates = collected({"1": crowd}).estimates()
    assert estimates["1"] == pytest.approx(1) and estimates["10"] < 0.81
