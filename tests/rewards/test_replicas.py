"""Several replicas that share nothing but the database, and one that is asked to end."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from apps.rewards.models import Endpoint, ScoreRollup
from apps.rewards.services import deploy, switch_off, switch_on
from apps.rewards.serving import change_listener
from tests.rewards.conftest import Service, make_model, running_service, serves, wait_until
from tests.workers.engine.fakes import FakeModel

WITHIN = 5.0  # seconds


@pytest.fixture
def replicas(transactional_db: None) -> Iterator[list[Service]]:
    with running_service() as first, running_service() as second:
        yield [first, second]


def ask(service: Service, key: str, text: str = "hello") -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    url = f"{service.url}/api/v1/rewards/reward/score"
    return httpx.post(url, headers=headers, json={"inputs": [{"text": text}]}, trust_env=False, timeout=30)


@pytest.fixture
def deployed(replicas, project, key) -> list[Service]:
    """The key comes first: who sees the endpoint knows it."""
    model = make_model(project, replicas[0], FakeModel())
    replicas[1].models |= replicas[0].models
    deploy(model=model, endpoint_name="reward", project=project, by=None)
    wait_until(lambda: all(serves(service, "reward", 1) for service in replicas))
    return replicas


def refused_by_all(replicas: list[Service], key: str) -> bool:
    replies = [ask(service, key) for service in replicas]
    return all(reply.status_code == 503 and "it hacks" in reply.json()["detail"] for reply in replies)


def test_the_off_switch_is_followed_by_every_replica(deployed, key) -> None:
    assert [ask(service, key).status_code for service in deployed] == [200, 200]
    switch_off(endpoint=Endpoint.objects.get(), reason="it hacks", by=None)
    wait_until(lambda: refused_by_all(deployed, key), WITHIN)
    switch_on(endpoint=Endpoint.objects.get(), by=None)
    wait_until(lambda: [ask(service, key).status_code for service in deployed] == [200, 200], WITHIN)


def test_and_when_the_notice_of_it_is_lost(deployed, key) -> None:
    Endpoint.objects.update(switched_off=True, switched_off_reason="it hacks")  # no one is told
    assert change_listener.EVERY_SECONDS < WITHIN
    wait_until(lambda: refused_by_all(deployed, key), WITHIN)


def test_asked_to_end_it_answers_what_it_was_asked_and_counts_it(project, key) -> None:
    with running_service() as service:
        going, go_on = threading.Event(), threading.Event()
        fake = FakeModel()
        scored = fake.score

        def slowly(*args, **options):
            going.set()
            go_on.wait(10)
            return scored(*args, **options)

        model = make_model(project, service, fake)
        deploy(model=model, endpoint_name="reward", project=project, by=None)
        wait_until(lambda: serves(service, "reward", 1))
        fake.score = slowly
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(ask, service, key, "the last one")
            assert going.wait(10)
            service.server.should_exit = True
            wait_until(lambda: not service.server.servers[0].is_serving())
            with pytest.raises(httpx.TransportError):
                ask(service, key, "one too late")
            go_on.set()
            assert asked.result(20).status_code == 200
    assert ScoreRollup.objects.get().requests == 1
