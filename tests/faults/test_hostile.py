"""`python -m benchmarks.hostile` at a size for CI: hostile input, and another project that notices nothing.

What takes time on a machine that does other work too is the benchmark's to judge.
"""

from pathlib import Path

import pytest

from benchmarks import hostile

pytestmark = pytest.mark.long


def test_hostile_input_ends_in_answers(models: Path) -> None:
    found = hostile.run(count=120, seed=1, attackers=2, models=models, resting_seconds=2.0)
    assert [fault for fault in found["faults"] if "p95" not in fault] == []
    assert found["count"] == 120
    assert len(found["statuses"]) >= 9, found["statuses"]
