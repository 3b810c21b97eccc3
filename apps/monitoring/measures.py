"""What is measured of a window of scored trajectories, against what the model was trained on. Pure.

Every measure is a number with a margin: how far chance alone takes it from the truth, in all but about one of 30,000
looks (four standard errors). An alert is raised where a value passes its limit by more than the margin, so that many
looks a week at traffic that stays as it is raise none.
"""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

SURE = 4.0  # standard errors
BINS = 10
_SMOOTH = 0.5  # of a count, so that an empty bin is not infinitely telling


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A scored trajectory. reward: normalised, before transforms. kl: log pi - log ref, in nats, over the response.
    gold: what a verifier said of it, on a scale of its own. judged: fresh comparisons of people that it is in, each
    counted with the newer of its two trajectories; wrong: those in which people preferred the one with less reward."""

    pk: int
    policy_version: str
    reward: float
    tokens: int
    steps: int
    repetition: float = 0.0
    uncertain: bool = False
    outside: bool = False
    kl: float | None = None
    gold: float | None = None
    judged: int = 0
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class Reference:
    """What rows are compared with. of: in words. reward, tokens, steps: quantiles from least to largest, evenly
    spaced. trajectories: how many they are of. uncertain, outside: shares. repetition: mean. error: the share of
    held-out comparisons that the reward gets wrong."""

    of: str
    trajectories: int
    reward: Sequence[float]
    tokens: Sequence[float]
    steps: Sequence[float]
    length_correlation: float | None = None
    steps_correlation: float | None = None
    uncertain: float | None = None
    outside: float | None = None
    repetition: float | None = None
    error: float | None = None


@dataclass(frozen=True, slots=True)
class MeasureReading:
    """value: measured. baseline: where a limit counts from. margin: see above. count: rows it is of."""

    value: float
    baseline: float
    margin: float
    count: int


Measure = Callable[[Sequence[SampleRow], Reference], MeasureReading | None]


@dataclass(frozen=True, slots=True)
class MeasureType:
    """label: as in a sentence. unit: `%`, or empty. measure: None where it cannot be told. of: what is counted.
    two_sided: whether a value below the baseline counts as much as one above."""

    label: str
    measure: Measure
    unit: str = ""
    help: str = ""
    # The rows behind it are those with the most.
    rows: Callable[[SampleRow], float] = field(default=lambda row: row.reward)
    of: str = "scored trajectories"
    two_sided: bool = False

    def passes(self, reading: MeasureReading, limit: float) -> bool:
        """Whether it is beyond the limit for sure."""
        beyond = reading.value - reading.baseline
        return (abs(beyond) if self.two_sided else beyond) - reading.margin > limit


def psi(values: Sequence[float], quantiles: Sequence[float]) -> float:
    """Population stability index: sum of (p - q) ln(p / q) over bins at the reference's deciles, those that fall
    together merged (Siddiqi 2006, chapter 9). Above 0.25 is commonly called a shift."""
    edges = _edges(quantiles)
    counts = [0] * (len(edges) + 1)
    for value in values:
        counts[bisect_left(edges, value)] += 1
    expected = _expected(quantiles, edges)
    total = len(values) + _SMOOTH * len(counts)
    found = 0.0
    for count, share in zip(counts, expected, strict=True):
        p, q = (count + _SMOOTH) / total, max(share, 1e-4)
        found += (p - q) * math.log(p / q)
    return found


def ks(values: Sequence[float], quantiles: Sequence[float]) -> float:
    """Kolmogorov-Smirnov: the largest difference of the two distribution functions, the reference's between its
    quantiles straight."""
    ordered = sorted(values)
    largest = 0.0
    for place, value in enumerate(ordered):
        low, high = _shares_below(value, quantiles)
        largest = max(largest, (place + 1) / len(ordered) - high, low - place / len(ordered))
    return largest


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's; None where one of them is always the same."""
    if len(first) < 3 or min(first) == max(first) or min(second) == max(second):
        return None
    return statistics.correlation(first, second)


def root_kl(rows: Sequence[SampleRow]) -> float | None:
    """sqrt of the mean of log pi - log ref (Gao et al. 2022, arXiv 2210.10760); None where none was sent."""
    sent = [row.kl for row in rows if row.kl is not None]
    return math.sqrt(max(0.0, statistics.fmean(sent))) if sent else None


def _reward_psi(rows: Sequence[SampleRow], reference: Reference) -> MeasureReading | None:
    return _psi([row.reward for row in rows], reference.reward, reference.trajectories)


