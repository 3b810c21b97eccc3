"""A revision on standby is loaded and warm, answers nothing, and takes over, forth and back, without being loaded."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from apps.core.errors import Conflict, DomainError
from apps.rewards.models import Endpoint
from apps.rewards.services import (
    STANDBY,
    ReleaseOptions,
    deploy,
    promote_release,
    promote_standby,
    rollback,
    set_standby,
    start_release,
)
from tests.rewards.conftest import Service, make_model, serves, wait_until
from tests.workers.engine.fakes import FakeModel


def stand_by(service: Service, project: Any, endpoint: str, model: FakeModel | None) -> int:
    row = deploy(
        model=make_model(project, service, model),
        endpoint_name=endpoint,
        project=project,
        by=None,
        release_options=ReleaseOptions(STANDBY),
    )
    return row.number


def described(http: httpx.Client, endpoint: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"/api/v1/rewards/{endpoint}/").json()
    return found


def is_warm(http: httpx.Client, endpoint: str, number: int) -> Callable[[], bool]:
    return lambda: (described(http, endpoint)["standby"] or {}).get("version") == number


def test_it_takes_over_and_back_under_load_and_nothing_is_loaded_for_it(
    service: Service, project: Any, http: httpx.Client, endpoint: str
) -> None:
    stop = threading.Event()

    def keep_asking(caller: int) -> list[tuple[int, int]]:
        seen: list[tuple[int, int]] = []
        with httpx.Client(base_url=service.url, headers=http.headers, trust_env=False, timeout=30) as client:
            while not stop.is_set():
                body = {"inputs": [{"text": f"{caller}-{len(seen)}"}]}
                reply = client.post(f"/api/v1/rewards/{endpoint}/score", json=body)
                seen.append((reply.status_code, reply.json().get("version")))
        return seen

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(keep_asking, caller) for caller in range(4)]
        number = stand_by(service, project, endpoint, second := FakeModel(factor=2.0))
        wait_until(is_warm(http, endpoint, number))
        assert described(http, endpoint)["version"] == 1
        assert len(second.batches) > 1, "it has scored what was scored lately"
        loaded = list(service.loaded)
        for version in (2, 1, 2):
            promote_standby(endpoint=Endpoint.objects.get(), by=None)
            wait_until(partial(serves, service, endpoint, version))
            wait_until(is_warm(http, endpoint, 3 - version))
        stop.set()
        answers = [answer for future in asking for answer in future.result()]
    assert {status for status, _ in answers} == {200}
    assert {version for _, version in answers} == {1, 2}
    assert service.loaded == loaded, "nothing was loaded again"
    set_standby(endpoint=Endpoint.objects.get(), revision=None, by=None)
    wait_until(lambda: len(service.state.deployments._shared) == 1)


def test_what_is_promoted_before_it_is_loaded_answers_once_it_is(
    service: Service, project: Any, http: httpx.Client, endpoint: str
) -> None:
    gate = threading.Event()
    model = FakeModel(factor=2.0)
    model.gate = gate
    stand_by(service, project, endpoint, model)
    wait_until(lambda: service.deployed[endpoint].standby.loading is not None)
    promote_standby(endpoint=Endpoint.objects.get(), by=None)
    wait_until(lambda: described(http, endpoint)["wanted"] == 2)
    assert described(http, endpoint)["version"] == 1
    gate.set()
    wait_until(lambda: serves(service, endpoint, 2))
    wait_until(is_warm(http, endpoint, 1))
    assert (
        http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [{"text": "a"}]}).json()["version"]
        == 2
    )
    assert service.loaded.count("models/desk-politeness-1") == 1, "what answered until now stands by"


def test_a_standby_that_cannot_be_loaded_disturbs_nothing(
    service: Service, project: Any, http: httpx.Client, endpoint: str
) -> None:
    number = stand_by(service, project, endpoint, None)
    wait_until(lambda: (described(http, endpoint)["standby"] or {}).get("failure") is not None)
    assert described(http, endpoint)["failure"] is None
    assert described(http, endpoint)["standby"] | {"failure": 0} == {
        "version": None, "wanted": number, "failure": 0,
    }  # fmt: skip
    assert http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [{"text": "a"}]}).status_code == 200


def test_it_is_released_in_stages_from_standby_and_is_loaded_once(
    service: Service, project: Any, http: httpx.Client, endpoint: str
) -> None:
    number = stand_by(service, project, endpoint, FakeModel(factor=2.0))
    wait_until(is_warm(http, endpoint, number))
    row = Endpoint.objects.get()
    release = start_release(
        revision=row.revisions.get(number=number), release_options=ReleaseOptions("shadow"), by=None
    )
    wait_until(lambda: service.deployed[endpoint].loaded_release is not None)
    assert is_warm(http, endpoint, number)()
    promote_release(release=release, by=None)
    wait_until(lambda: serves(service, endpoint, number))
    wait_until(is_warm(http, endpoint, 1))
    rollback(endpoint=Endpoint.objects.get(), by=None)
    wait_until(lambda: serves(service, endpoint, 1))
    assert service.loaded == ["models/desk-politeness-1", "models/desk-politeness-2"]


def test_what_cannot_stand_by(service: Service, project: Any, endpoint: str) -> None:
    row = Endpoint.objects.get()
    with pytest.raises(Conflict, match="is active"):
        set_standby(endpoint=row, revision=row.active, by=None)
    with pytest.raises(DomainError, match="no standby revision"):
        promote_standby(endpoint=row, by=None)
    with pytest.raises(DomainError, match="nothing can stand by"):
        stand_by(service, project, "fresh", FakeModel())
