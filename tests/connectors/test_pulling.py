"""Each trace once, however often a pull is run, killed or limited, and whatever came late."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.connectors import pulling, services
from apps.connectors.executor import execute
from apps.connectors.models import Connector, ConnectorRun, PulledDocument
from apps.connectors.sources import langfuse as langfuse_source
from apps.connectors.sources import peer_client
from apps.core.jobs import job_queue, shutdown
from apps.core.jobs.job_queue import JobState
from apps.trajectories.models import Trajectory
from tests.connectors.conftest import make_connector, pull
from tests.connectors.contract_server import Answer, serve, too_many
from tests.connectors.langfuse_server import LangfuseServer

Langfuse = tuple[LangfuseServer, str]


def at(minutes: int) -> str:
    """So many minutes after a morning long ago."""
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def recently(minutes: float) -> str:
    moment = datetime.now(UTC) - timedelta(minutes=minutes)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counts(run: ConnectorRun) -> tuple[str, int, int, int]:
    return run.state, run.created, run.duplicates, run.rejected_count


def texts(row: Trajectory) -> list[str]:
    return ["".join(part["text"] for part in step.message) for step in row.steps.order_by("index")]


def test_traces_become_trajectories_with_their_messages(connector: Connector, langfuse: Langfuse) -> None:
    langfuse[0].add("t1", at(0), question="Where is my parcel?", steps=2)
    run = pull(connector)
    assert counts(run) == ("succeeded", 1, 0, 0), run.error
    row = Trajectory.objects.get()
    assert (row.external_id, row.agent_name, row.source_format) == ("t1/t1-root", "support agent", "langfuse")
    assert texts(row) == [
        "Where is my parcel?",
        "Looking at it, part 1.",
        "Go on, 1.",
        "Looking at it, part 2.",
    ]
    document = PulledDocument.objects.get()
    assert (document.source_id, document.state, document.target) == ("t1", "imported", {"trace": "t1"})


def test_a_second_run_creates_nothing_and_brings_what_is_new(
    connector: Connector, langfuse: Langfuse
) -> None:
    server, _ = langfuse
    for number in range(3):
        server.add(f"t{number}", at(number), question=f"Question {number}")
    assert counts(pull(connector)) == ("succeeded", 3, 0, 0)
    server.calls.clear()
    assert counts(pull(connector)) == ("succeeded", 0, 0, 0)
    assert [call.path for call in server.calls] == ["/api/public/traces"]  # nothing is fetched again
    server.add("new", recently(10), question="What is new?")
    assert counts(pull(connector)) == ("succeeded", 1, 0, 0)


def test_several_pages(connector: Connector, langfuse: Langfuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langfuse_source, "_PAGE", 2)
    for number in range(5):
        langfuse[0].add(f"t{number}", at(number), question=f"Question {number}")
    assert counts(pull(connector)) == ("succeeded", 5, 0, 0)
    assert set(connector.cursor) == {"until"}


def test_a_run_that_is_killed_goes_on_where_it_was(
    connector: Connector, langfuse: Langfuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker stops after the second page, and in the middle of the third."""
    server, _ = langfuse
    monkeypatch.setattr(langfuse_source, "_PAGE", 2)
    monkeypatch.setattr(pulling, "_BATCH", 1)  # each document is stored alone
    for number in range(7):
        server.add(f"t{number}", at(number), question=f"Question {number}")
    run = services.start_run(connector=connector, by=None, is_claimed=True)
    stored = pulling.Pull._store

    def store_and_die(self: Any, batch: Any, cursor: Any) -> None:
        stored(self, batch, cursor)
        if Trajectory.objects.count() == 5:
            raise job_queue.Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(pulling.Pull, "_store", store_and_die)
        job_queue.work(run, execute)
    run.refresh_from_db()
    assert (run.state, Trajectory.objects.count()) == (JobState.QUEUED, 5)
    connector.refresh_from_db()
    assert connector.cursor["window"]["page"] == 3
    server.calls.clear()
    claimed = job_queue.claim_next(ConnectorRun)
    assert claimed is not None and claimed.attempt == 2
    job_queue.work(claimed, execute)
    claimed.refresh_from_db()
    assert (claimed.state, claimed.created) == (JobState.SUCCEEDED, 7)
    assert Trajectory.objects.count() == 7
    listed = [call.query["page"] for call in server.calls if call.path == "/api/public/traces"]
    assert listed == ["3", "4"]


