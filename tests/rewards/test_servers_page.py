"""Servers and their replicas on the page and over the JSON API, with what the reward service sees of them."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import AuditEvent, Membership, Project, Role, Scope, User
from apps.accounts.services import create_api_key
from apps.core.errors import Conflict, DomainError
from apps.core.storage.encryption import decrypted
from apps.rewards import server_services
from apps.rewards.models import Endpoint, EndpointRevision, ServerReplica
from apps.rewards.server_services import add_replica, delete_server
from apps.rewards.serving.registry import EndpointInfo, EndpointRegistry, RevisionInfo
from apps.rewards.serving.servers import ModelServers
from benchmarks.pooling_server import PoolingProcess, pooling_processes
from tests.ports import free_port
from tests.rewards.conftest import Service, wait_until

KEY = "key-of-a-server"


@pytest.fixture
def owner(project: Project) -> Client:
    user = User.objects.create(email="olga@example.org")
    Membership.objects.create(project=project, user=user, role=Role.OWNER)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.OUTGOING_ALLOW, settings.OUTGOING_PORTS = ["127.0.0.0/8"], range(1, 2**16)


def test_replicas_are_added_watched_drained_and_removed(
    service: Service, project: Project, owner: Client, researcher_client: Client, settings: Any
) -> None:
    settings.REWARDS_ADDRESSES = [service.url]
    page = f"/p/{project.slug}/endpoints/servers/"
    with pooling_processes([PoolingProcess(free_port())]) as (process,):
        form = {"server": "gpu", "address": f"{process.address}/", "key": KEY}
        assert owner.post(f"{page}add/", form).status_code == 302
        replica = ServerReplica.objects.get()
        assert replica.address == process.address
        assert KEY not in replica.key
        assert decrypted(replica.key) == KEY
        wait_until(lambda: "1 of 1 replica serving" in owner.get(page).content.decode())
        process.kill()
        wait_until(lambda: "Does not respond" in owner.get(f"{page}state/").content.decode())
        seen = researcher_client.get(page).content.decode()
        assert process.address in seen
        assert "New replica" not in seen
        assert KEY not in seen
        again = owner.post(f"{page}add/", form)
        assert again.status_code == 422
        assert "already" in again.content.decode()
        place = f"{page}replicas/{replica.pk}"
        owner.post(f"{place}/drain/")
        wait_until(lambda: "draining" in owner.get(page).content.decode())
        owner.post(f"{place}/drain/", {"resume": "1"})
        assert not ServerReplica.objects.get().is_draining
        owner.post(f"{place}/remove/")
    assert not ServerReplica.objects.exists()
    wait_until(lambda: not len(service.state.servers.pools[project.slug, "gpu"]))
    verbs = AuditEvent.objects.filter(target="gpu").order_by("pk").values_list("verb", flat=True)
    assert [verb.partition("_")[2] for verb in verbs] == ["added", "drained", "resumed", "removed"]


def test_the_same_over_the_json_api(service: Service, project: Project, settings: Any) -> None:
    settings.REWARDS_ADDRESSES = [service.url, "http://127.0.0.1:9"]
    _, secret = create_api_key(project=project, scopes=[Scope.ADMIN])
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    base = f"/api/v1/projects/{project.slug}/servers"
    body = {"address": "http://127.0.0.1:9", "key": KEY}
    made = client.post(f"{base}/gpu/replicas", body, content_type="application/json")
    assert (made.status_code, made.json()["draining"]) == (201, False)
    place = f"{base}/gpu/replicas/{made.json()['id']}"

    def state() -> str:
        listed = client.get(base).json()
        assert listed["processes"] == 1
        assert KEY not in str(listed)
        found: str = listed["items"][0]["replicas"][0]["state"]
        return found

    wait_until(lambda: state() == "out")
    assert client.post(f"{place}/drain", {}, content_type="application/json").json()["draining"]
    wait_until(lambda: state() == "draining")
    assert client.delete(place).status_code == 204
    assert client.delete(place).status_code == 404
    assert client.delete(f"{base}/gpu").status_code == 204
    assert client.get(base).json()["items"] == []


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://10.0.0.1:8100", "is not called"),
        ("http://user:secret@127.0.0.1:8100", "holds a user or password"),
        ("http://127.0.0.1:8100?x=1", "must not contain"),
        ("dns+https://127.0.0.1:8100", "takes http:// only"),
        ("gpu1:8100", "no address to call"),
    ],
)
def test_an_address_that_must_not_be_called(project: Project, address: str, said: str) -> None:
    with pytest.raises(DomainError, match=said) as refused:
        add_replica(project=project, server="gpu", address=address, by=None)
    assert refused.value.pointer == "/address"
    assert not project.model_servers.exists()


def test_a_server_that_an_endpoint_uses_stays(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    server = add_replica(project=project, server="gpu", address="http://127.0.0.1:9", by=None).server
    endpoint = Endpoint.objects.create(project=project, name="reward")
    spec = {"components": [{"name": "big", "model": "big@1", "server": "gpu"}]}
    endpoint.standby = EndpointRevision.objects.create(endpoint=endpoint, number=1, spec=spec)
    endpoint.save()
    with pytest.raises(Conflict, match="computes a model of reward"):
        delete_server(server=server, by=None)
    endpoint.standby = None
    endpoint.save()
    delete_server(server=server, by=None)
    monkeypatch.setattr(server_services, "MOST_SERVERS", 0)
    with pytest.raises(Conflict, match="at most 0 servers"):
        add_replica(project=project, server="gpu", address="http://127.0.0.1:9", by=None)


def test_each_address_of_a_name_is_a_replica(service: Service, project: Project, monkeypatch: Any) -> None:
    found = ["127.0.0.1", "127.0.0.2", "::1"]
    monkeypatch.setattr("apps.rewards.serving.servers.servers.outgoing.addresses_of", lambda *_: found)
    add_replica(project=project, server="gpu", address="dns+http://127.0.0.1:9", by=None)
    key = (project.slug, "gpu")
    wait_until(lambda: len(service.state.servers.pools.get(key, ())) == 3)
    addresses = [state.address for state in service.state.servers.pools[key].states()]
    assert addresses == ["http://127.0.0.1:9", "http://127.0.0.2:9", "http://[::1]:9"]
    found.pop()
    service.state.servers.resolve()
    assert len(service.state.servers.pools[key]) == 2


def test_servers_of_the_operator_are_seen_by_projects_that_use_them(settings: Any) -> None:
    settings.VLLM_SERVERS = {"gpu": "http://127.0.0.1:9"}
    spec = {
        "components": [{"name": "big", "model": "big@1", "server": "gpu"}, {"name": "own", "model": "own@1"}]
    }
    standby = RevisionInfo(1, spec, {})
    endpoint = EndpointInfo(1, "reward", "desk", None, False, "", standby=standby)
    registry = EndpointRegistry(endpoints={("desk", "reward"): endpoint})
    servers = ModelServers()
    try:
        servers.pool(("", "gpu"))
        (seen,) = servers.states("desk", registry.servers_named_by("desk"))
        assert (seen.name, seen.replicas[0].address) == ("gpu", "replica 1")
        assert servers.states("other", registry.servers_named_by("other")) == []
    finally:
        servers.close()
