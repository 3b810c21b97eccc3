"""Who calls, and whether they may: bearer keys and internal tokens, all from memory."""

from dataclasses import dataclass

from starlette.requests import Request

from apps.accounts.key_addresses import key_addresses
from apps.accounts.key_gate import NOT_HELD, HeldTo, check_address
from apps.accounts.models import Scope
from apps.accounts.selectors import hash_of
from apps.core.http.client_address import client_address
from apps.rewards.serving.deployments import Deployment, Deployments
from apps.rewards.serving.directory import Directory
from apps.rewards.serving.problems import Problem
from apps.rewards.tokens import PREFIX, project_of_token
from workers.engine import Version

INTERNAL = "internal"


class UnknownKey(Problem):
    """A key was sent that is not live, as far as is known."""


class UnknownEndpoint(Problem):
    """An endpoint was named that the caller has not, as far as is known."""


@dataclass(frozen=True, slots=True)
class Caller:
    name: str  # a key's prefix, or INTERNAL
    project: str
    limits: HeldTo = NOT_HELD

    @property
    def turn(self) -> tuple[str, str]:
        """Whose turn its work takes, among projects and their keys."""
        return self.project, self.name


def caller_of(request: Request, directory: Directory, *, query_key: bool = False) -> Caller:
    """The caller, who may ask for rewards. query_key: `?key=` counts too. Raises UnknownKey, Problem 401, 403,
    Forbidden."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    secret = secret.strip() if scheme.lower() == "bearer" else ""
    if not secret and query_key:
        secret = request.query_params.get("key", "")
    if secret.startswith(PREFIX):
        project = project_of_token(secret)
        if project is None:
            raise _unauthenticated("This internal token is not valid or too old.")
        return Caller(INTERNAL, project)
    key = directory.keys.get(hash_of(secret)) if secret else None
    if key is None or not key.is_live:
        sent = "This key is not valid: unknown, revoked or expired." if secret else "No key was sent."
        where = " or as `?key=KEY`" if query_key else ""
        detail = f"{sent} Send a live API key of the project as `Authorization: Bearer KEY`{where}."
        raise _unauthenticated(detail, UnknownKey if secret else Problem)
    if Scope.REWARD not in key.scopes:
        raise Problem(
            f"This key has the scopes {', '.join(sorted(key.scopes))}; the call needs {Scope.REWARD.value}. "
            f"An owner can make one with `create_api_key {key.project} --scopes {Scope.REWARD.value}`.",
            status=403,
        )
    address = client_address(request)
    check_address(key.limits.networks, address)
    key_addresses.notice(key.prefix, address)  # written when the directory is read
    return Caller(key.prefix, key.project, key.limits)


def deployment_for(caller: Caller, name: str, deployments: Deployments) -> Deployment:
    """The endpoint of this name in the caller's project. Raises UnknownEndpoint, 404: a stranger learns nothing."""
    deployment = deployments.by_key.get((caller.project, name))
    if deployment is None:
        raise UnknownEndpoint(f"There is no endpoint {name!r} for this key.", status=404)
    return deployment


def serving_version(deployment: Deployment) -> Version:
    """What answers now. Raises Problem 503 when switched off or not loaded."""
    info = deployment.info
    if info.switched_off:
        why = f": {info.reason}" if info.reason else "."
        raise Problem(f"The endpoint {info.name} is switched off{why}", status=503, switched_off=True)
    if deployment.version is not None:
        return deployment.version
    if info.revision is None:
        raise Problem(
            f"Nothing is deployed on {info.name} yet; `deploy MODEL {info.name}` does that.", status=503
        )
    if deployment.failure is not None:
        raise Problem(
            f"{info.name}@{deployment.failure.number} cannot be served: {deployment.failure.detail}",
            status=503,
            headers={"Retry-After": "30"},  # when it is tried again
        )
    raise Problem(f"{info.name} is being loaded.", status=503, headers={"Retry-After": "2"})


def _unauthenticated(detail: str, kind: type[Problem] = Problem) -> Problem:
    return kind(detail, status=401, headers={"WWW-Authenticate": 'Bearer realm="touchstone"'})
