"""What both revisions said of the same items, and what follows from it."""

import math
import random

import pytest

from apps.rewards.releases import (
    PairStatistics,
    ReleaseRules,
    ScorePair,
    decide_release,
    group_pairs,
    merge_pairs,
    parse_rules,
)
from workers.errors import InvalidRecord

numpy = pytest.importorskip("numpy")


def pair(
    active: float = 0.0,
    candidate: float = 0.0,
    *,
    tokens: int = 100,
    uncertain: tuple[bool, bool] = (False, False),
    policy: str = "",
) -> ScorePair:
    return ScorePair(1, "shadow", policy, (active, candidate), tokens=tokens, steps=3, uncertain=uncertain)


def drawn(
    count: int, *, seed: int = 0, slope: float = 0.0, uncertain: float = 0.0, noise: float = 0.3
) -> PairStatistics:
    """The candidate's rewards are the active's with noise, and `slope` deviations more for every e-fold of length."""
    dice, whole = random.Random(seed), PairStatistics()
    for _ in range(count):
        tokens = int(math.exp(dice.uniform(3, 7)))
        active = dice.gauss(0, 1)
        candidate = active + dice.gauss(0, noise) + slope * math.log1p(tokens)
        whole.add(pair(active, candidate, tokens=tokens, uncertain=(False, dice.random() < uncertain)))
    return whole


def failed(count: int, of: PairStatistics | None = None) -> PairStatistics:
    whole = of or PairStatistics()
    for _ in range(count):
        whole.add(ScorePair(1, "shadow", "", None))
    return whole


def test_correlations_are_pearsons() -> None:
    dice = random.Random(3)
    rows = [(dice.gauss(0, 2), dice.gauss(1, 1), dice.randrange(1, 5000)) for _ in range(200)]
    whole = PairStatistics()
    for active, candidate, tokens in rows:
        whole.add(pair(active, candidate + active, tokens=tokens))
    active, candidate = numpy.array([row[0] for row in rows]), numpy.array([row[0] + row[1] for row in rows])
    length = numpy.log1p([row[2] for row in rows])
    assert whole.correlation("active", "candidate") == pytest.approx(numpy.corrcoef(active, candidate)[0, 1])
    assert whole.correlation("candidate", "length") == pytest.approx(numpy.corrcoef(candidate, length)[0, 1])
    assert whole.correlation("active", "steps") is None  # always three
    assert whole.mean("candidate") == pytest.approx(candidate.mean())


def test_parts_add_up_to_the_whole() -> None:
    pairs = [pair(number, 2.0 * number, policy=str(number % 3)) for number in range(30)]
    pairs.append(ScorePair(1, "shadow", "0", None))
    found = group_pairs(pairs)
    assert set(found) == {(1, "shadow", "0"), (1, "shadow", "1"), (1, "shadow", "2")}
    whole = PairStatistics()
    for entry in pairs:
        whole.add(entry)
    added = merge_pairs(found.values())
    assert (added.pairs, added.failed, added.items) == (30, 1, 31)
    assert added.moments == pytest.approx(whole.moments)


def test_one_that_holds_passes_only_after_enough() -> None:
    assert decide_release(drawn(199), ReleaseRules()).says == "waits"
    verdict = decide_release(drawn(200), ReleaseRules())
    assert verdict.says == "passes"
    assert "200 items" in verdict.reason
    assert [check.name for check in verdict.checks] == [
        "failed",
        "uncertain",
        "out_of_distribution",
        "length",
        "agreement",
    ]


def test_one_that_likes_length_is_sent_away_with_the_reason() -> None:
    verdict = decide_release(drawn(200, slope=1.0), ReleaseRules())
    assert verdict.says == "fails"
    assert verdict.reason.startswith("The correlation of reward with length is 0.")
    assert "up to 0.10 more is allowed" in verdict.reason


def test_one_that_fails_is_sent_away_before_its_time() -> None:
    verdict = decide_release(failed(30), ReleaseRules())
    assert verdict.says == "fails"
    assert verdict.reason.startswith("The share of items that could not be scored is 100.0 %")
    assert decide_release(failed(3, drawn(20)), ReleaseRules()).says == "waits"  # fewer than thirty


def test_one_that_is_less_sure_is_sent_away() -> None:
    assert decide_release(drawn(400, uncertain=0.3), ReleaseRules()).says == "fails"
    assert decide_release(drawn(400, uncertain=0.3), ReleaseRules(uncertain=0.5)).says == "passes"


def test_one_that_disagrees_is_sent_away() -> None:
    whole = PairStatistics()
    for number in range(200):
        whole.add(pair(number, -number, tokens=100 + number % 7))
    assert "at least 0.00 is required" in decide_release(whole, ReleaseRules()).reason
    assert decide_release(whole, ReleaseRules(agreement=-1.0)).says == "passes"


def test_what_is_not_clear_waits_and_then_goes() -> None:
    def little(count: int) -> PairStatistics:
        whole = PairStatistics()
        for number in range(count):
            whole.add(pair(number % 11, number % 11, uncertain=(False, number % 16 == 0)))
        return whole

    # 6 % is more than 5 %, but 5 % would often look like it.
    assert decide_release(little(200), ReleaseRules()).says == "waits"
    assert decide_release(little(2000), ReleaseRules()).says == "fails"


@pytest.mark.parametrize("seed", range(20))
def test_a_candidate_as_good_is_not_sent_away(seed: int) -> None:
    """However often it is looked at."""
    for count in range(30, 400, 37):
        assert decide_release(drawn(count, seed=seed, uncertain=0.03), ReleaseRules()).says != "fails"


def test_rules_are_data() -> None:
    assert parse_rules({"pairs": 50, "failed": 0.5}) == ReleaseRules(pairs=50, failed=0.5)
    with pytest.raises(InvalidRecord) as raised:
        parse_rules({"pairs": 5})
    assert raised.value.pointer == "/rules/pairs"
    with pytest.raises(InvalidRecord):
        parse_rules({"unknown": 1})