def _tokens_psi(rows: Sequence[SampleRow], reference: Reference) -> MeasureReading | None:
    return _psi([float(row.tokens) for row in rows], reference.tokens, reference.trajectories)


def _psi(values: Sequence[float], quantiles: Sequence[float], of: int) -> MeasureReading | None:
    """Where nothing has changed, n * PSI is about chi squared with a degree of freedom less than there are bins
    (Yurdakul and Naranjo 2020)."""
    if not quantiles:
        return None
    free = len(_edges(quantiles))
    if not free:
        return None  # all the same: nothing to tell apart
    noise = (free + SURE * math.sqrt(2 * free)) * (1 / len(values) + 1 / max(of, 1))
    return MeasureReading(psi(values, quantiles), 0.0, noise, len(values))


def _reward_ks(rows: Sequence[SampleRow], reference: Reference) -> MeasureReading | None:
    if not reference.reward:
        return None
    count, of = len(rows), max(reference.trajectories, 1)
    # P(D > d) is about 2 exp(-2 n d^2) (Massey 1951): one of 30,000 at d = sqrt(ln(60,000) / 2n)
    margin = math.sqrt(math.log(60_000) / 2 * (1 / count + 1 / of))
    return MeasureReading(ks([row.reward for row in rows], reference.reward), 0.0, margin, count)


def _share(name: str) -> Measure:
    def measure(rows: Sequence[SampleRow], reference: Reference) -> MeasureReading:
        count = len(rows)
        share = sum(getattr(row, name) for row in rows) / count
        smooth = (share * count + 2) / (count + 4)  # Agresti and Coull 1998
        margin = SURE * math.sqrt(smooth * (1 - smooth) / (count + 4))
        return MeasureReading(share, getattr(reference, name) or 0.0, margin, count)

    return measure


def _with(name: str, known: str) -> Measure:
    """The correlation of reward with the logarithm of a number. Its baseline is the nearest value in the range from 0
    to the correlation in training: less of it is no fault, and the same amount with the other sign is one."""

    def measure(rows: Sequence[SampleRow], reference: Reference) -> MeasureReading | None:
        found = correlation([row.reward for row in rows], [math.log1p(getattr(row, name)) for row in rows])
        if found is None:
            return None
        trained = getattr(reference, known) or 0.0
        baseline = min(max(found, min(0.0, trained)), max(0.0, trained))
        # Of Fisher's z, whose standard error is 1 / sqrt(n - 3), back on the scale of correlations at the far side
        z = math.atanh(max(-0.999999, min(0.999999, abs(found))))
        margin = abs(found) - math.tanh(z - SURE / math.sqrt(len(rows) - 3))
        return MeasureReading(found, baseline, margin, len(rows))

    return measure


def _repetition(rows: Sequence[SampleRow], reference: Reference) -> MeasureReading | None:
    if reference.repetition is None:
        return None
    shares = [row.repetition for row in rows]
    margin = SURE * statistics.pstdev(shares) / math.sqrt(len(rows))
    return MeasureReading(statistics.fmean(shares), reference.repetition, margin, len(rows))


def _gold(rows: Sequence[SampleRow], reference: Reference) -> MeasureReading | None:
    """How much further the reward rose than the gold did, from the first half of the rows to the second, each in its
    own standard deviations. 0 where the reward did not rise."""
    known = [row for row in rows if row.gold is not None]
    if len(known) < 2 * _FEWEST_GOLD:
        return None
    half = len(known) // 2
    proxy = _rise([row.reward for row in known], half)
    gold = _rise([row.gold or 0.0 for row in known], half)
    margin = SURE * math.sqrt(2 * (1 / half + 1 / (len(known) - half)))
    return MeasureReading(proxy - gold if proxy > 0 else 0.0, 0.0, margin, len(known))


def _disagreement(rows: Sequence[SampleRow], reference: Reference) -> MeasureReading | None:
    """The share of fresh comparisons in which people preferred what has less reward."""
    count = sum(row.judged for row in rows)
    if reference.error is None or count < _FEWEST_JUDGED:
        return None
    wrong = sum(row.wrong for row in rows)
    smooth = (wrong + 2) / (count + 4)
    margin = SURE * math.sqrt(smooth * (1 - smooth) / (count + 4))
    return MeasureReading(wrong / count, reference.error, margin, count)


def _rise(values: Sequence[float], half: int) -> float:
    early, late = values[:half], values[half:]
    spread = math.sqrt((statistics.pvariance(early) + statistics.pvariance(late)) / 2)
    return (statistics.fmean(late) - statistics.fmean(early)) / spread if spread > 1e-9 else 0.0


_FEWEST_GOLD = 10  # in each half
_FEWEST_JUDGED = 20

