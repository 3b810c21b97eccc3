"""Scores go back to the traces they are about, each once, and again when they changed."""

from collections.abc import Iterator
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.annotation.models import Annotation
from apps.connectors import services
from apps.connectors.models import Connector, ConnectorRun, PushedScore
from apps.connectors.services import ConnectorSpec
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.trajectories.models import Trajectory
from tests.annotation.feedback.test_kinds import load
from tests.connectors import langsmith_server
from tests.connectors.conftest import make_connector, pull
from tests.connectors.contract_server import Answer, Call, Peer, serve, too_many
from tests.connectors.langsmith_server import LangSmithServer
from tests.connectors.test_pulling import Langfuse, at


def judge(project: Project, trajectory: Trajectory, format: str, **record: Any) -> None:
    named = {"trajectory": {"trajectory_id": trajectory.external_id}, "annotator": "ann"}
    assert load(project, format, named | record).created == 1


def push(connector: Connector) -> ConnectorRun:
    return pull(connector, "push")


def counts(run: ConnectorRun) -> tuple[str, int, int, int]:
    return run.state, run.pushed, run.unchanged, run.rejected_count


@pytest.fixture
def judged(project: Project, connector: Connector, langfuse: Langfuse) -> Connector:
    langfuse[0].add("t1", at(0), question="One?")
    langfuse[0].add("t2", at(1), question="Two?")
    pull(connector)
    first, second = Trajectory.objects.order_by("pk")
    judge(project, first, "ratings", accept=True)
    judge(project, first, "comments", text="Kind.", anchor=None)
    judge(project, second, "rubric", criterion="tone", definition="d", value=4, scale=[1, 5], note="ok")
    return connector


def test_feedback_becomes_scores_of_langfuse(judged: Connector, langfuse: Langfuse) -> None:
    server = langfuse[0]
    run = push(judged)
    assert counts(run) == ("succeeded", 3, 0, 0), run.error
    found = sorted((s["traceId"], s["name"], s["dataType"], s["value"]) for s in server.scores.values())
    assert found == [
        ("t1", "accept", "BOOLEAN", 1),
        ("t1", "comment", "CATEGORICAL", "comment"),
        ("t2", "tone", "NUMERIC", 4.0),
    ]
    assert {score["observationId"] for score in server.scores.values()} == {"t1-root", "t2-root"}
    server.calls.clear()
    assert counts(push(judged)) == ("succeeded", 0, 3, 0)
    assert server.calls == []


def test_what_changed_is_sent_again_under_its_id(judged: Connector, langfuse: Langfuse) -> None:
    server = langfuse[0]
    push(judged)
    before = set(server.scores)
    Annotation.objects.filter(criterionscores__isnull=False).update(revision=2)
    assert counts(push(judged)) == ("succeeded", 1, 2, 0)
    assert set(server.scores) == before


def test_a_push_that_is_killed_sends_each_score_once(judged: Connector, langfuse: Langfuse) -> None:
    server = langfuse[0]
    server.fails_after = len(server.calls) + 1
    run = push(judged)
    assert run.state == "failed" and run.pushed == 1
    server.fails_after = None
    assert counts(push(judged)) == ("succeeded", 2, 1, 0)
    assert len(server.scores) == 3


def test_scores_that_are_pulled_again_change_nothing(judged: Connector, langfuse: Langfuse) -> None:
    push(judged)
    judged.cursor = {}
    judged.save()
    run = pull(judged)
    assert (run.created, run.duplicates) == (0, 2)


def test_only_trajectories_of_the_connector(project: Project, judged: Connector, langfuse: Langfuse) -> None:
    other = make_connector(project, langfuse[1], name="Other", options={"trace_name": "none"})
    assert counts(push(other)) == ("succeeded", 0, 0, 0)
    alone = {"task": {"id": "x"}, "trajectory": {"text": "alone"}, "accept": True, "annotator": "ann"}
    assert load(project, "ratings", alone).created == 1
    assert counts(push(judged)) == ("succeeded", 3, 0, 0)


def test_a_score_that_is_refused_does_not_hold_up_the_others(judged: Connector, langfuse: Langfuse) -> None:
    langfuse[0].limited = [Answer({"message": "Score name is reserved"}, 400), too_many("0")]
    run = push(judged)
    assert counts(run) == ("succeeded", 2, 0, 1)
    assert "Score name is reserved" in run.rejected[0]["message"]
    assert counts(push(judged)) == ("succeeded", 1, 2, 0)


def test_a_wrong_key_ends_the_push(judged: Connector, langfuse: Langfuse) -> None:
    Connector.objects.update(username="other")
    run = push(judged)
    assert run.state == "failed" and "Check the key" in run.error
    assert not PushedScore.objects.exists()


