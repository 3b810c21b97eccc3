"""A real GPU worker that is killed in the middle of a bulk job: the benchmark with 1,200 items."""

import pytest

from tests.benchmarks.quick_runs import run_quick_process

pytestmark = pytest.mark.slow


def test_each_item_is_scored_once_though_the_worker_is_killed(db: None) -> None:
    found = run_quick_process("bulk", "--kind", "linear")["linear"]
    assert (found["items"], found["results"], found["missing"], found["problems"]) == (1200, 1200, 0, 0)
    assert found["kills"] == 1 and found["repeated_chunks"] > 0
    assert found["max_difference"] < 1e-5
    assert found["ratio"] > 0