MEASURES: dict[str, MeasureType] = {
    "reward_psi": MeasureType(
        "the drift of rewards (PSI)", _reward_psi, help="Against the training rewards."
    ),
    "reward_ks": MeasureType("the drift of rewards (KS)", _reward_ks, help="Against the training rewards."),
    "tokens_psi": MeasureType(
        "the drift of lengths (PSI)", _tokens_psi, help="In tokens.", rows=lambda row: row.tokens
    ),
    "uncertain": MeasureType("the uncertain share", _share("uncertain"), "%", rows=lambda row: row.uncertain),
    "out_of_distribution": MeasureType(
        "the share out of distribution", _share("outside"), "%", rows=lambda row: row.outside
    ),
    "length_correlation": MeasureType(
        "the correlation of reward with length",
        _with("tokens", "length_correlation"),
        help="With the logarithm of tokens; beyond the range from 0 to that in training, in either direction.",
        two_sided=True,
    ),
    "steps_correlation": MeasureType(
        "the correlation of reward with the number of steps",
        _with("steps", "steps_correlation"),
        help="With the logarithm of agent steps; beyond the range from 0 to that in training, in either direction.",
        two_sided=True,
    ),
    "repetition": MeasureType(
        "the repeated share of what the agent writes",
        _repetition,
        "%",
        help="Of n-grams of four words.",
        rows=lambda row: row.repetition,
    ),
    "gold": MeasureType(
        "how much further the reward rose than the gold",
        _gold,
        help="From the first half of the window to the second, in standard deviations; gold is what a verifier said.",
    ),
    "disagreement": MeasureType(
        "the share of fresh comparisons in which people preferred what has less reward",
        _disagreement,
        "%",
        help="Of what people were asked about this endpoint; against the model's errors on held-out tasks.",
        rows=lambda row: row.wrong,
        of="comparisons",
    ),
}


def reference_from_rows(rows: Sequence[SampleRow], of: str) -> Reference:
    """Rows as what later ones are compared with."""
    places = [place / 100 for place in range(101)]

    def quantiles(name: str) -> list[float]:
        ordered = sorted(float(getattr(row, name)) for row in rows)
        return [ordered[min(len(ordered) - 1, int(place * len(ordered)))] for place in places]

    rewards = [row.reward for row in rows]
    return Reference(
        of,
        len(rows),
        reward=quantiles("reward"),
        tokens=quantiles("tokens"),
        steps=quantiles("steps"),
        length_correlation=correlation(rewards, [math.log1p(row.tokens) for row in rows]),
        steps_correlation=correlation(rewards, [math.log1p(row.steps) for row in rows]),
        uncertain=statistics.fmean(row.uncertain for row in rows),
        outside=statistics.fmean(row.outside for row in rows),
        repetition=statistics.fmean(row.repetition for row in rows),
    )


def reference_from_training(training: dict[str, Any], of: str, *, error: float | None = None) -> Reference:
    """What a manifest says of its training. error: on held-out comparisons."""
    return Reference(
        of,
        training["trajectories"],
        training["reward"],
        training["tokens"],
        training["steps"],
        length_correlation=training.get("length_correlation"),
        steps_correlation=training.get("steps_correlation"),
        uncertain=training.get("uncertain"),
        outside=training.get("outside"),
        repetition=training.get("repetition"),
        error=error,
    )


def _edges(quantiles: Sequence[float]) -> list[float]:
    """Deciles, without the least and the largest; equal ones once."""
    count = len(quantiles) - 1
    places = (quantiles[round(place * count / BINS)] for place in range(1, BINS))
    edges = sorted(set(places))
    return [edge for edge in edges if edge < quantiles[-1]]


def _expected(quantiles: Sequence[float], edges: Sequence[float]) -> list[float]:
    below = [0.0, *(_shares_below(edge, quantiles)[1] for edge in edges), 1.0]
    return [high - low for low, high in pairwise(below)]


def _shares_below(value: float, quantiles: Sequence[float]) -> tuple[float, float]:
    """The reference's share below, and at or below, a value."""
    last = len(quantiles) - 1
    first, after = bisect_left(quantiles, value), bisect_right(quantiles, value)
    if after > first:  # it is one of them
        low = 0.0 if first == 0 else first / last
        high = 1.0 if after > last else (after - 1) / last
        return min(low, high), high
    if first == 0:
        return 0.0, 0.0
    if first > last:
        return 1.0, 1.0
    before, beyond = quantiles[first - 1], quantiles[first]
    share = (first - 1 + (value - before) / (beyond - before)) / last
    return share, share
