"""What both revisions said of the same items, and what follows from it."""

import math
import random

import pytest

from apps.rewards.confidence_sequences import mixture_half_width, share_bounds
from apps.rewards.pair_statistics import PairStatistics, ScorePair, group_pairs, merge_pairs
from apps.rewards.releases import ReleaseRules, decide_release, parse_rules
from benchmarks.releases import CANDIDATES, decide
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


def check_states(pairs: PairStatistics, **rules: float) -> dict[str, str]:
    decision = decide_release(pairs, ReleaseRules(**rules))  # type: ignore[arg-type]
    return {check.name: check.state for check in decision.checks}


def with_lengths(active: float, candidate: float, pairs: int = 4000) -> PairStatistics:
    """Standard normal rewards that correlate exactly so with the logarithm of length, and 0.9 or as little as that
    allows with one another."""
    agreement = active * candidate + 0.9 * math.sqrt((1 - active**2) * (1 - candidate**2))
    products = [1.0, agreement, active, 0.0, 1.0, candidate, 0.0, 1.0, 0.0, 1.0]
    return PairStatistics(pairs=pairs, moments=[0.0] * 4 + [pairs * value for value in products])


def test_one_that_holds_passes_when_every_bound_is_inside() -> None:
    assert decide_release(drawn(199), ReleaseRules()).reason == "199 of 200 items were scored by both."
    early = decide_release(drawn(200), ReleaseRules())
    assert early.says == "waits", "no failure in 200 does not show that 1 % is met"
    assert early.reason.startswith(
        "Not shown to be inside the limits after 200 items: the share of items that could"
    )
    verdict = decide_release(drawn(2500), ReleaseRules())
    assert verdict.says == "passes"
    assert "2500 items" in verdict.reason
    names = ["failed", "uncertain", "out_of_distribution", "length", "agreement"]
    assert [check.name for check in verdict.checks] == names


def test_one_that_likes_length_is_sent_away_with_the_reason() -> None:
    verdict = decide_release(drawn(200, slope=1.0), ReleaseRules())
    assert verdict.says == "fails"
    assert verdict.reason.startswith("The correlation of reward with length is 0.")
    assert "up to 0.10 beyond the range from 0 to that is allowed" in verdict.reason


@pytest.mark.parametrize(
    ("active", "candidate", "state"),
    [
        (-0.6, 0.6, "worse"),  # as much of it, with the other sign
        (0.6, -0.6, "worse"),
        (0.0, 0.3, "worse"),
        (0.0, -0.3, "worse"),
        (0.0, 0.1, "unclear"),
        (0.6, 0.1, "fine"),  # less of it
        (-0.6, 0.02, "fine"),
        (0.4, 0.4, "fine"),
    ],
)
def test_the_correlation_with_length_has_a_sign(active: float, candidate: float, state: str) -> None:
    assert check_states(with_lengths(active, candidate))["length"] == state


def test_one_that_fails_is_sent_away_before_its_time() -> None:
    verdict = decide_release(failed(30), ReleaseRules())
    assert verdict.says == "fails"
    assert verdict.reason.startswith("The share of items that could not be scored is 100.0 %")
    assert decide_release(failed(3, drawn(20)), ReleaseRules()).says == "waits"  # fewer than thirty


def test_one_that_is_less_sure_is_sent_away() -> None:
    assert decide_release(drawn(400, uncertain=0.3), ReleaseRules()).says == "fails"
    assert check_states(drawn(400, uncertain=0.3), uncertain=0.5)["uncertain"] == "fine"


def test_one_that_disagrees_is_sent_away() -> None:
    opposite = PairStatistics()
    for number in range(200):
        opposite.add(pair(number, -number, tokens=100 + number % 7))
    assert "at least 0.50 is required" in decide_release(opposite, ReleaseRules()).reason
    assert check_states(opposite, agreement=-1.0)["agreement"] == "fine"


def test_constant_rewards_agree_with_none() -> None:
    constant = PairStatistics()
    for number in range(400):
        constant.add(pair(number, 1.0))
    assert check_states(constant)["agreement"] == "worse"


def test_what_is_not_clear_waits_and_then_goes() -> None:
    def little(count: int) -> PairStatistics:
        return PairStatistics(
            pairs=count, uncertain_candidate=count // 20, moments=with_lengths(0.0, 0.0, count).moments
        )

    # 5 % more is the limit itself: never shown to be inside it or beyond it.
    assert decide_release(little(9980), ReleaseRules()).says == "waits"
    verdict = decide_release(little(10_000), ReleaseRules())
    assert (verdict.says, verdict.reason[:48]) == (
        "fails",
        "Not shown to be inside the limits after 10000 it",
    )


