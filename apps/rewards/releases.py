"""Whether a candidate may be promoted: both revisions' scores of the same items, compared by rules. Pure.

A candidate passes where a confidence sequence shows every difference to be inside its limit, and is rolled back where
one shows a difference to be beyond it. Both hold however often one looks: in each stage, a candidate beyond a limit
passes with a probability of at most 5 %, and one that is inside all of them is rolled back as worse with one of at most
1 % (`benchmarks.releases`). One that is still unclear after `patience` items is rolled back too, which these 1 % leave
out. A limit of 0 means that nothing more than the active revision's is seen, which no bound can show.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from apps.rewards.confidence_sequences import mixture_half_width, share_bounds
from apps.rewards.pair_statistics import PairStatistics
from workers.schema.decode import convert

MIN_PAIRS = 30  # pairs below which no difference is reported
# Times the required pairs, for at least so many of them: a candidate that is still unclear then is rolled back.
PATIENCE, _FEWEST_PATIENT = 50, 200
_PASS_ALPHA = 0.05  # of each rule: all have to hold, so that a candidate that breaks one passes no more often
_FAIL_ALPHA = 0.01 / 5  # of each of five rules, any of which rolls back

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ReleaseRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a candidate must meet. All but `pairs` and `agreement` limit how much worse than the active one it may be.

    pairs: items scored by both before a decision. failed: share of items it could not score (0 for the active one, as
    it answered them). uncertain, out_of_distribution: shares of items with this flag. length: how far the
    correlation of reward with the logarithm of the length in tokens is beyond the range from 0 to the active one's, on
    either side. agreement: minimum correlation of the two rewards.
    """

    pairs: Annotated[int, msgspec.Meta(ge=MIN_PAIRS, le=1_000_000)] = 200
    failed: Share = 0.01
    uncertain: Share = 0.05
    out_of_distribution: Share = 0.05
    length: Share = 0.1
    agreement: Annotated[float, msgspec.Meta(ge=-1, le=1)] = 0.5

    @property
    def patience(self) -> int:
        """Items after which a candidate that is still unclear is rolled back."""
        return PATIENCE * max(self.pairs, _FEWEST_PATIENT)


def parse_rules(value: Any, *, pointer: str = "/rules") -> ReleaseRules:
    """Raises InvalidRecord with the pointer of the bad field."""
    return convert(value, ReleaseRules, pointer=pointer)


