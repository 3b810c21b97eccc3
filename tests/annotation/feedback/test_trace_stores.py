"""Feedback on trajectories that came as traces, as the APIs of Langfuse and Phoenix take it.

The expected bodies were validated with the models of `langfuse` 5.0.4 (CreateScoreRequest) and, for Phoenix, with the
types of `arize-phoenix-client` 3.5.0 (SpanAnnotationData, TraceAnnotationData).
"""

import io
import json
import uuid
from collections import Counter
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import F

from apps.accounts.models import Project
from apps.annotation.feedback.exports import export_lines
from apps.annotation.feedback.trace_scores import NO_OTEL_ID, NO_TRACE
from apps.annotation.models import Annotation
from apps.trajectories.services import import_trajectories
from tests.annotation.feedback.test_kinds import ACCEPT, SCORE, load
from tests.trajectories import test_otel as spans

TRACE, AGENT, CALL = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"


def import_trace(project: Project, trace: str = TRACE, agent: str = AGENT, call: str = CALL) -> str:
    """The id of the trajectory of a trace with an agent and one call of a model."""
    root = spans.span(1, {"gen_ai.operation.name": "invoke_agent"})
    answer = spans.span(2, spans.chat(spans.ASKED, spans.SAID))
    document = spans.traced(
        root | {"traceId": trace, "spanId": agent},
        answer | {"traceId": trace, "spanId": call, "parentSpanId": agent},
    )
    import_trajectories(project=project, stream=io.BytesIO(json.dumps(document).encode()), by=None)
    return f"{trace}/{agent}"


def import_langfuse(project: Project) -> str:
    observation = {
        "id": "obs-1",
        "type": "GENERATION",
        "name": "answer",
        "input": [{"role": "user", "content": "Hi"}],
        "output": {"role": "assistant", "content": "Hello"},
    }
    document = {"trace": {"id": "trace-of-langfuse", "name": "desk"}, "observations": [observation]}
    import_trajectories(project=project, stream=io.BytesIO(json.dumps(document).encode()), by=None)
    return "trace-of-langfuse"


def judge(project: Project, trajectory: str, format: str, **record: Any) -> None:
    named = {"trajectory": {"trajectory_id": trajectory}, "annotator": "ann"}
    result = load(project, format, named | record)
    assert result.created == 1, result


def scores(project: Project, format: str) -> tuple[list[dict[str, Any]], Counter[str]]:
    left_out = Counter[str]()
    lines = export_lines(format, project=project, filters={}, left_out=left_out)
    return [json.loads(line) for line in lines], left_out


def judge_all(project: Project, trajectory: str) -> None:
    judge(project, trajectory, "ratings", accept=False)
    judge(project, trajectory, "ratings", rating=4, scale=[1, 5], annotator="ben")
    judge(project, trajectory, "steps", labels={"0": "bad"}, corrections={"0": "In Bonn."})
    judge(project, trajectory, "steps", first_error=None, annotator="ben")
    # A criterion of the name of an evaluation is still a number; Phoenix keeps the name `note` for itself.
    judge(project, trajectory, "rubric", criterion="accept", definition="d", value=4, scale=[1, 5], note="ok")
    judge(project, trajectory, "rubric", criterion="note", definition="d", value=2, scale=[1, 5])
    judge(project, trajectory, "comments", text="Too short. 短い", anchor=None)
    judge(project, trajectory, "comments", text="Rude.", sign=-1, anchor=None, annotator="ben")


