"""Against the peers' real servers, where they run: TOUCHSTONE_PEER_PHOENIX and the like have their addresses.

pip install arize-phoenix && phoenix serve
pip install mlflow && mlflow server
pip install inspect_ai && inspect view --log-dir LOGS
"""

import json
import os
import secrets
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from apps.accounts.models import Project
from apps.annotation.models import Annotation
from apps.connectors import services
from apps.connectors.models import Connector, PulledDocument, PushedScore
from apps.connectors.services import ConnectorSpec
from apps.trajectories.models import Trajectory
from tests.connectors.conftest import pull
from tests.connectors.test_pushing import judge

pytestmark = pytest.mark.slow


def address(name: str) -> str:
    found = os.environ.get(f"TOUCHSTONE_PEER_{name}", "")
    if not found:
        pytest.skip(f"needs a running {name.title()} server (TOUCHSTONE_PEER_{name})")
    return found


def connect(project: Project, kind: str, url: str, options: dict[str, str]) -> Connector:
    spec = ConnectorSpec(name=kind, address=url, options=options, settle_minutes=0)
    return services.create_connector(project=project, kind=kind, spec=spec, by=None)


def test_phoenix(project: Project, outgoing_here: None) -> None:
    url, name = address("PHOENIX"), f"touchstone-{secrets.token_hex(4)}"
    spans = [span for number in range(250) for span in phoenix_spans(number)]
    for start in range(0, len(spans), 200):
        sent = {"data": spans[start : start + 200]}
        httpx.post(f"{url}/v1/projects/{name}/spans", json=sent).raise_for_status()
    wait_for(lambda: len(listed(f"{url}/v1/projects/{name}/traces?limit=1000")) == 250)
    connector = connect(project, "phoenix", url, {"project": name})
    run = pull(connector)
    assert (run.state, run.created, run.rejected) == ("succeeded", 250, [])
    row = Trajectory.objects.get(external_id__startswith=spans[0]["context"]["trace_id"])
    steps = list(row.steps.order_by("index"))
    assert [step.source for step in steps] == ["user", "agent", "agent"]
    assert steps[1].tool_calls[0]["name"] == "lookup"
    assert "42" in str(steps[1].observation)
    assert pull(connector).created == 0
    judge(project, row, "ratings", accept=True)
    judge(project, row, "steps", labels={"0": "bad"}, corrections={"0": "Look it up."})
    assert push_counts(connector) == ("succeeded", 2, 0, [])
    assert push_counts(connector) == ("succeeded", 0, 2, [])
    Annotation.objects.update(revision=2)
    assert push_counts(connector) == ("succeeded", 2, 0, [])
    ids = "&".join(f"span_ids={span['context']['span_id']}" for span in spans[:4])
    found = listed(f"{url}/v1/projects/{name}/span_annotations?{ids}")
    found += listed(f"{url}/v1/projects/{name}/trace_annotations?trace_ids={spans[0]['context']['trace_id']}")
    assert sorted((each["name"], each["result"]["score"], each["annotator_kind"]) for each in found) == [
        ("accept", 1.0, "HUMAN"),
        ("step", -1.0, "HUMAN"),
    ]


def push_counts(connector: Connector) -> tuple[str, int, int, Any]:
    run = pull(connector, "push")
    return run.state, run.pushed, run.unchanged, run.error or run.rejected


def listed(url: str) -> Any:
    reply = httpx.get(url)
    return reply.json()["data"] if reply.status_code == 200 else []


def wait_for(is_there: Any) -> None:
    for _ in range(100):
        if is_there():
            return
        time.sleep(0.1)
    raise AssertionError("the server did not take what was sent")


def phoenix_spans(number: int) -> list[dict[str, Any]]:
    trace, at = (
        secrets.token_hex(16),
        datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=(number * 97) % 250),
    )
    root = secrets.token_hex(8)
    call = {
        "tool_call.id": "c1",
        "tool_call.function.name": "lookup",
        "tool_call.function.arguments": '{"q": 1}',
    }
    calls = {f"tool_calls.0.{name}": value for name, value in call.items()}
    asked = {"role": "user", "content": f"Question {number}?"}
    called = {"role": "assistant", **calls}
    result = {"role": "tool", "tool_call_id": "c1", "content": "42"}
    answered = {"role": "assistant", "content": f"Answer {number}."}
    return [
        span(trace, root, None, "agent", "AGENT", at, {"input.value": asked["content"]}),
        span(trace, "", root, "llm", "LLM", at, messages("input", [asked]) | messages("output", [called])),
        span(trace, "", root, "lookup", "TOOL", at, {"tool.name": "lookup", "output.value": "42"}),
        span(
            trace,
            "",
            root,
            "llm",
            "LLM",
            at + timedelta(seconds=1),
            messages("input", [asked, called, result]) | messages("output", [answered]),
        ),
    ]


