"""Coverage and redundancy, worked out by hand."""

import pytest

from workers.errors import RewardError
from workers.induce.induction_files import Aspect, Trait
from workers.induce.metric_report import compute_meta_metrics


def aspect(trajectory: str, sign: int) -> Aspect:
    return Aspect(trajectory=trajectory, behaviour="did", feedback="said", sign=sign)


def trait(trajectory: str, metric: str, sign: int) -> Trait:
    return Trait(trajectory=trajectory, metric=metric, sign=sign)


ASPECTS = [aspect("one", -1), aspect("one", -1), aspect("one", 1), aspect("two", 1), aspect("two", -1)]
TRAITS = [
    trait("one", "repeats", -1),  # matched by two aspects: covers both, and is one trait
    trait("one", "polite", 1),  # matched by none
    trait("one", "quick", 0),  # does not apply: neither covers nor is redundant
    trait("two", "repeats", 0),
    trait("two", "polite", 1),
    trait("two", "quick", -1),
]


def test_by_hand() -> None:
    found = compute_meta_metrics(ASPECTS, TRAITS, {0: [0], 1: [0], 3: [4]})
    assert (found.coverage, found.aspects) == (3 / 5, 5)
    assert (found.redundancy, found.traits) == (2 / 4, 4)


def test_an_aspect_of_two_traits_is_covered_once() -> None:
    traits = [trait("two", "polite", 1), trait("two", "quick", 1)]
    found = compute_meta_metrics([aspect("two", 1)], traits, {0: [0, 1]})
    assert (found.coverage, found.redundancy, found.traits) == (1, 0, 2)


def test_nothing_to_take_a_share_of() -> None:
    found = compute_meta_metrics([], [trait("one", "quick", 0)], {})
    assert (found.coverage, found.redundancy) == (None, None)
    assert (found.coverage_interval, found.redundancy_interval) == (None, None)
    assert compute_meta_metrics(ASPECTS, [], {}).coverage == 0


@pytest.mark.parametrize("matches", [{0: [1]}, {0: [2]}, {0: [5]}, {2: [4]}])
def test_what_cannot_match(matches: dict[int, list[int]]) -> None:
    """Another sign, a trait that does not apply, another trajectory."""
    with pytest.raises(RewardError, match="cannot match"):
        compute_meta_metrics(ASPECTS, TRAITS, matches)


def test_intervals_are_drawn_over_trajectories() -> None:
    """Aspects of one trajectory are covered or not together: ten of them say no more than one does."""
    aspects = [aspect(str(number), 1) for number in range(20) for _ in range(10)]
    traits = [trait(str(number), "polite", 1) for number in range(20)]
    matches = {place: [place // 10] for place in range(100)}
    found = compute_meta_metrics(aspects, traits, matches)
    assert found.coverage == 0.5
    assert found.coverage_interval is not None
    low, high = found.coverage_interval
    assert 0.25 <= low <= 0.35 and 0.65 <= high <= 0.75  # of 20 coins: 0.5 +- 1.96 * 0.112
    assert found.redundancy == 0.5
    assert found == compute_meta_metrics(aspects, traits, matches)
    same = compute_meta_metrics([aspect("one", 1)] * 5, [trait("one", "polite", 1)], {0: [0]})
    assert (same.coverage, same.coverage_interval) == (0.2, None)
