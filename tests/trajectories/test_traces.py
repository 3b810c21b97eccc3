"""Spans that arrive over HTTP, and the trajectories that whole traces become."""

import gzip
import io
import json
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from apps.accounts.models import Project, Role
from apps.accounts.services import create_api_key
from apps.datasets.erasure import erase_trajectory
from apps.trajectories import traces
from apps.trajectories.models import Trace, TraceSpan, Trajectory
from tests.factories import make_member
from tests.trajectories import test_otel as some
from tests.trajectories.tracing.documents import DOCUMENTS

URL = "/v1/traces"
FIRST = some.span(2, some.chat(some.ASKED, some.CALLED), parent=1)
SECOND = some.span(3, some.chat(some.ASKED + some.CALLED + some.TOLD, some.SAID), parent=1)
ROOT = some.span(1, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"})
Send = Callable[..., Any]


@pytest.fixture
def secret(project: Project) -> str:
    return create_api_key(project=project, scopes=["ingest"], by=None)[1]


@pytest.fixture
def send(client: Client, secret: str) -> Send:
    def post(body: Any, content_type: str = "application/json", **headers: str) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Authorization": f"Bearer {secret}"} | {
            name.replace("_", "-"): header for name, header in headers.items()
        }
        return client.post(URL, data, content_type=content_type, headers=given)

    return post


def later(**time: float) -> None:
    """As if that much time had gone by since the last span."""
    for trace in Trace.objects.all():
        trace.last_at -= timedelta(**time)
        if trace.look_at is not None:
            trace.look_at -= timedelta(**time)
        trace.save()


def test_a_trace_becomes_a_trajectory_when_it_is_whole(send: Send, project: Project) -> None:
    assert send(some.traced(SECOND, FIRST)).json() == {}
    later(minutes=1)
    assert traces.collect() == 1
    assert Trajectory.objects.count() == 0, "both wait for the agent's span"
    send(some.traced(ROOT))
    assert traces.collect() == 0, "another process may still send"
    later(minutes=1)
    assert traces.collect() == 1
    row = Trajectory.objects.get()
    assert (row.project, row.external_id, row.agent_name, row.agent_step_count) == (
        project,
        "t1/s1",
        "desk",
        2,
    )
    trace = Trace.objects.get()
    assert (trace.trajectories, trace.error, trace.look_at) == (1, "", None)
    assert traces.collect() == 0


def test_what_is_sent_twice_counts_once(send: Send) -> None:
    for _ in range(2):
        send(some.traced(ROOT, FIRST, SECOND))
        later(minutes=1)
        traces.collect()
    assert TraceSpan.objects.count() == 3
    assert Trajectory.objects.count() == 1


def test_what_comes_late_makes_another_trajectory(send: Send) -> None:
    send(some.traced(ROOT, FIRST))
    later(minutes=1)
    traces.collect()
    send(some.traced(SECOND))
    later(minutes=1)
    traces.collect()
    assert sorted(Trajectory.objects.values_list("external_id", "agent_step_count")) == [
        ("t1/s1", 1),
        ("t1/s1", 2),
    ]


def test_a_trace_without_a_root_is_taken_as_it_is_after_an_hour(send: Send) -> None:
    send(some.traced(FIRST, SECOND))
    later(minutes=30)
    assert traces.collect() == 1 and traces.collect() == 0
    later(minutes=31)
    assert traces.collect() == 1
    assert Trajectory.objects.get().external_id == "t1"


def test_a_parent_in_another_process_is_not_waited_for(send: Send) -> None:
    send(some.traced({**ROOT, "parentSpanId": "elsewhere", "flags": 0x300}, FIRST, SECOND))
    later(minutes=1)
    traces.collect()
    assert Trajectory.objects.count() == 1


