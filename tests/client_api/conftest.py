"""A project on a running server, its client, and workers in a thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import pytest
from django.db import connection
from touchstone_client import AsyncClient, Client, Retries

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key, create_project
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.datasets.models import DatasetVersion
from apps.datasets.version_builder import build_dataset_version
from apps.lifecycle.archive_jobs import build_project_export
from apps.lifecycle.models import ProjectExport
from apps.training import runner
from apps.training.models import TrainingRun

T = TypeVar("T")
ONCE = Retries(attempts=1)


@pytest.fixture
def project(transactional_db: None) -> Project:
    return create_project(slug="desk")


@pytest.fixture
def key(project: Project) -> str:
    return create_api_key(project=project, scopes=list(Scope.values))[1]


@pytest.fixture
def client(live_server: Any, project: Project, key: str) -> Iterator[Client]:
    with Client(live_server.url, project.slug, key, retries=ONCE) as client:
        yield client


@pytest.fixture
def with_async(live_server: Any, project: Project, key: str) -> Callable[..., Any]:
    """with_async(function): what the coroutine function returns for an AsyncClient."""

    def run(function: Callable[[AsyncClient], Coroutine[Any, Any, T]]) -> T:
        async def call() -> T:
            async with AsyncClient(live_server.url, project.slug, key, retries=ONCE) as client:
                return await function(client)

        return asyncio.run(call())

    return run


_JOBS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (DatasetVersion, build_dataset_version),
    (TrainingRun, runner.execute),
    (ProjectExport, build_project_export),
)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch, own_home: Any) -> Iterator[None]:
    """What workers do, in a thread; a training ends immediately."""
    monkeypatch.setattr(runner, "CHILD", "tests.training.fake_child")
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.02):
            for model, execute in _JOBS:
                if (job := job_queue.claim_next(model)) is not None:
                    with suppress(DomainError):
                        execute(job)
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join(20)


CHATS = [
    {
        "task": f"case-{number // 2}",
        "messages": [
            {"role": "user", "content": f"Where is parcel {number // 2}?"},
            {"role": "assistant", "content": f"Answer {number}: it comes on day {number}."},
        ],
    }
    for number in range(8)
]


def comparison(number: int, campaign: str = "Answers") -> dict[str, Any]:
    a, b = CHATS[2 * number]["messages"], CHATS[2 * number + 1]["messages"]
    return {
        "task": {"id": f"case-{number}"},
        "a": {"messages": a},
        "b": {"messages": b},
        "choice": "a" if number % 2 else "b",
        "annotator": "ann",
        "campaign": campaign,
    }