def test_langfuse_takes_numbers_categories_and_booleans(project: Project) -> None:
    judge_all(project, import_trace(project))
    found, left_out = scores(project, "langfuse-scores")
    assert not left_out
    values = sorted((each["name"], each["dataType"], each["value"], each.get("comment")) for each in found)
    assert values == [
        ("accept", "BOOLEAN", 0, None),
        ("accept", "NUMERIC", 4.0, "ok"),
        ("comment", "CATEGORICAL", "bad", "Rude."),
        ("comment", "CATEGORICAL", "comment", "Too short. 短い"),
        ("first error", "CATEGORICAL", "none", None),
        ("note", "NUMERIC", 2.0, None),
        ("rating", "NUMERIC", 4.0, None),
        ("step", "CATEGORICAL", "bad", "In Bonn."),
    ]
    assert {each["traceId"] for each in found} == {TRACE}
    assert {each["observationId"] for each in found if each["name"] == "step"} == {CALL}
    assert {each["observationId"] for each in found if each["name"] != "step"} == {AGENT}
    assert len({uuid.UUID(each["id"]) for each in found}) == len(found)
    assert {"annotator": "ben", "low": 1.0, "high": 5.0, "origin": "imported"}.items() <= next(
        each["metadata"] for each in found if each["name"] == "rating"
    ).items()


def test_phoenix_takes_annotations_of_spans(project: Project) -> None:
    judge_all(project, import_trace(project))
    found, left_out = scores(project, "phoenix-annotations")
    assert not left_out and len(found) == 8
    assert {each["span_id"] for each in found} == {AGENT, CALL}
    assert all(each["result"] and each["annotator_kind"] == "HUMAN" for each in found)
    assert "note" not in {each["name"] for each in found}
    (step,) = (each for each in found if each["name"] == "step")
    assert step["result"] == {"label": "bad", "score": -1.0, "explanation": "In Bonn."}


def test_of_a_whole_trace_it_is_the_trace(project: Project) -> None:
    judge(project, import_langfuse(project), "ratings", accept=True)
    (score,), left_out = scores(project, "langfuse-scores")
    assert score["traceId"] == "trace-of-langfuse" and "observationId" not in score and not left_out
    annotations, left_out = scores(project, "phoenix-annotations")
    assert annotations == [] and left_out == {NO_OTEL_ID: 1}


def test_trajectories_without_a_trace_are_counted(project: Project) -> None:
    assert load(project, "ratings", ACCEPT).created == 1
    assert load(project, "rubric", SCORE).created == 1
    for format in ("langfuse-scores", "phoenix-annotations"):
        assert scores(project, format) == ([], {NO_TRACE: 2})


def test_a_score_keeps_its_id_and_time_when_its_annotation_is_edited(project: Project) -> None:
    trajectory = import_trace(project)
    judge(project, trajectory, "ratings", accept=True)
    judge(project, trajectory, "comments", text="One.", anchor=None)
    judge(project, trajectory, "comments", text="Two.", anchor=None)
    before, _ = scores(project, "langfuse-scores")
    assert len({each["id"] for each in before}) == len(before) == 3
    Annotation.objects.update(revision=F("revision") + 7, created_at="2030-01-01T00:00:00Z")
    after, _ = scores(project, "langfuse-scores")
    assert [(each["id"], each["timestamp"]) for each in after] == [
        (each["id"], each["timestamp"]) for each in before
    ]
    assert min(each["metadata"]["revision"] for each in after) > 7


@pytest.mark.parametrize("format", ["langfuse-scores", "phoenix-annotations"])
def test_the_command_says_what_it_left_out(project: Project, format: str) -> None:
    judge(project, import_trace(project), "ratings", accept=True)
    assert load(project, "ratings", ACCEPT).created == 1
    out = io.StringIO()
    call_command("export_feedback", "desk", "--format", format, "--json", stdout=out, stderr=io.StringIO())
    assert json.loads(out.getvalue()) == {"lines": 1, "left_out": {NO_TRACE: 1}}


def test_labels_of_judges_are_there_only_when_asked_for(project: Project) -> None:
    judge(project, import_trace(project), "ratings", accept=True)
    Annotation.objects.update(origin="judge")
    for format in ("langfuse-scores", "phoenix-annotations"):
        assert scores(project, format) == ([], {})
    lines = export_lines(
        "phoenix-annotations", project=project, filters={"origins": ["judge"]}, left_out=Counter()
    )
    (annotation,) = map(json.loads, lines)
    assert (annotation["annotator_kind"], annotation["metadata"]["origin"]) == ("LLM", "judge")