def test_what_fails_in_the_middle_keeps_what_was_stored(
    connector: Connector, langfuse: Langfuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = langfuse
    monkeypatch.setattr(langfuse_source, "_PAGE", 2)
    for number in range(4):
        server.add(f"t{number}", at(number), question=f"Question {number}")
    server.fails_after = 4
    run = pull(connector)
    assert counts(run) == ("failed", 2, 0, 0)
    assert "answered 500 to GET /api/public/traces/t2: down for maintenance" in run.error
    assert connector.last_error == run.error
    server.fails_after = None
    assert counts(pull(connector)) == ("succeeded", 2, 0, 0)
    assert connector.last_error == ""


def test_one_unreadable_trace_does_not_stop_the_others(connector: Connector, langfuse: Langfuse) -> None:
    server, _ = langfuse
    for number in range(3):
        server.add(f"t{number}", at(number), question=f"Question {number}")
    server.traces["t1"]["observations"][0]["metadata"] = {"loss": float("nan")}  # no JSON
    run = pull(connector)
    assert counts(run) == ("succeeded", 2, 0, 1)
    assert "something else than JSON" in str(run.rejected)
    assert PulledDocument.objects.get(source_id="t1").state == PulledDocument.State.REJECTED


def test_a_trace_that_becomes_unreadable_keeps_what_scores_are_attached_to(
    connector: Connector, langfuse: Langfuse
) -> None:
    server, _ = langfuse
    server.add("t1", recently(10))
    assert counts(pull(connector)) == ("succeeded", 1, 0, 0)
    server.traces["t1"]["observations"][0]["metadata"] = {"loss": float("nan")}
    PulledDocument.objects.update(state=PulledDocument.State.WAITING)
    server.calls.clear()
    assert counts(pull(connector)) == ("succeeded", 0, 0, 1)
    assert [call.path for call in server.calls].count("/api/public/traces/t1") == 1  # waiting, and listed
    row = PulledDocument.objects.get()
    assert (row.state, row.target) == (PulledDocument.State.REJECTED, {"trace": "t1"})


def test_a_trace_that_is_not_quiet_waits_for_the_next_run(connector: Connector, langfuse: Langfuse) -> None:
    server, _ = langfuse
    server.add("running", recently(1), question="Still at it?")
    run = pull(connector)
    assert (run.created, run.waiting) == (0, 1)
    server.add("running", recently(120), question="Still at it?", steps=3)
    run = pull(connector)
    assert (run.created, run.waiting) == (1, 0)
    assert Trajectory.objects.get().agent_step_count == 3
    assert not PulledDocument.objects.filter(state="waiting").exists()


def test_a_trace_that_goes_on_replaces_its_earlier_state(connector: Connector, langfuse: Langfuse) -> None:
    server, _ = langfuse
    server.add("t", recently(20), question="One more?", steps=1)
    assert counts(pull(connector)) == ("succeeded", 1, 0, 0)
    server.add("t", recently(20), question="One more?", steps=2)
    assert counts(pull(connector)) == ("succeeded", 1, 0, 0)
    before, after = Trajectory.objects.order_by("pk")
    assert (before.tags, after.tags) == ([pulling.SUPERSEDED], [])
    document = PulledDocument.objects.get()
    assert [link.trajectory_id for link in document.trajectories.filter(is_current=True)] == [after.pk]


def test_rate_limits_are_kept_to(
    connector: Connector, langfuse: Langfuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = langfuse
    server.add("t", at(0))
    slept: list[float] = []
    monkeypatch.setattr("apps.connectors.executor.time.sleep", slept.append)
    clock = iter(range(10_000))
    monkeypatch.setattr("apps.connectors.executor.time.monotonic", lambda: next(clock))
    server.limited = [too_many("7"), too_many("7")]
    assert counts(pull(connector)) == ("succeeded", 1, 0, 0)
    assert slept  # it waited, and asked again
    server.limited = [too_many("3600")]
    run = pull(connector)
    assert run.state == "failed"
    assert "asks to wait 3,600 s" in run.error


def test_the_schedule_waits_as_long_as_the_peer_asks(connector: Connector, langfuse: Langfuse) -> None:
    Connector.objects.filter(pk=connector.pk).update(every_minutes=5, next_run_at=datetime.now(UTC))
    langfuse[0].limited = [too_many("3600")]
    pull(connector)
    assert connector.next_run_at is not None
    assert connector.next_run_at > datetime.now(UTC) + timedelta(minutes=55)


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), ("soon", None), ("", None)]
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: float | None) -> None:
    assert peer_client._retry_after(value) == seconds


