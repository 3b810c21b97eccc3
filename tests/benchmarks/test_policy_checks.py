"""A small version of the benchmark of planted violations."""

from pathlib import Path

import pytest

from benchmarks.policy_checks import DOMAINS, WAYS, checks_of, measure
from workers.policy_rules.conflicts import find_conflicts


@pytest.mark.parametrize("domain", DOMAINS)
def test_planted_violations_are_found(domain: str, shared_data: Path) -> None:
    result = measure(domain, 2)
    assert find_conflicts(checks_of(domain)) == []
    assert set(result.by_way) == set(range(WAYS))
    assert all(counts.planted and counts.found == counts.planted for counts in result.by_check.values())
    # Calls without a yes, or with a message, in runs that a benchmark rewarded all the same: breaches, not mistakes.
    noisy = {"confirm before writing", "no message with a call"}
    quiet = [counts for name, counts in result.by_check.items() if name not in noisy]
    assert sum(counts.false_alarms for counts in quiet) <= 0.05 * sum(counts.clean for counts in quiet)
