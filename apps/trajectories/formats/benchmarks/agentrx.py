"""AgentRx's tau-bench runs: tau-bench results whose messages have an `index`, counted from 1.

`records` of a run says where it went wrong, as `reward` does: metadata and outcome take them, the steps never.
"""

from typing import Any

from apps.trajectories.formats.benchmarks import tau_bench
from workers.schema import Trajectory

SIGN = "an object with `task_id` and a `traj` whose messages have an `index`"
READ = tau_bench.READ


def sniff(document: Any) -> bool:
    if not tau_bench.sniff(document):
        return False
    first = next(iter(document["traj"]), None)
    return isinstance(first, dict) and "index" in first


def read(document: Any) -> Trajectory:
    return tau_bench.read(document)
