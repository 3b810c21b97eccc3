"""Servers that compute models, and their replicas: added, drained and removed. Changes are audited and announced."""

from django.db import transaction

from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.core.http import outgoing
from apps.core.storage.encryption import encrypted
from apps.core.version_names import check_slug
from apps.rewards.models import Endpoint, ModelServer, Release, ServerReplica
from apps.rewards.servers import DISCOVERED
from apps.rewards.services import Actor, announce_change

MOST_SERVERS, MOST_REPLICAS = 20, 64
LONGEST_ADDRESS, LONGEST_KEY = 500, 2000


@transaction.atomic
def add_replica(*, project: Project, server: str, address: str, key: str = "", by: Actor) -> ServerReplica:
    """The server is made if there is none of that name. key: sent as a bearer token, kept encrypted.

    Raises DomainError for an address that must not be called, Conflict for one that is there already.
    """
    check_slug(server, what="server", pointer="/server")
    address, key = _checked_address(address), key.strip()
    if len(key) > LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise DomainError(
            f"A key has at most {LONGEST_KEY:,} characters, all printable ASCII.", pointer="/key"
        )
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    row = project.model_servers.filter(name=server).first()
    if row is None and project.model_servers.count() >= MOST_SERVERS:
        raise Conflict(f"A project can have at most {MOST_SERVERS} servers; delete one.", pointer="/server")
    row = row or ModelServer.objects.create(project=project, name=server)
    if row.replicas.filter(address=address).exists():
        raise Conflict(f"The server {server} has the replica {address} already.", pointer="/address")
    if row.replicas.count() >= MOST_REPLICAS:
        raise Conflict(f"A server can have at most {MOST_REPLICAS} replicas; remove one.", pointer="/address")
    replica = ServerReplica.objects.create(server=row, address=address, key=encrypted(key))
    _record(row, by, "server.replica_added", address)
    return replica


@transaction.atomic
def set_draining(*, replica: ServerReplica, is_draining: bool, by: Actor) -> ServerReplica:
    """A replica that drains answers what it was sent, and gets no new batches."""
    ServerReplica.objects.filter(pk=replica.pk).update(is_draining=is_draining)
    replica.is_draining = is_draining
    verb = "server.replica_drained" if is_draining else "server.replica_resumed"
    _record(replica.server, by, verb, replica.address)
    return replica


@transaction.atomic
def remove_replica(*, replica: ServerReplica, by: Actor) -> None:
    """What it was sent is still answered."""
    _record(replica.server, by, "server.replica_removed", replica.address)
    replica.delete()


@transaction.atomic
def delete_server(*, server: ModelServer, by: Actor) -> None:
    """Raises Conflict where an endpoint serves or may serve a model by it."""
    users = [str(endpoint) for endpoint in endpoints_that_use(server)]
    if users:
        raise Conflict(
            f"The server {server} computes a model of {', '.join(users)}; deploy a revision without it first."
        )
    _record(server, by, "server.deleted", "")
    server.delete()


def endpoints_that_use(server: ModelServer) -> list[Endpoint]:
    """Whose active or standby revision, or that of an open release, names it."""
    rows = Endpoint.objects.filter(project_id=server.project_id).select_related("active", "standby")
    releases = Release.objects.filter(endpoint__project_id=server.project_id, ended_at=None)
    candidates = {release.endpoint_id: release.revision for release in releases.select_related("revision")}
    return [
        row
        for row in rows
        if any(
            component.get("server") == server.name
            for revision in (row.active, row.standby, candidates.get(row.pk))
            if revision is not None
            for component in revision.spec["components"]
        )
    ]


def _checked_address(text: str) -> str:
    """Raises DomainError with the pointer of the field."""
    address = text.strip().rstrip("/")
    called = address.removeprefix(DISCOVERED)
    if len(address) > LONGEST_ADDRESS:
        raise DomainError(f"An address has at most {LONGEST_ADDRESS} characters.", pointer="/address")
    if called != address and not called.startswith("http://"):
        raise DomainError(
            f"{DISCOVERED} takes http:// only: a certificate is not for the addresses of a name.",
            pointer="/address",
        )
    try:
        outgoing.check_url(called)
    except DomainError as error:
        raise DomainError(error.message, pointer="/address") from error
    if "?" in address or "#" in address:
        raise DomainError(
            "The address must not contain ? or #: paths are appended to it.", pointer="/address"
        )
    return address


def _record(server: ModelServer, by: Actor, verb: str, address: str) -> None:
    data = {"address": address} if address else {}
    record_audit(project=server.project, actor=by, verb=verb, target=server.name, data=data)
    announce_change(server.name)
