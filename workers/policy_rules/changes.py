"""Which rules of a new version of a document are those of the version before it."""

from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

SAME_RULE = (
    75.0  # of 100: the share of characters that two wordings of one rule have in common (Indel similarity)
)


@dataclass(frozen=True, slots=True)
class RuleText:
    statement: str
    scope: str = ""


def match_rules(earlier: Sequence[RuleText], later: Sequence[RuleText]) -> list[int | None]:
    """For each later rule, the index of the earlier one it repeats or rewords; None for a new rule.

    Equal statements in equal scopes first, then equal statements, then the most similar pairs; each is used once.
    """
    matched: list[int | None] = [None] * len(later)
    free = set(range(len(earlier)))
    for is_scoped in (True, False):
        for place, rule in enumerate(later):
            if matched[place] is not None:
                continue
            for other in sorted(free):
                known = earlier[other]
                if known.statement == rule.statement and (not is_scoped or known.scope == rule.scope):
                    matched[place] = other
                    free.discard(other)
                    break
    pairs = [
        (-(score + (1 if earlier[other].scope == rule.scope else 0)), place, other)
        for place, rule in enumerate(later)
        if matched[place] is None
        for other in free
        if (score := fuzz.ratio(earlier[other].statement, rule.statement, score_cutoff=SAME_RULE))
    ]
    for _, place, other in sorted(pairs):
        if matched[place] is None and other in free:
            matched[place] = other
            free.discard(other)
    return matched
