"""All servers of the installation: the operator's (TOUCHSTONE_VLLM_SERVERS), and those that projects registered."""

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings

from apps.core.errors import DomainError
from apps.core.http import outgoing
from apps.core.storage import artifacts
from apps.rewards.servers import DISCOVERED, ServerKey, operator_addresses, server_key, unknown_server_message
from apps.rewards.serving.servers.pool import ReplicaState, ServerPool
from apps.rewards.serving.servers.replica import ReplicaInfo
from workers.errors import RewardError

if TYPE_CHECKING:
    from workers.engine import Scorer

logger = logging.getLogger(__name__)
EVERY_SECONDS = 1.0
RESOLVE_SECONDS = 10.0
_CHECKS = 8  # at the same time


@dataclass(frozen=True, slots=True)
class ServerState:
    name: str
    is_operators: bool
    replicas: tuple[ReplicaState, ...]


class ModelServers:
    """Follows the registry, and keeps an eye on the replicas with a thread. close: ends it."""

    def __init__(self) -> None:
        self._registered: Mapping[ServerKey, Sequence[ReplicaInfo]] = {}
        self._pools: dict[ServerKey, ServerPool] = {}
        self._found: dict[str, list[str]] = {}  # addresses, by the name that stands for them
        self._not_found: dict[str, str] = {}  # why, by name
        self._lock, self._starting = threading.Lock(), threading.Lock()
        self._closed = threading.Event()
        self._checks = ThreadPoolExecutor(_CHECKS, thread_name_prefix="touchstone-replica")
        self._thread: threading.Thread | None = None

    def follow(self, registered: Mapping[ServerKey, Sequence[ReplicaInfo]]) -> None:
        """registered: the replicas of the servers of projects, as the database has them now."""
        self._registered = registered
        if registered:
            self._start()
        for key, pool in list(self._pools.items()):
            pool.follow(self._replicas(key))

    def resolve(self) -> None:
        """Look up the names that stand for several replicas. What a name had is kept while it cannot be looked up."""
        for key in {*self._registered, *self._pools}:
            for info in self._infos(key):
                if info.address.startswith(DISCOVERED):
                    self._look_up(info.address)
            self._pools.setdefault(key, ServerPool(key[1])).follow(self._replicas(key))

    def __call__(self, artifact: str, project: str, name: str) -> "Scorer":
        """The model of an artifact as the server of that name computes it. Raises RewardError."""
        from workers.models import load_remote  # torch, which importing this module should not cost

        return load_remote(artifacts.stage(artifact), self.pool(self.key(project, name)).connect)

    def key(self, project: str, name: str) -> ServerKey:
        """The project's server of that name, else the operator's. Raises RewardError."""
        key = server_key(project, name, self._registered)
        if key is None:
            own = [server for slug, server in self._registered if slug == project]
            raise RewardError(unknown_server_message(name, own))
        return key

    def pool(self, key: ServerKey) -> ServerPool:
        with self._lock:
            if key not in self._pools:
                self._pools[key] = ServerPool(key[1])
                self.resolve()
        self._start()
        return self._pools[key]

    def states(self, project: str, named: Collection[str]) -> list[ServerState]:
        """Of the project's servers, and of the operator's that it uses. Addresses of the operator are not shown.

        named: the servers that the project's endpoints name.
        """
        found = []
        for (slug, name), pool in self.pools.items():
            is_used = name in named and (project, name) not in self._registered
            if slug != project and not (slug == "" and is_used):
                continue
            replicas = pool.states()
            if slug == "":
                replicas = [
                    replace(each, address=f"replica {place}") for place, each in enumerate(replicas, 1)
                ]
            found.append(ServerState(name, slug == "", tuple(replicas)))
        return found

    def replica_count(self, key: ServerKey) -> int:
        return len(self.pool(key))

    @property
    def pools(self) -> Mapping[ServerKey, ServerPool]:
        return dict(self._pools)

    def check(self) -> None:
        """Ask the replicas that are due."""
        for pool in list(self._pools.values()):
            for call in pool.due_checks():
                self._checks.submit(call)

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        self._checks.shutdown(wait=True, cancel_futures=True)
        for pool in self._pools.values():
            pool.close()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="touchstone-replicas", daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        resolve_at = 0.0
        while not self._closed.wait(EVERY_SECONDS):
            try:
                if time.monotonic() >= resolve_at or self._registered.keys() - self._pools.keys():
                    self.resolve()
                    resolve_at = time.monotonic() + RESOLVE_SECONDS
                self.check()
            except Exception:
                logger.exception("replicas of servers could not be checked")

    def _replicas(self, key: ServerKey) -> list[ReplicaInfo]:
        return [
            replace(info, address=address)
            for info in self._infos(key)
            for address in self._found.get(
                info.address, [] if info.address.startswith(DISCOVERED) else [info.address]
            )
        ]

    def _infos(self, key: ServerKey) -> Sequence[ReplicaInfo]:
        infos = self._registered.get(key)
        if infos is not None:
            return infos
        addresses = operator_addresses(settings.VLLM_SERVERS.get(key[1], ""))
        return [ReplicaInfo.of_operator(address) for address in addresses]

    def _look_up(self, name: str) -> None:
        """name: `dns+http://name:port`."""
        url = urlsplit(name.removeprefix(DISCOVERED))
        port = url.port or 80
        try:
            found = outgoing.addresses_of(url.hostname or "", port)
        except DomainError as error:
            if self._not_found.get(name) != error.message:  # once, not at every look-up
                logger.warning("%s: %s", name, error.message)
            self._not_found[name] = error.message
            return
        self._not_found.pop(name, None)
        hosts = [f"[{address}]" if ":" in address else address for address in found]
        self._found[name] = [f"http://{host}:{port}{url.path}" for host in hosts]
