"""What each tracing tool writes of one conversation is read as that conversation."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.trajectories import formats
from apps.trajectories.formats.record import Record
from apps.trajectories.import_reader import ImportReader, read_import_records
from tests.trajectories.reading import GENERAL
from tests.trajectories.real_files import comes_back
from tests.trajectories.tracing import documents
from tests.trajectories.tracing.documents import DOCUMENTS
from workers.errors import InvalidRecord
from workers.schema import Trajectory

ONE_SPAN = ("Pydantic AI, agent alone", "Attributes alone", "Spans by operation", "OpenPipe")
NAMES = [name for name in DOCUMENTS if name not in ONE_SPAN]
WITHOUT_TOOL_SPANS = (
    "Helicone",
    "GenAI, prompt and completion",
    "Langfuse, OpenTelemetry",
    "LangSmith, OpenTelemetry",
)


def records(reader: ImportReader, raw: bytes) -> Iterator[Record]:
    for record in read_import_records(io.BytesIO(raw)):
        yield from reader.parts(record)
    yield from reader.rest()


def read(document: Any, name: str | None = None) -> list[Trajectory]:
    """Raises InvalidRecord."""
    reader = ImportReader(None)
    found = [reader.read(record) for record in records(reader, json.dumps(document).encode())]
    assert name is None or (reader.format is not None and reader.format.name == name)
    return found


def said(trajectory: Trajectory) -> list[tuple[str, str]]:
    return [(step.source, step.text) for step in trajectory.steps]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_conversation_is_read(name: str) -> None:
    format, document = DOCUMENTS[name]
    (found,) = read(document, format)
    assert said(found) == [
        ("system", "Be kind."),
        ("user", "Where is it?"),
        ("agent", ""),
        ("agent", "In Ulm."),
    ]
    (call,) = found.steps[2].tool_calls
    (result,) = found.steps[2].observation
    assert (call.id, call.name, call.arguments) == ("c1", "look", {"order": 7})
    assert (result.call_id, result.content[0].text) == ("c1", "in Ulm")
    assert comes_back(found)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(("Google",))])
def test_model_and_tokens_of_each_call(name: str) -> None:
    (found,) = read(DOCUMENTS[name][1])
    assert found.metadata["model"] in ("gpt-4o", "gpt-4o-2024")
    assert found.steps[2].metrics["input_tokens"] == 12
    assert found.metadata["usage"]["input_tokens"] in (12, 24)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_TOOL_SPANS])
def test_a_result_that_only_the_span_of_its_tool_tells(name: str) -> None:
    """Without the last call of the model, whose history holds the result."""
    document = json.loads(json.dumps(DOCUMENTS[name][1]))
    spans = _spans(document)
    spans[:] = [span for span in spans if not _is_last_call(span)]
    (found,) = read(document)
    (result,) = found.steps[2].observation
    assert (result.call_id, result.content[0].text) == ("c1", "in Ulm")


def test_events_of_inspect_without_messages_are_refused_in_one_sentence() -> None:
    event = {"event": "model", "timestamp": 1.0, "output": {"usage": {"input_tokens": 1}}}
    with pytest.raises(InvalidRecord, match="none of them a call of a model with its messages"):
        read({"events": [event, event | {"event": "tool"}]})


def _spans(document: Any) -> list[Any]:
    holder = document
    for key in ("resourceSpans", "scopeSpans", "data", "observations", "spans", "events"):
        while isinstance(holder, list) and isinstance(holder[0], dict) and key in holder[0]:
            holder = holder[0]
        holder = holder[key] if isinstance(holder, dict) and key in holder else holder
    assert isinstance(holder, list)
    return holder


def _is_last_call(span: Any) -> bool:
    text = json.dumps(span)
    return "in Ulm" in text and "In Ulm." in text and "Be kind." in text and "all_messages_events" not in text


@pytest.mark.parametrize("name", DOCUMENTS)
def test_nothing_is_dropped(name: str) -> None:
    reader = ImportReader(None)
    for record in records(reader, json.dumps(DOCUMENTS[name][1]).encode()):
        reader.prepare(record)
    assert reader.dropped.as_json() == []


@pytest.mark.parametrize("name", ["Langfuse", "LangSmith", "Opik", "Helicone"])
def test_scores_are_the_outcome_and_are_shown_to_no_model(name: str) -> None:
    (found,) = read(DOCUMENTS[name][1])
    assert found.reward == 0.5
    assert found.success is (True if name == "Langfuse" else None)
    assert found.metadata["scores"]["reward"] == 0.5
    assert found.task.id == "t7"
    shown = repr([(step.message, step.reasoning, step.observation, step.tool_calls) for step in found.steps])
    assert "0.5" not in shown and "slow" not in shown


def test_costs_are_those_of_the_calls() -> None:
    (found,) = read(documents.LANGFUSE)
    assert (found.metadata["cost"], found.steps[2].metrics["cost"]) == (0.5, 0.25)


def test_reasoning_of_the_vercel_ai_sdk() -> None:
    (found,) = read(documents.VERCEL)
    assert found.steps[2].reasoning == "Hm."


def test_nodes_of_a_graph_are_one_run_and_speak_under_their_names() -> None:
    """LangGraph's instrumentation makes each run of a node an agent."""
    spans = json.loads(json.dumps(documents.PHOENIX))
    node = {"openinference": {"span": {"kind": "AGENT"}}, "agent": {"name": "node"}}
    for number, place in ((1, 5), (3, 6)):
        spans[number]["parent_id"] = f"0x{place:016x}"
        holder = spans[0] | {"parent_id": f"0x{1:016x}", "attributes": node}
        holder["context"] = holder["context"] | {"span_id": f"0x{place:016x}"}
        holder["start_time"] = spans[number]["start_time"]
        spans.append(holder)
    (found,) = read(spans)
    assert [step.source for step in found.steps] == ["system", "user", "agent", "agent"]
    assert found.steps[2].observation[0].content[0].text == "in Ulm"


