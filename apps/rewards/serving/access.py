"""Whether a caller may call: bearer keys, internal tokens and limits, all from memory."""

from dataclasses import dataclass, field

from starlette.requests import Request

from apps.accounts.key_addresses import key_addresses
from apps.accounts.key_gate import NOT_HELD, HeldTo, KeyGate, check_address
from apps.accounts.models import Scope
from apps.accounts.selectors import hash_of
from apps.core.http.client_address import client_address
from apps.rewards.serving.change_listener import ChangeListener
from apps.rewards.serving.context import add_headers
from apps.rewards.serving.deployments import Deployment, Deployments
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.registry import EndpointRegistry
from apps.rewards.tokens import PREFIX, project_of_token

INTERNAL = "internal"


class UnknownKey(Problem):
    """The key is not live, as far as this process knows."""


class UnknownEndpoint(Problem):
    """The caller's project has no endpoint of this name, as far as this process knows."""


@dataclass(frozen=True, slots=True)
class Caller:
    """name: a key's prefix, or INTERNAL. queue_key: projects share the queue, and the keys of each project its part."""

    name: str
    project: str
    limits: HeldTo = NOT_HELD
    queue_key: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "queue_key", (self.project, self.name))


@dataclass(eq=False, slots=True)
class Access:
    """registry: None until the database was read once. What is unknown may be new: the database is read again then."""

    deployments: Deployments
    listener: ChangeListener
    gate: KeyGate
    registry: EndpointRegistry | None = None

    async def admit(self, request: Request, *, query_key: bool = False) -> Caller:
        """The caller, who may ask for rewards. query_key: `?key=` counts too. Raises Problem 401, 403 or 503,
        Forbidden, and OverKeyLimit for a caller that has called too often."""
        if self.registry is None:
            raise Problem(
                "The reward service is starting and has not read the database yet; try again in 2 s.",
                status=503,
                headers={"Retry-After": "2"},
            )
        try:
            caller = find_caller(request, self.registry, query_key=query_key)
        except UnknownKey:
            await self.listener.catch_up()
            caller = find_caller(request, self.registry, query_key=query_key)
        try:
            self.gate.admit(caller.name, caller.limits)
        finally:
            add_headers(request.scope, self.gate.headers(caller.name, caller.limits))
        return caller

    async def deployment(self, caller: Caller, name: str) -> Deployment:
        """The endpoint of this name in the caller's project. Raises UnknownEndpoint, 404: a stranger learns nothing."""
        found = self.deployments.by_key.get((caller.project, name))
        if found is None:
            await self.listener.catch_up()
            found = self.deployments.by_key.get((caller.project, name))
        if found is None:
            raise UnknownEndpoint(f"There is no endpoint {name!r} for this key.", status=404)
        return found


def find_caller(request: Request, registry: EndpointRegistry, *, query_key: bool = False) -> Caller:
    """Raises UnknownKey, Problem 401 or 403, and Forbidden for an address that the key does not allow."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    secret = secret.strip() if scheme.lower() == "bearer" else ""
    if not secret and query_key:
        secret = request.query_params.get("key", "")
    if secret.startswith(PREFIX):
        project = project_of_token(secret)
        if project is None:
            raise _unauthenticated("This internal token is invalid or expired.")
        return Caller(INTERNAL, project)
    key = registry.keys.get(hash_of(secret)) if secret else None
    if key is None or not key.is_live:
        sent = "This key is not valid: unknown, revoked or expired." if secret else "No key was sent."
        where = " or as `?key=KEY`" if query_key else ""
        detail = f"{sent} Send a live API key of the project as `Authorization: Bearer KEY`{where}."
        raise _unauthenticated(detail, UnknownKey if secret else Problem)
    if Scope.REWARD not in key.scopes:
        raise Problem(
            f"This key has the scopes {', '.join(sorted(key.scopes))}; the call needs {Scope.REWARD.value}. "
            f"An owner can create one with `create_api_key {key.project} --scopes {Scope.REWARD.value}`.",
            status=403,
        )
    address = client_address(request)
    check_address(key.limits.networks, address)
    key_addresses.notice(key.prefix, address)  # written when the registry is read
    return Caller(key.prefix, key.project, key.limits)


def _unauthenticated(detail: str, kind: type[Problem] = Problem) -> Problem:
    return kind(detail, status=401, headers={"WWW-Authenticate": 'Bearer realm="touchstone"'})
