"""`client.servers`: the vLLM and SGLang servers that compute models, and their replicas. Scope `admin`."""

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import Calls, DriverT, Request, given, operation, read_nothing


@api_object
class ReplicaState(ApiObject):
    """id: None for a server of the operator. state: serving, out, other model, draining or unknown, with its reason.

    Counts are of all processes of the reward service since they began. p50, p99: seconds of a batch."""

    address: str
    id: int | None = None
    draining: bool = False
    state: str = "unknown"
    reason: str = ""
    model: str = ""
    dialect: str = ""
    outstanding_tokens: int = 0
    requests: int = 0
    errors: int = 0
    tokens: int = 0
    tokens_per_second: float | None = None
    p50: float | None = None
    p99: float | None = None

    def __str__(self) -> str:
        return str(self.id)


@api_object
class ModelServer(ApiObject):
    """operator: whether TOUCHSTONE_VLLM_SERVERS names it, so that it cannot be changed here."""

    name: str
    operator: bool = False
    replicas: tuple[ReplicaState, ...] = ()

    def __str__(self) -> str:
        return self.name


@api_object
class ModelServers(ApiObject):
    """processes: of the reward service that told of their replicas."""

    items: tuple[ModelServer, ...] = ()
    processes: int = 0


@api_object
class Replica(ApiObject):
    id: int
    server: str
    address: str
    draining: bool = False

    def __str__(self) -> str:
        return str(self.id)


class Servers(Calls[DriverT]):
    """Scope `admin`."""

    @operation
    def get(self) -> Request[ModelServers]:
        """All servers, with the state of their replicas."""
        return Request("GET", self._path("servers"), ObjectReader(ModelServers))

    @operation
    def add_replica(
        self, server: str | ModelServer, address: str, *, key: str | None = None
    ) -> Request[Replica]:
        """Add a replica; the server is created if new.

        address: `http://host:port`, or `dns+http://name:port` for a replica at each address of the name. key: sent as
        a bearer token; stored encrypted, never returned.
        """
        body = {"address": address, **given(key=key)}
        return Request("POST", self._path("servers", server, "replicas"), _read, json=body)

    @operation
    def drain(
        self, server: str | ModelServer, replica: int | Replica | ReplicaState, *, draining: bool = True
    ) -> Request[Replica]:
        """Send no new batches to a replica; draining=False resumes it."""
        path = self._path("servers", server, "replicas", replica, "drain")
        return Request("POST", path, _read, json={"draining": draining})

    @operation
    def remove_replica(
        self, server: str | ModelServer, replica: int | Replica | ReplicaState
    ) -> Request[None]:
        return Request("DELETE", self._path("servers", server, "replicas", replica), read_nothing)

    @operation
    def delete(self, server: str | ModelServer) -> Request[None]:
        """Delete a server that no endpoint uses."""
        return Request("DELETE", self._path("servers", server), read_nothing)


_read = ObjectReader(Replica)