def test_agents_of_other_conversations_are_trajectories_that_name_their_parent() -> None:
    spans = json.loads(json.dumps(documents.PHOENIX))
    other = json.loads(json.dumps(documents.PHOENIX[:2]).replace("Where is it?", "Where is Ulm?"))
    for place, span in enumerate(other, 8):
        span["context"]["span_id"] = f"0x{place:016x}"
    other[0]["parent_id"], other[1]["parent_id"] = f"0x{3:016x}", f"0x{8:016x}"
    main, sub = read([*spans, *other])
    assert len(main.steps) == 4 and sub.steps[1].text == "Where is Ulm?"
    assert sub.metadata["parent"] == main.id


def test_a_run_whose_calls_are_not_recorded_is_its_tools_and_its_answer() -> None:
    observations = [documents.LANGFUSE_OBSERVATIONS[0], documents.LANGFUSE_OBSERVATIONS[2]]
    (found,) = read(observations, "langfuse")
    assert said(found) == [("user", "Where is it?"), ("agent", ""), ("agent", "In Ulm.")]
    assert found.steps[1].tool_calls[0].arguments == {"order": 7}
    assert found.steps[1].observation[0].content[0].text == "in Ulm"


def test_runs_that_are_posted_when_they_begin_and_patched_when_they_end() -> None:
    runs = documents.LANGSMITH
    posted = [
        {key: value for key, value in run.items() if key not in ("outputs", "end_time")} for run in runs
    ]
    patched = [
        {"dotted_order": f"20241013T070537170001Z{run['id']}", "outputs": run.get("outputs"), "inputs": {}}
        for run in runs
        if len(str(run["id"])) == 36
    ]
    named = [{"id": run["id"], "outputs": run.get("outputs")} for run in runs if len(str(run["id"])) != 36]
    (found,) = read({"post": posted, "patch": [*patched, *named]}, "langsmith")
    (whole,) = read({"runs": runs}, "langsmith")
    assert said(found) == said(whole)


