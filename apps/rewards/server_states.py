"""Servers with the live state of their replicas, as all processes of the reward service see it together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.accounts.models import Project
from apps.rewards import remote
from apps.rewards.models import ModelServer

_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """pk: None for a server of the operator. state: of ReplicaState, `unknown` where no process answers.

    Counts are sums over processes, since each began; seconds are the largest.
    """

    pk: int | None
    address: str
    is_draining: bool
    state: str
    reason: str = ""
    model: str = ""
    dialect: str = ""
    outstanding: int = 0
    requests: int = 0
    errors: int = 0
    tokens: int = 0
    tokens_per_second: float | None = None
    p50: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class ServerView:
    """is_operators: named in TOUCHSTONE_VLLM_SERVERS."""

    name: str
    is_operators: bool
    replicas: list[ReplicaView] = field(default_factory=list)

    @property
    def healthy(self) -> int:
        return sum(replica.state == "serving" for replica in self.replicas)


def server_views(project: Project) -> tuple[list[ServerView], int]:
    """Of the project's servers, and of the operator's that are in use; and how many processes answered."""
    by_process = remote.server_states(project)
    seen: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
    for servers in by_process:
        for server in servers:
            seen.setdefault((server["name"], server["is_operators"]), []).extend(server["replicas"])
    views = [
        _registered(row, seen.get((row.name, False), []))
        for row in ModelServer.objects.filter(project=project).prefetch_related("replicas")
    ]
    for (name, is_operators), replicas in sorted(seen.items()):
        if is_operators:
            addresses = dict.fromkeys(replica["address"] for replica in replicas)
            views.append(
                ServerView(
                    name,
                    True,
                    [
                        _merged(
                            None, address, False, [each for each in replicas if each["address"] == address]
                        )
                        for address in addresses
                    ],
                )
            )
    return views, len(by_process)


def _registered(row: ModelServer, seen: Sequence[Mapping[str, Any]]) -> ServerView:
    """A name that stands for several replicas has a row for each address that was found."""
    views = []
    for replica in row.replicas.all():
        own = [each for each in seen if each["pk"] == replica.pk]
        for address in dict.fromkeys(each["address"] for each in own) or [replica.address]:
            found = [each for each in own if each["address"] == address]
            views.append(_merged(replica.pk, address, replica.is_draining, found))
    return ServerView(row.name, False, views)


def _merged(
    pk: int | None, address: str, is_draining: bool, seen: Sequence[Mapping[str, Any]]
) -> ReplicaView:
    if not seen:
        return ReplicaView(pk, address, is_draining, "draining" if is_draining else _UNKNOWN)
    worst = next((each for each in seen if each["state"] != "serving"), seen[0])
    return ReplicaView(
        pk=pk,
        address=address,
        is_draining=is_draining,
        state=worst["state"],
        reason=worst["reason"],
        model=next((each["model"] for each in seen if each["model"]), ""),
        dialect=next((each["dialect"] for each in seen if each["dialect"]), ""),
        **{
            name: sum(each[name] for each in seen) for name in ("outstanding", "requests", "errors", "tokens")
        },
        tokens_per_second=max(each["tokens_per_second"] or 0.0 for each in seen) or None,
        p50=max(each["p50"] or 0.0 for each in seen) or None,
        p99=max(each["p99"] or 0.0 for each in seen) or None,
    )