def test_limits_that_were_valid_before_can_pass() -> None:
    """A limit of 0 allows nothing to be seen, as no bound is 0; few required items do not end patience early."""
    none = {"failed": 0.0, "uncertain": 0.0, "out_of_distribution": 0.0, "length": 0.0}
    equal = with_lengths(0.2, 0.1, 1000)
    assert set(check_states(equal, **none).values()) == {"fine"}
    assert decide_release(equal, ReleaseRules(**none)).says == "passes"
    assert check_states(PairStatistics(), **none)["failed"] == "unclear"
    more = PairStatistics(
        pairs=1000, failed=1, uncertain_candidate=1, moments=with_lengths(0.1, 0.2, 1000).moments
    )
    states = check_states(more, **none)
    assert (states["failed"], states["uncertain"], states["length"]) == ("worse", "unclear", "unclear")
    flagged = PairStatistics(
        pairs=1500,
        uncertain_active=450,
        uncertain_candidate=450,
        moments=with_lengths(0.0, 0.0, 1500).moments,
    )
    assert decide_release(flagged, ReleaseRules(pairs=30)).says == "waits"
    assert decide_release(with_lengths(0.0, 0.04, 5000), ReleaseRules(pairs=100, length=0.05)).says == "waits"
    assert (ReleaseRules(pairs=30).patience, ReleaseRules(pairs=300).patience) == (10_000, 15_000)


def test_items_that_limits_need() -> None:
    """As the form and the documentation give them."""
    assert share_bounds(0, 700, 0.05)[1] < 0.01 and share_bounds(0, 8200, 0.05)[1] < 0.001
    deviations = {0.1: math.sqrt(0.2), 0.3: math.sqrt(0.6)}
    for share, limit, items in ((0.1, 0.05, 800), (0.1, 0.02, 5050), (0.3, 0.05, 2400), (0.3, 0.02, 16_800)):
        assert mixture_half_width(deviations[share], items, 0.05) < limit
        assert mixture_half_width(deviations[share], int(0.9 * items), 0.05) > limit
    assert mixture_half_width(deviations[0.1], 20_000, 0.05) > 0.01
    assert mixture_half_width(1, 1000, 0.05) < 0.1 and mixture_half_width(1, 4000, 0.05) < 0.05
    assert mixture_half_width(1, 10_000, 0.05) > 0.03


def test_bounds_by_hand() -> None:
    """The mixture at n = 1,000: rho^2 = (-2 ln 0.05 + ln(1 - 2 ln 0.05)) / 1,000 = 0.0079365; the half-width is
    sqrt(2 (n rho^2 + 1) / (n^2 rho^2) * ln(sqrt(n rho^2 + 1) / 0.05)) = 0.09598. No failure of 680: the bound solves
    (1 - p)^680 = 0.05 B(1/2, 680.5) / B(1/2, 1/2)."""
    rho2 = (-2 * math.log(0.05) + math.log(1 - 2 * math.log(0.05))) / 1000
    grown = 1000 * rho2 + 1
    by_hand = math.sqrt(2 * grown / (1e6 * rho2) * math.log(math.sqrt(grown) / 0.05))
    assert mixture_half_width(1.0, 1000, 0.05) == pytest.approx(by_hand)
    assert by_hand == pytest.approx(0.0960, abs=5e-5)
    beta = math.exp(math.lgamma(0.5) + math.lgamma(680.5) - math.lgamma(681)) / math.pi
    low, high = share_bounds(0, 680, 0.05)
    assert (low, high) == (0.0, pytest.approx(1 - (0.05 * beta) ** (1 / 680)))
    assert high < 0.0101
    assert share_bounds(0, 0, 0.05) == (0.0, 1.0)
    assert share_bounds(7, 7, 0.05)[1] == 1.0


def test_bounds_hold_at_every_look() -> None:
    """Of 60 streams, those whose truth is ever outside the 90 % bounds: 10 % may be, where 90 % intervals have 70 %."""
    dice = numpy.random.default_rng(0)
    outside = 0
    for _ in range(60):
        successes = numpy.cumsum(dice.random(600) < 0.1)
        bounds = [share_bounds(int(successes[n - 1]), n, 0.1) for n in range(10, 601, 10)]
        outside += any(not low <= 0.1 <= high for low, high in bounds)
    assert outside <= 11


def test_simulated_releases() -> None:
    """A small part of `benchmarks.releases`: of 15 each, no bad one passes and no equal one is rolled back."""
    for name in ("equal", "fails on 2 %", "length -0.6 to +0.6", "agreement 0"):
        dice = numpy.random.default_rng(1)
        found = {decide(CANDIDATES[name], dice, items=2500)[0] for _ in range(15)}
        assert found <= ({"fails", "waits"} if CANDIDATES[name].is_bad else {"passes", "waits"}), name


def test_rules_are_data() -> None:
    assert parse_rules({"pairs": 50, "failed": 0.5}) == ReleaseRules(pairs=50, failed=0.5)
    with pytest.raises(InvalidRecord) as raised:
        parse_rules({"pairs": 5})
    assert raised.value.pointer == "/rules/pairs"
    with pytest.raises(InvalidRecord):
        parse_rules({"unknown": 1})
