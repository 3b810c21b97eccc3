"""The reward service as the web process and the commands reach it: over HTTP, with an internal token."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from touchstone_client import Refused, Retries, RewardClient, RewardServiceError
from touchstone_client.retries import PATIENT
from touchstone_client.transport import Caller

from apps.accounts.models import Project
from apps.rewards.models import Endpoint, EndpointRevision
from apps.rewards.tokens import make_token

ONCE = Retries(attempts=1)
POLL_SECONDS = 0.2


def client_for(endpoint: Endpoint, *, timeout: float) -> RewardClient:
    """A client of the reward service for this endpoint that tries once. Close it, or use it as a context manager."""
    slug = endpoint.project.slug
    return RewardClient(
        settings.REWARDS_ADDRESS, endpoint.name, lambda: make_token(slug), retries=ONCE, timeout=timeout
    )


def ask(
    endpoint: Endpoint, verb: str, body: dict[str, Any], *, retries: Retries = PATIENT, timeout: float = 180.0
) -> dict[str, Any]:
    """The service's own reply to `score`, `compare` or `rank`. Raises RewardServiceError."""
    slug = endpoint.project.slug
    caller = Caller(settings.REWARDS_ADDRESS, lambda: make_token(slug), retries=retries, timeout=timeout)
    try:
        reply: dict[str, Any] = caller.call("POST", f"/api/v1/rewards/{endpoint.name}/{verb}", json=body)
        return reply
    finally:
        caller.close()


def dry_run(
    project: Project,
    *,
    spec: Mapping[str, Any],
    artifacts: Mapping[str, str],
    judges: Mapping[str, int],
    trajectory_ids: Sequence[str],
    reasons: bool = False,
    details: bool = False,
    probe: str | None = None,
    retries: Retries = ONCE,
    timeout: float = 240.0,
) -> list[dict[str, Any]]:
    """Results of stored trajectories by a spec that is not deployed. Raises RewardServiceError.

    reasons: each with what moved it; the spec then needs a linear or hybrid model. details: each with the values of its
    components and what they add to each step. probe: of workers.engine.hacking_probes, changes the trajectories.
    """
    caller = Caller(
        settings.REWARDS_ADDRESS, lambda: make_token(project.slug), retries=retries, timeout=timeout
    )
    body = {
        "spec": dict(spec),
        "artifacts": dict(artifacts),
        "judges": dict(judges),
        "trajectory_ids": list(trajectory_ids),
        "reasons": reasons,
        "details": details,
        "probe": probe,
    }
    try:
        results: list[dict[str, Any]] = caller.call("POST", "/internal/dry-run", json=body)["results"]
        return results
    finally:
        caller.close()


def embed_queries(project: Project, texts: Sequence[str], *, timeout: float = 60.0) -> list[list[float]]:
    """[texts, hidden], by the embedded encoder. The first call loads it. Raises RewardServiceError."""
    caller = Caller(settings.REWARDS_ADDRESS, lambda: make_token(project.slug), retries=ONCE, timeout=timeout)
    try:
        vectors: list[list[float]] = caller.call("POST", "/internal/embed", json={"texts": list(texts)})[
            "vectors"
        ]
        return vectors
    finally:
        caller.close()


def server_states(project: Project, *, timeout: float = 3.0) -> list[list[dict[str, Any]]]:
    """By process of the reward service that answers: `{"name", "is_operators", "replicas"}` of each server."""
    found = []
    for address in settings.REWARDS_ADDRESSES:
        caller = Caller(address, lambda: make_token(project.slug), retries=ONCE, timeout=timeout)
        try:
            found.append(caller.call("GET", "/internal/servers")["servers"])
        except RewardServiceError:
            continue  # what the others see is shown
        finally:
            caller.close()
    return found


def wait_until_served(revision: EndpointRevision, *, seconds: float) -> tuple[bool, str]:
    """Whether the service answers with `revision`, waiting for it up to `seconds`, and its state in words."""
    deadline = time.monotonic() + seconds
    with client_for(revision.endpoint, timeout=5.0) as client:
        while True:
            served, note, is_final = _served_state(client, revision)
            if served or is_final or time.monotonic() >= deadline:
                return served, note
            time.sleep(POLL_SECONDS)


def _served_state(client: RewardClient, revision: EndpointRevision) -> tuple[bool, str, bool]:
    """Served; in words; whether waiting cannot change it."""
    try:
        deployed = client.describe()
    except Refused as error:  # it has not read the new endpoint yet
        return False, f"the reward service does not know {revision} yet ({error})", False
    except RewardServiceError as error:
        down = error.status is None
        return False, f"the reward service cannot be reached ({error})", down
    if deployed["version"] == revision.number:
        return True, f"the reward service answers with {revision}", True
    failure = deployed["failure"]
    if failure is not None and failure["version"] == revision.number:
        return False, f"{revision} cannot be served: {failure['detail']}", True
    return False, f"the reward service is still loading {revision}", False
