"""A Langfuse by its contract, and connectors that are run in the test's own process."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.connectors import services
from apps.connectors.executor import execute
from apps.connectors.models import Connector, ConnectorRun
from apps.connectors.services import ConnectorSpec
from apps.core.jobs import job_queue
from tests.connectors.contract_server import serve
from tests.connectors.langfuse_server import KEYS, LangfuseServer

Run = Callable[[Connector], ConnectorRun]


@pytest.fixture
def outgoing_here(settings: Any) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]


@pytest.fixture
def langfuse(outgoing_here: None) -> Iterator[tuple[LangfuseServer, str]]:
    server = LangfuseServer()
    with serve(server) as url:
        yield server, url


@pytest.fixture
def connector(project: Project, langfuse: tuple[LangfuseServer, str]) -> Connector:
    return make_connector(project, langfuse[1])


def make_connector(project: Project, url: str, **given: Any) -> Connector:
    username, secret = KEYS.split(":")
    spec = ConnectorSpec(**{"name": "Traces", "address": url, "username": username} | given)
    return services.create_connector(project=project, kind="langfuse", spec=spec, secret=secret, by=None)


def pull(connector: Connector, direction: str = "pull") -> ConnectorRun:
    """One run to its end, in this process."""
    run = services.start_run(connector=connector, direction=direction, by=None, is_claimed=True)
    job_queue.work(run, execute)
    run.refresh_from_db()
    connector.refresh_from_db()
    return run
