"""A reward service with the endpoint `desk`, which pays for letters."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from touchstone_client import RewardClient

from apps.accounts.models import Scope
from apps.accounts.services import create_api_key, create_project
from apps.rewards.services import deploy
from tests.rewards.conftest import make_model, running_service, serves, wait_until
from tests.workers.engine.fakes import FakeModel


@dataclass(frozen=True)
class DeskService:
    """key: with the scope `reward`."""

    url: str
    key: str


@pytest.fixture
def desk_service() -> Iterator[DeskService]:
    project = create_project(slug="desk")
    key = create_api_key(project=project, scopes=[Scope.REWARD])[1]
    with running_service() as service:
        deploy(
            model=make_model(project, service, FakeModel(factor=0.1)),
            endpoint_name="desk",
            project=project,
            by=None,
        )
        wait_until(lambda: serves(service, "desk", 1))
        yield DeskService(service.url, key)


@pytest.fixture
def client(desk_service: DeskService) -> Iterator[RewardClient]:
    with RewardClient(desk_service.url, "desk", desk_service.key, run="example") as client:
        yield client
