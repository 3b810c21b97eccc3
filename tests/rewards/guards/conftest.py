"""A guarded endpoint for the packages of agents, which are installed next to the environment (.ci/peers.txt)."""

import asyncio
import sys
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from touchstone_client import AsyncRewardClient, RewardClient
from touchstone_client.retries import Retries

from apps.rewards.services import put_spec
from tests.peer_modules import PEERS
from tests.rewards.conftest import serves, wait_until
from tests.rewards.test_guard import _is_closed

CHECKS: list[dict[str, Any]] = [
    {
        "name": "no admins",
        "tools": ["delete_*"],
        "argument": {"path": "user", "at_most": 0},
        "reason": "Administrators delete.",
    },
    {"name": "limit", "tools": ["refund"], "argument": {"path": "amount", "at_most": 50}, "effect": "ask"},
]


@pytest.fixture(autouse=True)
def peers() -> Iterator[None]:
    """At the end of the path: what both have is the environment's."""
    sys.path.append(str(PEERS))
    yield
    sys.path.remove(str(PEERS))


@dataclass
class Guarded:
    service: Any
    endpoint: str
    key: str
    clients: list[RewardClient] = field(default_factory=list)
    async_clients: list[AsyncRewardClient] = field(default_factory=list)

    def client(self) -> RewardClient:
        self.clients.append(
            RewardClient(self.service.url, self.endpoint, self.key, retries=Retries(attempts=1), timeout=5)
        )
        return self.clients[-1]

    def async_client(self) -> AsyncRewardClient:
        client = AsyncRewardClient(
            self.service.url, self.endpoint, self.key, retries=Retries(attempts=1), timeout=5
        )
        self.async_clients.append(client)
        return client

    def play(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run it, and close the clients in the same loop."""

        async def run() -> Any:
            try:
                return await work
            finally:
                for client in self.async_clients:
                    await client.close()

        return asyncio.run(run())

    def kill(self) -> None:
        self.service.server.should_exit = True
        wait_until(lambda: _is_closed(self.service.url))


@pytest.fixture
def guarded(service: Any, endpoint: str, key: str, project: Any) -> Iterator[Guarded]:
    spec = {"components": [{"name": "policy", "type": "policy_checks", "checks": CHECKS}]}
    version = put_spec(project=project, endpoint_name=endpoint, spec=spec, by=None).number
    wait_until(lambda: serves(service, endpoint, version))
    found = Guarded(service, endpoint, key)
    yield found
    for client in found.clients:
        client.close()
