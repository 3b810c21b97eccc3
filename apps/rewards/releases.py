"""Whether a candidate may be promoted: both revisions' scores of the same items, compared by rules. Pure.

Differences are judged with 99 % intervals, so that a candidate is not rolled back for bad luck. Shares of the two are
compared as if independent; that they are of the same items makes the intervals wider than they need be.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Annotated, Any, Literal

import msgspec

from workers.schema.decode import convert

NUMBERS = ("active", "candidate", "length", "steps")
_PRODUCTS = list(combinations_with_replacement(range(len(NUMBERS)), 2))
MOMENTS = len(NUMBERS) + len(_PRODUCTS)
COUNTS = (
    "pairs",
    "failed",
    "uncertain_active",
    "uncertain_candidate",
    "outside_active",
    "outside_candidate",
)
MIN_PAIRS = 30  # pairs below which no difference is reported
PATIENCE = 10  # times the required pairs: a candidate that is still unclear then is rolled back
_Z = 2.576  # 99 %

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ReleaseRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a candidate must meet. All but `pairs` and `agreement` limit how much worse than the active one it may be.

    pairs: items scored by both before a decision. failed: share of items it could not score (0 for the active one, as
    it answered them). uncertain, out_of_distribution: shares of items with this flag. length: size of the correlation
    of reward with the logarithm of the length in tokens. agreement: minimum correlation of the two rewards.
    """

    pairs: Annotated[int, msgspec.Meta(ge=MIN_PAIRS, le=1_000_000)] = 200
    failed: Share = 0.01
    uncertain: Share = 0.05
    out_of_distribution: Share = 0.05
    length: Share = 0.1
    agreement: Annotated[float, msgspec.Meta(ge=-1, le=1)] = 0.0


def parse_rules(value: Any, *, pointer: str = "/rules") -> ReleaseRules:
    """Raises InvalidRecord with the pointer of the bad field."""
    return convert(value, ReleaseRules, pointer=pointer)


@dataclass(frozen=True, slots=True)
class ScorePair:
    """One item scored by both, or (scores None) one that the candidate could not score. uncertain, outside: of the
    active, of the candidate. tokens: of the item; steps: the agent's."""

    release: int
    stage: str
    policy_version: str
    scores: tuple[float, float] | None
    tokens: int = 0
    steps: int = 0
    uncertain: tuple[bool, bool] = (False, False)
    outside: tuple[bool, bool] = (False, False)


@dataclass(slots=True)
class PairStatistics:
    """moments: sums of NUMBERS, then of their products two by two (as `combinations_with_replacement` orders them);
    length and steps as log(1 + n)."""

    pairs: int = 0
    failed: int = 0
    uncertain_active: int = 0
    uncertain_candidate: int = 0
    outside_active: int = 0
    outside_candidate: int = 0
    moments: list[float] = field(default_factory=lambda: [0.0] * MOMENTS)

    def add(self, pair: ScorePair) -> None:
        if pair.scores is None:
            self.failed += 1
            return
        self.pairs += 1
        self.uncertain_active += pair.uncertain[0]
        self.uncertain_candidate += pair.uncertain[1]
        self.outside_active += pair.outside[0]
        self.outside_candidate += pair.outside[1]
        numbers = (*pair.scores, math.log1p(pair.tokens), math.log1p(pair.steps))
        products = (numbers[first] * numbers[second] for first, second in _PRODUCTS)
        self.moments = [old + new for old, new in zip(self.moments, (*numbers, *products), strict=True)]

    def merge(self, other: Any) -> None:
        """other: anything with these fields."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.moments = [old + new for old, new in zip(self.moments, other.moments, strict=True)]

    @property
    def items(self) -> int:
        return self.pairs + self.failed

    def mean(self, name: str) -> float | None:
        return self.moments[NUMBERS.index(name)] / self.pairs if self.pairs else None

    def correlation(self, first: str, second: str) -> float | None:
        """Pearson's; None where one of them is constant."""
        if self.pairs < 2:
            return None
        i, j = sorted((NUMBERS.index(first), NUMBERS.index(second)))
        spread = math.sqrt(self._covariance(i, i) * self._covariance(j, j))
        if spread <= 1e-12:
            return None
        return max(-1.0, min(1.0, self._covariance(i, j) / spread))

    def _covariance(self, i: int, j: int) -> float:
        products = self.moments[len(NUMBERS) + _PRODUCTS.index((i, j))]
        found = products / self.pairs - self.moments[i] * self.moments[j] / self.pairs**2
        return max(0.0, found) if i == j else found


def group_pairs(pairs: Iterable[ScorePair]) -> dict[tuple[int, str, str], PairStatistics]:
    """By release, stage and policy version."""
    found: dict[tuple[int, str, str], PairStatistics] = {}
    for pair in pairs:
        found.setdefault((pair.release, pair.stage, pair.policy_version), PairStatistics()).add(pair)
    return found


def merge_pairs(rows: Iterable[Any]) -> PairStatistics:
    total = PairStatistics()
    for row in rows:
        total.merge(row)
    return total


CheckState = Literal["fine", "worse", "unclear"]


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One rule. worse: with 99 % confidence. unclear: beyond the limit, but that may be chance."""

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
        least = self.name == "agreement"
        return f"at least {self._shown(self.limit)}" if least else f"up to {self._shown(self.limit)} more"

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
    if pairs.items >= PATIENCE * rules.pairs:
        return ReleaseDecision("fails", _sentence(unclear), checks)
    return ReleaseDecision("waits", f"Unclear after {pairs.items} items: {_sentence(unclear)}", checks)


def _sentence(clauses: Sequence[str]) -> str:
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}."


def _checks(pairs: PairStatistics, rules: ReleaseRules) -> Iterable[RuleCheck]:
    yield _share_check("failed", 0, pairs.failed, pairs.items, rules.failed)
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
    active, candidate = (pairs.correlation(name, "length") for name in ("active", "candidate"))
    more = abs(candidate or 0.0) - abs(active or 0.0)
    error = _Z * math.sqrt(2 / (pairs.pairs - 3)) if pairs.pairs > 3 else 2.0
    yield RuleCheck("length", active, candidate, rules.length, _state(more, error, rules.length))
    agreement = pairs.correlation("active", "candidate")
    if agreement is not None:
        error = _Z * (1 - agreement**2) / math.sqrt(pairs.pairs)
        state = _state(-agreement, error, -rules.agreement)
        yield RuleCheck("agreement", None, agreement, rules.agreement, state)


def _share_check(name: str, active: int, candidate: int, count: int, limit: float) -> RuleCheck:
    if not count:
        return RuleCheck(name, None, None, limit, "fine")
    more = (candidate - active) / count
    # With one more of either kind (Agresti and Caffo 2000): 0 of 30 is not known to be never.
    smooth = [(number + 1) / (count + 2) for number in (active, candidate)]
    error = _Z * math.sqrt(sum(share * (1 - share) for share in smooth) / (count + 2))
    return RuleCheck(name, active / count, candidate / count, limit, _state(more, error, limit))


def _state(difference: float, error: float, limit: float) -> CheckState:
    if difference <= limit:
        return "fine"
    return "worse" if difference - error > limit else "unclear"