def test_what_has_nothing_to_do_with_a_model_is_not_kept(send: Send) -> None:
    query = some.span(
        4, {"db.statement": "SELECT secret"}, parent=1, events=[("exception", {"message": "secret"})]
    )
    send(some.traced(ROOT, query))
    assert TraceSpan.objects.count() == 2
    spans = [traces.decoded(row) for row in TraceSpan.objects.all()]
    assert "secret" not in json.dumps(spans)
    later(minutes=1)
    traces.collect()
    assert "CAPTURE_MESSAGE_CONTENT" in Trace.objects.get().error


def test_too_large_a_trace_is_refused_in_part(send: Send, settings: Any) -> None:
    settings.MAX_RECORD_BYTES = 4000
    send(some.traced({**ROOT, "name": "x" * 2500}))
    answer = send(some.traced({**FIRST, "name": "x" * 2000})).json()["partialSuccess"]
    assert answer["rejectedSpans"] == "1"
    assert "TOUCHSTONE_MAX_RECORD_MB" in answer["errorMessage"]
    assert TraceSpan.objects.count() == 1


def test_spans_are_deleted_after_a_day_and_the_note_after_a_week(send: Send) -> None:
    send(some.traced(ROOT, FIRST, SECOND))
    later(days=2)
    traces.sweep()
    assert TraceSpan.objects.count() == 3, "nobody has looked at it yet"
    traces.collect()
    traces.sweep()
    assert (TraceSpan.objects.count(), Trace.objects.count(), Trajectory.objects.count()) == (0, 1, 1)
    later(days=6)
    traces.sweep()
    assert (Trace.objects.count(), Trajectory.objects.count()) == (0, 1)