def test_a_trace_without_a_model_call_is_rejected_and_told(connector: Connector, langfuse: Langfuse) -> None:
    server, _ = langfuse
    server.add("empty", at(0))
    server.traces["empty"] |= {"observations": [], "input": None, "output": None}
    server.add("good", at(1))
    run = pull(connector)
    assert counts(run) == ("succeeded", 1, 0, 1)
    assert run.rejected[0]["source"] == "empty"
    assert "no record is a call of a model" in run.rejected[0]["message"]
    assert counts(pull(connector)) == ("succeeded", 0, 0, 0)


def test_a_trace_that_is_too_large_does_not_hold_up_the_others(
    connector: Connector, langfuse: Langfuse, settings: Any
) -> None:
    server, _ = langfuse
    settings.MAX_RECORD_BYTES = 20_000
    server.add("huge", at(0), question="x" * 30_000)
    server.add("good", at(1))
    run = pull(connector)
    assert counts(run) == ("succeeded", 1, 0, 1)
    assert "more than 20,000 bytes" in run.rejected[0]["message"]


def test_a_wrong_key_is_told_with_what_to_do(project: Project, langfuse: Langfuse) -> None:
    run = pull(make_connector(project, langfuse[1], username="other"))
    assert run.state == "failed"
    assert "answered 401" in run.error and "Check the key" in run.error


@pytest.mark.parametrize(
    "answer", [Answer(raw=b"<html>"), Answer({"data": 3}), Answer([]), Answer(raw=b"[" * 100_000)]
)
def test_a_server_that_is_something_else(connector: Connector, langfuse: Langfuse, answer: Answer) -> None:
    langfuse[0].limited = [answer]
    run = pull(connector)
    assert run.state == "failed"
    assert "Check that the address is that of the API." in run.error


def test_addresses_within_are_not_called(project: Project, langfuse: Langfuse, settings: Any) -> None:
    connector = make_connector(project, langfuse[1])
    settings.OUTGOING_ALLOW = []
    run = pull(connector)
    assert run.state == "failed"
    assert "private network" in run.error
    assert langfuse[0].calls == []


def test_langfuse_4_has_observations_only(
    project: Project, outgoing_here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(langfuse_source, "_PAGE_OF_OBSERVATIONS", 3)
    server = LangfuseServer(version=4)
    for number in range(4):
        server.add(f"t{number}", at(number), question=f"Question {number}", steps=2)
    with serve(server) as url:
        connector = make_connector(project, url)
        assert counts(pull(connector)) == ("succeeded", 4, 0, 0)
        assert counts(pull(connector)) == ("succeeded", 0, 0, 0)
    row = Trajectory.objects.get(external_id="t3/t3-root")
    assert texts(row)[:2] == ["Question 3", "Looking at it, part 1."]


def test_a_worker_that_stops_gives_the_run_back(connector: Connector, langfuse: Langfuse) -> None:
    langfuse[0].add("t", at(0))
    run = services.start_run(connector=connector, by=None, is_claimed=True)
    shutdown.ask()
    try:
        job_queue.work(run, execute)
    finally:
        shutdown._asked.clear()
    run.refresh_from_db()
    assert run.state == JobState.QUEUED
    assert Trajectory.objects.count() == 0
