"""One installation with everything embedded, under random faults, under load, and over long work.

`python -m benchmarks.faults` runs the same at full size.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import chaos, load, memory, scenario
from tests.faults.ledger import Ledger
from tests.faults.scenario import Installation, installation

pytestmark = pytest.mark.long
SECONDS = 5.0
# The broker is emptied, and everything but beat is killed once, the supervisor and the database too.
SEEDS = (0, 4)


@pytest.fixture(scope="module")
def installed(models: Path) -> Iterator[Installation]:
    with installation(models, load.environment() | memory.environment()) as installed:
        yield installed


def test_random_faults(installed: Installation) -> None:
    """`python -m benchmarks.faults --seeds SEED` replays one of the plans, over a longer time."""
    installed.stack.add("second gpu", "worker", "gpu")
    plans = {seed: chaos.plan(seed, SECONDS, every=1.2) for seed in SEEDS}
    ledger = scenario.endure(installed, plans, SECONDS)
    assert ledger.violations == [], ledger.faults
    assert ledger.judgements and ledger.trajectories and ledger.runs and ledger.answers["scorer 200"]


def test_memory_stays_flat(installed: Installation) -> None:
    """At this size only a leak of a megabyte a page or request would show."""
    scored = memory.requests(installed, 800)
    read = memory.page_views(installed, 40)
    assert scored["growth_mib"] < 80, scored
    assert read["growth_mib"] < 60, read


def test_rewards_under_load(installed: Installation) -> None:
    table = load.run(installed, clients=12, seconds=10.0, kills=3, database_away=2.0)
    assert table["wrong"] == 0 and table["not_retryable"] == [] and table["violations"] == []
    assert table["right"] > 50 and table["replicas killed"] > 1 and table["versions_served"] > 1
    assert table["spoilt artifacts refused"] == 1
    assert not any("without Retry-After" in name for name in table)
    assert table["large requests answered 429"] > 0
    assert table["usage"]["counted"] > 0


def test_at_the_end_nothing_is_left(installed: Installation) -> None:
    ledger = Ledger()
    scenario.end(installed, ledger)
    assert ledger.violations == []