def messages(way: str, given: list[dict[str, str]]) -> dict[str, str]:
    return {
        f"llm.{way}_messages.{index}.message.{name}": value
        for index, message in enumerate(given)
        for name, value in message.items()
    }


def span(
    trace: str, name: str, parent: str | None, title: str, kind: str, at: datetime, attributes: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": title,
        "context": {"trace_id": trace, "span_id": name or secrets.token_hex(8)},
        "span_kind": kind,
        "parent_id": parent,
        "start_time": at.isoformat(),
        "end_time": (at + timedelta(milliseconds=500)).isoformat(),
        "status_code": "OK",
        "attributes": attributes,
    }


def test_mlflow(project: Project, outgoing_here: None) -> None:
    url, name = address("MLFLOW"), f"touchstone-{secrets.token_hex(4)}"
    subprocess.run([sys.executable, "-c", MLFLOW_TRACES, url, name], check=True, capture_output=True)
    connector = connect(project, "mlflow", url, {"experiment": name})
    run = pull(connector)
    assert (run.state, run.waiting, run.created, run.rejected) == ("succeeded", 0, 3, [])
    row = Trajectory.objects.order_by("pk").first()
    assert row is not None
    assert [step.source for step in row.steps.order_by("index")] == ["user", "agent"]
    assert pull(connector).created == 0
    judge(project, row, "ratings", accept=True)
    judge(project, row, "rubric", criterion="tone", definition="d", value=4, scale=[1, 5], note="ok")
    assert push_counts(connector) == ("succeeded", 2, 0, [])
    assert push_counts(connector) == ("succeeded", 0, 2, [])
    Annotation.objects.update(revision=2)
    assert push_counts(connector) == ("succeeded", 2, 0, [])
    PushedScore.objects.all().delete()  # as if the run had been killed before it noted the scores
    assert push_counts(connector) == ("succeeded", 2, 0, [])
    assert mlflow_assessments(url, PulledDocument.objects.order_by("pk")[0].source_id) == [
        ["accept", True, None, "HUMAN"],
        ["tone", 4.0, "ok", "HUMAN"],
    ]
    refused = pull(connect_named(project, url, "none-such"))
    assert "has no experiment 'none-such'" in refused.error


def mlflow_assessments(url: str, trace: str) -> Any:
    """As MLflow's own client reads them."""
    done = subprocess.run(
        [sys.executable, "-c", MLFLOW_READ, url, trace], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


MLFLOW_READ = """
import json, mlflow, sys
mlflow.set_tracking_uri(sys.argv[1])
found = mlflow.get_trace(sys.argv[2]).info.assessments
rows = [[a.name, a.value, a.rationale, a.source.source_type] for a in found]
print(json.dumps(sorted(rows, key=str)))
"""
MLFLOW_TRACES = """
import mlflow, sys
mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment(sys.argv[2])

@mlflow.trace(span_type="CHAT_MODEL")
def call(messages, number):
    return {"choices": [{"message": {"role": "assistant", "content": f"Answer {number}."}}], "model": "m"}

@mlflow.trace(span_type="AGENT")
def agent(question, number):
    return call([{"role": "user", "content": question}], number)

for number in range(3):
    agent(f"Question {number}?", number)
mlflow.flush_trace_async_logging()
"""


def test_inspect_view(project: Project, outgoing_here: None) -> None:
    """Of logs of three samples each, one .eval and one .json."""
    connector = connect(project, "inspect", address("INSPECT"), {})
    run = pull(connector)
    assert (run.state, run.documents, run.created, run.rejected) == ("succeeded", 2, 6, []), run.error
    assert pull(connector).documents == 0


def connect_named(project: Project, url: str, experiment: str) -> Connector:
    spec = ConnectorSpec(name=experiment, address=url, options={"experiment": experiment})
    return services.create_connector(project=project, kind="mlflow", spec=spec, by=None)