def test_child_runs_in_their_parent() -> None:
    root, *children = documents.LANGSMITH
    (found,) = read({"runs": [root | {"child_runs": children}]}, "langsmith")
    assert (len(found.steps), found.id) == (4, root["trace_id"])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([documents.LANGSMITH[2]], "no record is a call of a model"),
        ([documents.LANGFUSE_OBSERVATIONS[2]], "no record is a call of a model"),
        ([documents.PHOENIX[2]], "no span is a call of a model"),
        ({"trace": {"id": "t1"}, "observations": []}, "Export the traces with their observations"),
    ],
)
def test_traces_without_a_run_are_refused(document: Any, message: str) -> None:
    with pytest.raises(InvalidRecord, match=message):
        read(document)


def test_text_that_is_json_stays_text() -> None:
    """An answer in a schema is no response of an API."""
    answer = json.dumps({"answer": "yes", "content": "no", "output": [1]})
    generation = documents.LANGFUSE_OBSERVATIONS[3] | {"output": answer, "parentObservationId": None}
    (found,) = read([generation])
    assert found.steps[-1].text == answer


def test_a_prompt_that_names_its_speakers() -> None:
    prompt = (
        "System: Be kind.\nHuman: Where is it?\nAI: I look.[{'name': 'look', 'args': {'order': 7}, 'id': 'c1', "
        "'type': 'tool_call'}]\nTool: in Ulm"
    )
    run = documents.LANGSMITH[3] | {"inputs": {"prompts": [prompt]}, "parent_run_id": None}
    (found,) = read([run])
    assert said(found)[2:] == [("agent", "I look."), ("agent", "In Ulm.")]
    assert found.steps[2].observation[0].content[0].text == "in Ulm"


def test_no_two_formats_claim_one_document(shared_data: Path) -> None:
    given = [json.loads(json.dumps(document)) for _, document in DOCUMENTS.values()]
    singles = [
        each for document in given for each in (document if isinstance(document, list) else [document])
    ]
    for path in sorted((shared_data / "wild").glob("*.json*")):
        with path.open("rb") as stream:
            singles += [record.document for record in read_import_records(stream)][:5]
    own = ("otel", "otel-spans", "langfuse", "langsmith", "weave", "opik", "proxy-logs")
    for document in singles:
        claims = [format.name for format in formats.FORMATS.values() if format.sniff(document)]
        claims = [name for name in claims if name not in GENERAL]  # tried last
        assert len(claims) <= 1 or not set(claims) & set(own), claims


REAL = {  # trajectories, steps, calls, results: counted in the files by hand
    "openinference__all-spans.json": ("otel-spans", 8, 22, 0, 0),
    "otlp-vercel__ai-sdk.json": ("otel", 8, 22, 0, 0),
    "langfuse__autogen-2025-06-06.trace.json": ("langfuse", 1, 3, 0, 0),
    "langfuse__openai-agents-2025-09-30.trace.json": ("langfuse", 1, 4, 1, 1),
    "langsmith-runs__runs.jsonl": ("langsmith", 1, 4, 1, 1),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files(shared_data: Path, name: str) -> None:
    reader = ImportReader(None)
    raw = (shared_data / "wild" / name).read_bytes()
    found = [reader.read(record) for record in records(reader, raw)]
    steps = [step for trajectory in found for step in trajectory.steps]
    calls = sum(len(step.tool_calls) for step in steps)
    results = sum(result.call_id is not None for step in steps for result in step.observation)
    assert reader.format is not None
    assert (reader.format.name, len(found), len(steps), calls, results) == REAL[name]
    assert all(map(comes_back, found))


def test_scores_of_a_real_file_are_metadata(shared_data: Path) -> None:
    document = json.loads((shared_data / "wild/langfuse__openai-agents-2025-09-30.trace.json").read_text())
    (found,) = read(document)
    assert found.metadata["scores"] == {"toxicity": 0.8, "hallucination": 0}
    assert (found.metadata["usage"], found.reward) == ({"input_tokens": 140, "output_tokens": 44}, None)