def test_after_each_pull(judged: Connector, langfuse: Langfuse) -> None:
    Connector.objects.update(push_after_pull=True)
    pull(judged)
    queued = judged.runs.first()
    assert queued is not None and (queued.direction, queued.state) == ("push", "queued")
    job_queue.request_cancel(queued)


def test_kinds_that_take_no_scores(project: Project, outgoing_here: None) -> None:
    spec = ConnectorSpec(name="bucket", options={"bucket": "b"}, address="http://127.0.0.1:9")
    connector = services.create_connector(project=project, kind="s3", spec=spec, by=None)
    with pytest.raises(DomainError, match="takes no scores"):
        services.start_run(connector=connector, direction="push", by=None)


@pytest.fixture
def langsmith(project: Project, outgoing_here: None) -> Iterator[tuple[LangSmithServer, Connector]]:
    server = LangSmithServer()
    with serve(server) as url:
        spec = ConnectorSpec(name="runs", address=url, options={"project": "support"})
        connector = services.create_connector(
            project=project, kind="langsmith", spec=spec, secret=langsmith_server.KEY, by=None
        )
        yield server, connector


def test_feedback_of_langsmith(project: Project, langsmith: tuple[LangSmithServer, Connector]) -> None:
    server, connector = langsmith
    root = server.add(0)
    pull(connector)
    judge(project, Trajectory.objects.get(), "ratings", rating=4, scale=[1, 5])
    assert counts(push(connector)) == ("succeeded", 1, 0, 0)
    (feedback,) = server.feedback.values()
    expected = {"run_id": root, "trace_id": root, "key": "rating", "score": 4.0}
    assert {name: feedback[name] for name in expected} == expected
    Annotation.objects.update(revision=2)
    assert counts(push(connector)) == ("succeeded", 1, 0, 0)
    assert server.calls[-1].method == "PATCH"
    PushedScore.objects.all().delete()  # as if the run had been killed before it noted the score
    assert counts(push(connector)) == ("succeeded", 1, 0, 0)
    assert len(server.feedback) == 1


class PhoenixServer(Peer):
    """Phoenix's routes for one trace (src/phoenix/server/api/routers/v1)."""

    trace, root, call = "0" * 31 + "1", "0" * 15 + "1", "0" * 15 + "2"

    def __init__(self) -> None:
        super().__init__()
        self.annotations: dict[tuple[str, str], Any] = {}

    def answer(self, call: Call) -> Answer:
        if call.path == "/v1/projects/default/traces":
            return Answer({"data": [{"trace_id": self.trace, "start_time": at(0)}], "next_cursor": None})
        if call.path == "/v1/projects/default/spans":
            return Answer({"data": self._spans(), "next_cursor": None})
        assert call.query == {"sync": "true"}, call.path
        key, known = {
            "/v1/span_annotations": ("span_id", (self.root, self.call)),
            "/v1/trace_annotations": ("trace_id", (self.trace,)),
        }[call.path]
        if missing := [each[key] for each in call.body["data"] if each[key] not in known]:
            return Answer(f"{missing} do not exist.", 404)
        for each in call.body["data"]:
            self.annotations[each["name"], each["identifier"]] = each
        return Answer({"data": [{"id": "x"} for _ in call.body["data"]]})

    def _spans(self) -> list[dict[str, Any]]:
        messages = {
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Hi",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "Hello",
        }
        return [
            {
                "id": name,
                "name": name,
                "context": {"trace_id": self.trace, "span_id": name},
                "span_kind": kind,
                "parent_id": parent,
                "start_time": at(0),
                "end_time": at(1),
                "status_code": "OK",
                "status_message": "",
                "attributes": attributes,
                "events": [],
            }
            for name, parent, kind, attributes in (
                (self.root, None, "AGENT", {}),
                (self.call, self.root, "LLM", messages),
            )
        ]


def test_annotations_of_phoenix(project: Project, outgoing_here: None) -> None:
    server = PhoenixServer()
    with serve(server) as url:
        spec = ConnectorSpec(name="spans", address=url)
        connector = services.create_connector(project=project, kind="phoenix", spec=spec, by=None)
        assert pull(connector).created == 1
        row = Trajectory.objects.get()
        judge(project, row, "ratings", accept=False)
        judge(project, row, "steps", labels={"0": "bad"}, corrections={"0": "Hello!"})
        assert counts(push(connector)) == ("succeeded", 2, 0, 0)
        placed = {(each.get("span_id"), each["name"]) for each in server.annotations.values()}
        assert placed == {(None, "accept"), (server.call, "step")}
        assert counts(push(connector)) == ("succeeded", 0, 2, 0)
