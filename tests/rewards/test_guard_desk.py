"""The guard in front of the sample world's agents, over HTTP, and with the service killed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from touchstone_client import RewardClient
from touchstone_client.retries import Retries

from apps.demo.world import TASKS
from apps.rewards.services import put_spec
from benchmarks.guard_desk import desk_checks, measure_guard
from tests.rewards.conftest import serves, wait_until
from tests.rewards.test_guard import _is_closed
from workers.schema.policy_checks import check_values

Measure = Callable[..., dict[str, Any]]


@pytest.fixture
def desk(service: Any, endpoint: str, project: Any) -> str:
    checks = [check_values(check) for check in desk_checks()]
    spec = {"components": [{"name": "policy", "type": "policy_checks", "checks": checks}]}
    version = put_spec(project=project, endpoint_name=endpoint, spec=spec, by=None).number
    wait_until(lambda: serves(service, endpoint, version))
    return endpoint


def test_in_front_of_the_agents_of_the_sample_world(service: Any, desk: str, key: str) -> None:
    tasks = list(TASKS.values())[::4]
    with RewardClient(service.url, desk, key, retries=Retries(attempts=1), timeout=5) as client:
        found = measure_guard(client.guard, tasks, 1, ["desk-a", "desk-e"])
        assert found["violating"] > 5 and found["prevented"][0] > 0.2
        assert found["good"] > 5 and found["blocked"][0] < 0.2 and found["reads_denied"] == 0
        low, high = found["prevented"][1:]
        assert low <= found["prevented"][0] <= high
        service.server.should_exit = True
        wait_until(lambda: _is_closed(service.url))
        opened = measure_guard(partial(client.guard, on_failure="allow"), tasks[:3], 1, ["desk-e"])
        closed = measure_guard(partial(client.guard, on_failure="deny"), tasks[:3], 1, ["desk-e"])
    assert opened["prevented"][0] == 0 and opened["reward_gain"][0] == 0
    assert closed["prevented"][0] == 1 and closed["reads_denied"] > 0