@pytest.mark.parametrize(
    ("body", "headers", "status", "said"),
    [
        (b"{", {}, 400, "JSON"),
        (b"[]", {}, 400, "object"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": 1}]}]}]}, {}, 400, "traceId"),
        (b"x", {"Content_Encoding": "gzip"}, 400, "not gzip"),
        (b"x", {"Content_Encoding": "br"}, 415, "gzip, deflate"),
        (b"x", {"content_type": "text/plain"}, 415, "application/x-protobuf"),
        (b"\xff\xff", {"content_type": "application/x-protobuf"}, 400, None),
        (gzip.compress(b" " * 30_000_000), {"Content_Encoding": "gzip"}, 413, "20 MB; send fewer"),
    ],
    ids=[
        "no JSON",
        "no object",
        "no id",
        "no gzip",
        "encoding",
        "type",
        "no protobuf",
        "unpacks to too much",
    ],
)
def test_what_is_not_taken(
    send: Send, body: Any, headers: dict[str, str], status: int, said: str | None
) -> None:
    answer = send(body, **headers)
    assert answer.status_code == status
    if said is None:
        assert b"ExportTraceServiceRequest" in answer.content
    else:
        assert said in answer.json()["message"]
    assert Trace.objects.count() == 0


def test_who_may_not_send(client: Client, project: Project) -> None:
    other = create_api_key(project=project, scopes=["reward"], by=None)[1]
    for header, status in (
        ({}, 401),
        ({"Authorization": "Bearer no"}, 401),
        ({"Authorization": f"Bearer {other}"}, 403),
    ):
        answer = client.post(URL, b"{}", content_type="application/json", headers=header)
        assert answer.status_code == status
        assert answer.json()["message"]
    assert client.get(URL).status_code == 405


def test_nothing_in_it_is_nothing_wrong(send: Send) -> None:
    """Some exporters ask so whether they are let in."""
    empty = send(zlib.compress(b""), content_type="application/x-protobuf", Content_Encoding="deflate")
    assert (empty.status_code, empty.headers["Content-Type"]) == (200, "application/x-protobuf")
    ExportTraceServiceResponse.FromString(empty.content)


def told(asked: Any, said: Any) -> dict[str, Any]:
    """Messages as JSON, as instrumentations tell them."""
    return {
        key: json.dumps(value) if isinstance(value, list) else value
        for key, value in some.chat(asked, said).items()
    }


@pytest.mark.parametrize("compression", list(Compression), ids=lambda line: line.name)
def test_an_instrumented_agent(
    live_server: Any, project: Project, secret: str, compression: Compression
) -> None:
    """The exporter of OpenTelemetry's own SDK, in batches."""
    exporter = OTLPSpanExporter(
        f"{live_server.url}{URL}", headers={"authorization": f"Bearer {secret}"}, compression=compression
    )
    provider = TracerProvider(resource=Resource.create({"service.name": "desk"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    agent = {"gen_ai.operation.name": "invoke_agent"}
    with tracer.start_as_current_span("invoke_agent desk", attributes=agent):
        with tracer.start_as_current_span("chat m", attributes=told(some.ASKED, some.CALLED)):
            pass
        provider.force_flush()
        asked = some.ASKED + some.CALLED + some.TOLD
        with tracer.start_as_current_span("chat m", attributes=told(asked, some.SAID)):
            pass
    provider.shutdown()
    later(minutes=1)
    assert traces.collect() == 1
    row = Trajectory.objects.get()
    assert (row.agent_name, row.agent_step_count) == ("desk", 2)


def test_spans_of_a_trace_on_several_lines_of_a_file(project: Project, tmp_path: Any) -> None:
    path = tmp_path / "spans.jsonl"
    other = {**FIRST, "traceId": "t2", "parentSpanId": ""}
    path.write_text("".join(json.dumps(some.traced(span)) + "\n" for span in (SECOND, other, FIRST, ROOT)))
    out = io.StringIO()
    call_command("import_trajectories", "desk", str(path), "--json", stdout=out, stderr=io.StringIO())
    assert json.loads(out.getvalue())["created"] == 2
    assert sorted(Trajectory.objects.values_list("external_id", "agent_step_count")) == [
        ("t1/s1", 2),
        ("t2", 1),
    ]


def test_following_a_file_of_spans(project: Project, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are written: a run may end in another piece than it began."""
    path = tmp_path / "spans.jsonl"
    pieces = iter([(SECOND,), (ROOT,)])
    path.write_text(json.dumps(some.traced(FIRST)) + "\n")

    def wait(seconds: float) -> None:
        piece = next(pieces, None)
        if piece is None:
            raise KeyboardInterrupt
        with path.open("a") as file:
            file.write(json.dumps(some.traced(*piece)) + "\n" + "{}\n" * (piece == (ROOT,)))

    monkeypatch.setattr("time.sleep", wait)
    out = io.StringIO()
    call_command(
        "import_trajectories", "desk", str(path), "--follow", "--json", stdout=out, stderr=io.StringIO()
    )
    assert [load["line"] for load in json.loads(out.getvalue())["rejected"]] == [4]
    assert timezone.now() < Trace.objects.get().look_at
    later(minutes=1)
    traces.collect()
    assert Trajectory.objects.get().agent_step_count == 2


def test_the_upload_page_tells_what_came(send: Send, client: Client, project: Project) -> None:
    client.force_login(make_member(project, "ida@example.org", Role.RESEARCHER))
    page = reverse("trajectories:trajectory-upload", args=["desk"])
    assert "No traces received yet" in client.get(page).content.decode()
    send(some.traced(ROOT, FIRST, SECOND))
    assert "waiting for the end of the trace" in client.get(page).content.decode()
    later(minutes=1)
    traces.collect()
    shown = client.get(page).content.decode()
    assert "1 trajectory</a>" in shown
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://testserver\n" in shown
    found = client.get(reverse("trajectories:trajectory-list", args=["desk"]), {"metadata": "trace=t1"})
    assert f"/trajectories/{Trajectory.objects.get().pk}/" in found.content.decode()


def test_what_is_deleted_leaves_no_spans(send: Send) -> None:
    send(some.traced(ROOT, FIRST, SECOND))
    later(minutes=1)
    traces.collect()
    erase_trajectory(trajectory=Trajectory.objects.get(), by=None)
    assert not Trace.objects.exists() and not TraceSpan.objects.exists()


def test_a_mistake_of_ours_holds_up_nothing(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    send(some.traced(*({**span, "traceId": "bad"} for span in (ROOT, FIRST, SECOND))))
    send(some.traced(ROOT, FIRST, SECOND))
    later(minutes=1)
    group_by_agent = traces.otel.group_by_agent

    def breaks(spans: Any) -> Any:
        if spans[0]["trace"] == "bad":
            raise KeyError("ours")
        return group_by_agent(spans)

    monkeypatch.setattr(traces.otel, "group_by_agent", breaks)
    assert traces.collect() == 2
    assert Trajectory.objects.count() == 1
    assert "Internal error" in Trace.objects.get(name="bad").error


def test_a_database_that_goes_away_is_waited_for(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    send(some.traced(ROOT, FIRST, SECOND))
    later(minutes=1)

    def gone(**more: Any) -> int:
        raise OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patched:
        patched.setattr(traces.services, "store_prepared", gone)
        with pytest.raises(OperationalError):
            traces.collect()
    assert traces.collect() == 1 and Trajectory.objects.count() == 1


def test_a_batch_that_is_sent_again_does_not_grow_the_trace(send: Send, settings: Any) -> None:
    """Exporters repeat a batch whose answer came too late."""
    settings.MAX_RECORD_BYTES = 10_000
    large = {**FIRST, "name": "x" * 4000}
    for _ in range(35):
        assert "partialSuccess" not in send(some.traced(ROOT, large)).json()
    assert TraceSpan.objects.count() == 2
    assert Trace.objects.get().size == sum(TraceSpan.objects.values_list("size", flat=True)) < 6000
    send(some.traced(ROOT, FIRST))
    assert Trace.objects.get().size < 3000


def test_spans_of_a_convention_that_is_not_read_are_kept_and_named(send: Send) -> None:
    about = {"lk.chat_ctx": "Where is it?"}
    send(some.traced(some.span(1, about)))
    later(minutes=1)
    traces.collect()
    assert "LiveKit" in Trace.objects.get().error
    later(days=30)
    traces.sweep()
    (row,) = TraceSpan.objects.all()
    assert traces.decoded(row)["attributes"] == about


@pytest.mark.parametrize(
    "name", ["OpenInference", "Vercel AI SDK", "OpenLLMetry", "Pydantic AI, events", "Strands"]
)
def test_spans_of_other_conventions_become_trajectories(send: Send, name: str) -> None:
    send(DOCUMENTS[name][1])
    later(minutes=1)
    assert traces.collect() == 1
    row = Trajectory.objects.get()
    assert (row.agent_step_count, Trace.objects.get().error) == (2, "")
    assert TraceSpan.objects.count() == 4


def test_the_answer_names_fields_that_are_in_no_span(send: Send) -> None:
    export = json.loads(json.dumps(some.traced(ROOT)))
    export["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["mood"] = "calm"
    answer = send(export)
    assert answer.json() == {}
    (row,) = json.loads(answer.headers["X-Touchstone-Dropped"])
    assert (row["path"], row["count"]) == ("/resourceSpans/*/scopeSpans/*/spans/*/mood", 1)
    assert "X-Touchstone-Dropped" not in send(some.traced(ROOT)).headers


def test_the_header_of_dropped_fields_is_bounded(send: Send) -> None:
    export = json.loads(json.dumps(some.traced(ROOT)))
    (span,) = export["resourceSpans"][0]["scopeSpans"][0]["spans"]
    span |= {f"{number:02}\r\nSet-Cookie: é{'x' * 1000}": "calm" for number in range(30)}
    header = send(export).headers["X-Touchstone-Dropped"]
    assert header.isascii() and header.isprintable() and len(header) <= 2200
    *listed, rest = json.loads(header)
    assert listed and all(0 < len(row["path"]) <= 100 for row in listed)
    assert rest["path"] == "" and sum(row["count"] for row in (*listed, rest)) == 30


def test_deep_json_in_a_text_is_text(send: Send) -> None:
    export = json.loads(json.dumps(some.traced(ROOT)))
    export["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["mood"] = "[" * 600 + "1" + "]" * 600
    answer = send(export)
    assert answer.status_code == 200 and "/mood" in answer.headers["X-Touchstone-Dropped"]