CheckState = Literal["fine", "worse", "unclear"]


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One rule. fine, worse: shown to be inside the limit, or beyond it. unclear: neither is shown yet."""

    name: str
    active: float | None
    candidate: float | None
    limit: float
    state: CheckState

    @property
    def sentence(self) -> str:
        if self.name == "agreement":
            return f"{self.label} is {self.shown_candidate}; {self.shown_limit} is required"
        return (
            f"{self.label} is {self.shown_candidate}, and {self.shown_active} for the active revision; "
            f"{self.shown_limit} is allowed"
        )

    @property
    def label(self) -> str:
        return _LABELS[self.name]

    @property
    def shown_active(self) -> str:
        return self._shown(self.active)

    @property
    def shown_candidate(self) -> str:
        return self._shown(self.candidate)

    @property
    def shown_limit(self) -> str:
        if self.name == "agreement":
            return f"at least {self._shown(self.limit)}"
        if self.name == "length":
            return f"up to {self._shown(self.limit)} beyond the range from 0 to that"
        return f"up to {self._shown(self.limit)} more"

    def _shown(self, value: float | None) -> str:
        if value is None:
            return "–"
        return f"{100 * value:.1f} %" if self.name in _SHARES else f"{value:.2f}"


_SHARES = ("failed", "uncertain", "out_of_distribution")
_LABELS = {
    "failed": "the share of items that could not be scored",
    "uncertain": "the uncertain share",
    "out_of_distribution": "the out-of-distribution share",
    "length": "the correlation of reward with length",
    "agreement": "the correlation of its rewards with the active revision's",
}


@dataclass(frozen=True, slots=True)
class ReleaseDecision:
    """passes: it may advance. fails: it is to be rolled back. waits: too few items, or unclear."""

    says: Literal["passes", "fails", "waits"]
    reason: str
    checks: tuple[RuleCheck, ...]


def decide_release(pairs: PairStatistics, rules: ReleaseRules) -> ReleaseDecision:
    checks = tuple(_checks(pairs, rules))
    worse = [check.sentence for check in checks if check.state == "worse"]
    if worse and pairs.items >= MIN_PAIRS:
        return ReleaseDecision("fails", _sentence(worse), checks)
    if pairs.items < rules.pairs:
        return ReleaseDecision("waits", f"{pairs.items} of {rules.pairs} items were scored by both.", checks)
    unclear = [check.sentence for check in checks if check.state == "unclear"]
    if not unclear:
        return ReleaseDecision("passes", f"It met every rule on {pairs.items} items.", checks)
    reason = f"not shown to be inside the limits after {pairs.items} items: {'; '.join(unclear)}"
    if pairs.items >= rules.patience:
        return ReleaseDecision("fails", _sentence([reason]), checks)
    return ReleaseDecision("waits", _sentence([reason]), checks)


def _sentence(clauses: Sequence[str]) -> str:
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}."


def _checks(pairs: PairStatistics, rules: ReleaseRules) -> Iterable[RuleCheck]:
    yield _failure_check(pairs, rules.failed)
    yield _share_check(
        "uncertain", pairs.uncertain_active, pairs.uncertain_candidate, pairs.pairs, rules.uncertain
    )
    yield _share_check(
        "out_of_distribution",
        pairs.outside_active,
        pairs.outside_candidate,
        pairs.pairs,
        rules.out_of_distribution,
    )
    yield _length_check(pairs, rules.length)
    yield _agreement_check(pairs, rules.agreement)


def _failure_check(pairs: PairStatistics, limit: float) -> RuleCheck:
    share = pairs.failed / pairs.items if pairs.items else None
    _, high = share_bounds(pairs.failed, pairs.items, _PASS_ALPHA)
    low, _ = share_bounds(pairs.failed, pairs.items, _FAIL_ALPHA)
    active = None if share is None else 0.0
    return RuleCheck("failed", active, share, limit, _state(low, high, limit, seen=share))


def _share_check(name: str, active: int, candidate: int, count: int, limit: float) -> RuleCheck:
    """The variance of the paired difference of two flags is at most the share of items with either, whatever their
    dependence: the sum of the shares, here with one more of each (Agresti and Caffo 2000)."""
    if not count:
        return RuleCheck(name, None, None, limit, _state(-1.0, 1.0, limit))
    more = (candidate - active) / count
    deviation = math.sqrt(min(1.0, (active + candidate + 2) / (count + 2)))
    low = more - mixture_half_width(deviation, count, _FAIL_ALPHA)
    high = more + mixture_half_width(deviation, count, _PASS_ALPHA)
    return RuleCheck(name, active / count, candidate / count, limit, _state(low, high, limit, seen=more))


def _length_check(pairs: PairStatistics, limit: float) -> RuleCheck:
    """By how much the candidate's correlation is above both 0 and the active one's, or below both.

    A correlation that does not exist, as rewards or lengths do not vary, counts as 0. Deviations are those of
    correlations of normal values; the covariance of the two correlations is taken as 0, which makes the interval of
    their difference wider than it need be.
    """
    shown = pairs.correlation("active", "length"), pairs.correlation("candidate", "length")
    active, candidate = shown[0] or 0.0, shown[1] or 0.0
    if shown[1] is None and pairs.pairs >= MIN_PAIRS:
        return RuleCheck("length", shown[0], None, limit, "fine")
    alone = 1 - candidate**2
    both = math.hypot(alone, 1 - active**2)

    def beyond(alpha: float, side: int) -> float:
        """A bound of the distance beyond the range, the upper one for side 1, the lower one for -1."""
        from_zero, from_active = (_half_width(deviation, pairs.pairs, alpha) for deviation in (alone, both))
        above = min(candidate + side * from_zero, candidate - active + side * from_active)
        below = min(-candidate + side * from_zero, active - candidate + side * from_active)
        return max(above, below)

    seen = max(min(candidate, candidate - active), min(-candidate, active - candidate))
    state = _state(beyond(_FAIL_ALPHA, -1), beyond(_PASS_ALPHA, 1), limit, seen=seen if pairs.pairs else None)
    return RuleCheck("length", shown[0], shown[1], limit, state)


def _agreement_check(pairs: PairStatistics, limit: float) -> RuleCheck:
    """Rewards that do not vary agree with none that do."""
    agreement = pairs.correlation("active", "candidate")
    estimate = agreement or 0.0
    deviation = 1 - estimate**2
    low = -estimate - _half_width(deviation, pairs.pairs, _FAIL_ALPHA)
    high = -estimate + _half_width(deviation, pairs.pairs, _PASS_ALPHA)
    return RuleCheck("agreement", None, agreement, limit, _state(low, min(high, 1.0), -limit))


def _half_width(deviation: float, pairs: int, alpha: float) -> float:
    return mixture_half_width(deviation, pairs - 3, alpha) if pairs > MIN_PAIRS // 2 else 2.0


def _state(low: float, high: float, limit: float, *, seen: float | None = None) -> CheckState:
    """Of a difference between these bounds. seen: the difference so far, where a limit of 0 allows none."""
    is_fine = high <= limit or (limit == 0 and seen is not None and seen <= 0)
    return "fine" if is_fine else "worse" if low > limit else "unclear"
