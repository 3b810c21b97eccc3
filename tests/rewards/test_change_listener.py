"""What was written a moment ago is known when it is asked for."""

import asyncio
import time
from collections.abc import Iterator

import httpx
import pytest
from django.db import OperationalError

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key, create_project
from apps.rewards.services import deploy
from apps.rewards.serving import change_listener
from apps.rewards.serving.change_listener import ChangeListener
from apps.rewards.serving.registry import EndpointRegistry
from tests.rewards.conftest import Service, make_model, running_service, wait_until
from tests.workers.engine.fakes import FakeModel


@pytest.fixture
def deaf(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service that hears of nothing, and looks by itself once an hour."""
    monkeypatch.setattr(change_listener, "CHANNELS", ())
    monkeypatch.setattr(change_listener, "EVERY_SECONDS", 3600.0)
    with running_service() as running:
        wait_until(lambda: running.state.listener.reads == 1)
        yield running


def _described(service: Service, key: str, endpoint: str = "fresh") -> httpx.Response:
    url = f"{service.url}/api/v1/rewards/{endpoint}"
    return httpx.get(url, headers={"Authorization": f"Bearer {key}"})


def test_a_key_and_an_endpoint_made_just_now_are_known(deaf: Service, project: Project) -> None:
    key = create_api_key(project=project, scopes=[Scope.REWARD])[1]
    deploy(model=make_model(project, deaf, FakeModel()), endpoint_name="fresh", project=project, by=None)
    assert _described(deaf, key).status_code in (200, 503)  # known, if perhaps not loaded yet
    assert deaf.state.listener.reads == 2


def test_what_is_not_there_is_looked_for_and_refused(deaf: Service, project: Project) -> None:
    key = create_api_key(project=project, scopes=[Scope.REWARD])[1]
    other = create_api_key(project=create_project(slug="other"), scopes=[Scope.REWARD])[1]
    deploy(model=make_model(project, deaf, FakeModel()), endpoint_name="fresh", project=project, by=None)
    assert _described(deaf, key, "nothing").status_code == 404
    assert deaf.state.listener.reads == 3  # for the key, for the endpoint
    # A stranger learns nothing, not by the time it takes either.
    assert _described(deaf, other).status_code == 404
    assert deaf.state.listener.reads == 4
    assert _described(deaf, "tsk_unknown").status_code == 401
    assert deaf.state.listener.reads == 5


def test_without_a_key_nothing_is_looked_for(deaf: Service) -> None:
    assert httpx.get(f"{deaf.url}/api/v1/rewards/fresh").status_code == 401
    assert deaf.state.listener.reads == 1


def test_who_waits_together_shares_a_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_listener, "read_registry", EndpointRegistry)
    watcher = ChangeListener(lambda directory: None)

    async def hammered() -> list[int]:
        reads = []
        for _ in range(3):
            await asyncio.gather(*(watcher.catch_up() for _ in range(50)))
            reads.append(watcher.reads)
        return reads

    began = time.monotonic()
    reads = asyncio.run(hammered())
    watcher.close()
    assert reads[-1] <= 1 + (time.monotonic() - began) / change_listener.SPACING_SECONDS
    assert reads[0] >= 1 and reads == sorted(set(reads))  # each time again


def test_without_a_database_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def fails() -> EndpointRegistry:
        tried.append(1)
        raise OperationalError("away")

    monkeypatch.setattr(change_listener, "read_registry", fails)
    watcher = ChangeListener(lambda directory: None)
    asyncio.run(watcher.catch_up())
    assert tried == [1]
    watcher.unreachable_since = time.time()
    asyncio.run(watcher.catch_up())
    watcher.close()
    assert tried == [1]
