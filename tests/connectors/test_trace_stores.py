"""LangSmith and Weave by their contracts: every page, each trace once."""

from collections.abc import Iterator
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.connectors import services
from apps.connectors.models import Connector, PulledDocument
from apps.connectors.services import ConnectorSpec
from apps.connectors.sources import langsmith as langsmith_source
from apps.connectors.sources import weave as weave_source
from apps.connectors.sources.source import DocumentProblem
from apps.connectors.sources.trace_store import TraceParts
from apps.trajectories.models import Trajectory
from tests.connectors import langsmith_server, weave_server
from tests.connectors.conftest import pull
from tests.connectors.contract_server import serve
from tests.connectors.langsmith_server import LangSmithServer
from tests.connectors.weave_server import WeaveServer


@pytest.fixture
def langsmith(outgoing_here: None) -> Iterator[tuple[LangSmithServer, str]]:
    server = LangSmithServer()
    with serve(server) as url:
        yield server, url


@pytest.fixture
def weave(outgoing_here: None) -> Iterator[tuple[WeaveServer, str]]:
    server = WeaveServer()
    with serve(server) as url:
        yield server, url


def connect(project: Project, kind: str, url: str, secret: str, options: dict[str, str]) -> Connector:
    spec = ConnectorSpec(name=kind, address=url, options=options)
    return services.create_connector(project=project, kind=kind, spec=spec, secret=secret, by=None)


def messages() -> list[list[str]]:
    return [
        ["".join(part["text"] for part in step.message) for step in row.steps.order_by("index")]
        for row in Trajectory.objects.order_by("pk")
    ]


EXPECTED = [[f"Question {number}?", f"Answer {number}."] for number in range(5)]


def test_langsmith(
    project: Project, langsmith: tuple[LangSmithServer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, url = langsmith
    monkeypatch.setattr(langsmith_source, "_PAGE", 2)
    server.page = 1  # of the runs of a trace, too
    roots = [server.add(number) for number in range(5)]
    connector = connect(project, "langsmith", url, langsmith_server.KEY, {"project": "support"})
    run = pull(connector)
    assert (run.state, run.created, run.rejected) == ("succeeded", 5, [])
    assert messages() == EXPECTED
    document = PulledDocument.objects.get(source_id=roots[0])
    assert document.target == {"trace": roots[0], "run": roots[0], "session": langsmith_server.SESSION}
    assert pull(connector).created == 0
    server.runs[0]["feedback_stats"] = {"ours": {"n": 1}}
    connector.cursor = {}
    connector.save()
    again = pull(connector)
    assert (again.created, again.duplicates) == (0, 5)


def test_langsmith_without_the_project(project: Project, langsmith: tuple[LangSmithServer, str]) -> None:
    run = pull(connect(project, "langsmith", langsmith[1], langsmith_server.KEY, {"project": "other"}))
    assert "has no tracing project 'other'" in run.error


def test_weave(project: Project, weave: tuple[WeaveServer, str], monkeypatch: pytest.MonkeyPatch) -> None:
    server, url = weave
    monkeypatch.setattr(weave_source, "_PAGE", 2)
    traces = [server.add(number) for number in range(5)]
    connector = connect(project, "weave", url, weave_server.KEY, {"project": weave_server.PROJECT})
    run = pull(connector)
    assert (run.state, run.created, run.rejected) == ("succeeded", 5, [])
    assert messages() == EXPECTED
    assert set(PulledDocument.objects.values_list("source_id", flat=True)) == set(traces)
    assert pull(connector).created == 0


def test_weave_since(project: Project, weave: tuple[WeaveServer, str]) -> None:
    server, url = weave
    server.add(0)
    server.add(24 * 60)
    options = {"project": weave_server.PROJECT, "since": "2026-01-02"}
    assert pull(connect(project, "weave", url, weave_server.KEY, options)).created == 1
    assert pull(connect_named(project, url, "team/none")).error.startswith("127.0.0.1")


def connect_named(project: Project, url: str, name: str) -> Connector:
    spec = ConnectorSpec(name=name, address=url, options={"project": name})
    return services.create_connector(
        project=project, kind="weave", spec=spec, secret=weave_server.KEY, by=None
    )


def test_a_server_that_never_ends_a_trace_is_left(settings: Any) -> None:
    settings.MAX_RECORD_BYTES = 2**20
    repeated = TraceParts()
    repeated.add([{"id": 1}], "next")
    with pytest.raises(DocumentProblem, match="repeats a page"):
        repeated.add([{"id": 1}], "next")
    large = TraceParts()
    with pytest.raises(DocumentProblem, match="more than 1 MB"):
        for number in range(100):
            large.add([{"text": "x" * 100_000}], number)
