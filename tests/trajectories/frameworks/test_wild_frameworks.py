"""Published files of frameworks and model APIs, with the counts that their own fields give."""

import json
from pathlib import Path
from typing import Any

import pytest

from apps.trajectories import field_coverage, formats
from apps.trajectories.import_reader import ImportReader, read_import_records
from tests.trajectories.reading import GENERAL
from tests.trajectories.real_files import comes_back
from workers.schema import Trajectory


def read_file(path: Path) -> tuple[str, list[Trajectory], list[str]]:
    """Its format, its trajectories, and the paths that are in none of them."""
    reader, found, lost = ImportReader(None), [], []
    with path.open("rb") as stream:
        parts = [part for record in read_import_records(stream) for part in reader.parts(record)]
    for part in [*parts, *reader.rest()]:
        trajectory, uses = reader.read_fields(part)
        found.append(trajectory)
        lost += [use.path for use in uses if use.use == "dropped" and use.reason == field_coverage.NOT_READ]
    assert reader.format is not None
    return reader.format.name, found, lost


def counts(trajectories: list[Trajectory]) -> dict[str, int]:
    """`tied`: results of a call that has their id."""
    steps = [step for each in trajectories for step in each.steps]
    return {
        "trajectories": len(trajectories),
        "agent": sum(step.source == "agent" for step in steps),
        "user": sum(step.source == "user" for step in steps),
        "calls": sum(len(step.tool_calls) for step in steps),
        "tied": sum(
            result.call_id in [call.id for call in step.tool_calls]
            for step in steps
            for result in step.observation
        ),
        "reasoning": sum(step.reasoning is not None for step in steps),
    }


EXPECTED: dict[str, tuple[str, dict[str, int]]] = {
    "adk-session*": (
        "adk",
        {"trajectories": 1, "agent": 6, "user": 1, "calls": 2, "tied": 2, "reasoning": 0},
    ),
    "anthropic-response*": (
        "model-response",
        {"trajectories": 1, "agent": 3, "user": 0, "calls": 2, "tied": 2, "reasoning": 0},
    ),
    "autogen__taskresult*": (
        "autogen",
        {"trajectories": 1, "agent": 3, "user": 1, "calls": 0, "tied": 0, "reasoning": 0},
    ),
    "langchain-messages__dumpd*": (
        "langchain",
        {"trajectories": 1, "agent": 2, "user": 1, "calls": 1, "tied": 1, "reasoning": 0},
    ),
    "langchain-messages__messages*": (
        "langchain",
        {"trajectories": 1, "agent": 2, "user": 1, "calls": 1, "tied": 1, "reasoning": 0},
    ),
    "langgraph-state*": (
        "langchain",
        {"trajectories": 1, "agent": 2, "user": 1, "calls": 1, "tied": 1, "reasoning": 0},
    ),
    "openai-agents-runstate*": (
        "openai-agents",
        {"trajectories": 1, "agent": 1, "user": 1, "calls": 2, "tied": 1, "reasoning": 0},
    ),
    "openai-agents__to_input_list*": (
        "openai-items",
        {"trajectories": 1, "agent": 2, "user": 1, "calls": 1, "tied": 1, "reasoning": 1},
    ),
    "openai-responses*": (
        "model-response",
        {"trajectories": 1, "agent": 2, "user": 0, "calls": 3, "tied": 0, "reasoning": 0},
    ),
    "pydantic-ai*": (
        "pydantic-ai",
        {"trajectories": 1, "agent": 2, "user": 1, "calls": 1, "tied": 1, "reasoning": 0},
    ),
    "smolagents__full*": (
        "smolagents",
        {"trajectories": 1, "agent": 2, "user": 1, "calls": 2, "tied": 2, "reasoning": 0},
    ),
    "smolagents__succinct*": (
        "smolagents",
        {"trajectories": 1, "agent": 2, "user": 1, "calls": 2, "tied": 2, "reasoning": 0},
    ),
}


@pytest.mark.parametrize("pattern", EXPECTED)
def test_a_file_has_the_counts_of_its_source(shared_data: Path, pattern: str) -> None:
    name, found, lost = read_file(next((shared_data / "wild").glob(pattern)))
    assert (name, counts(found)) == EXPECTED[pattern]
    assert lost == []
    assert all(map(comes_back, found))


def test_rollouts_of_nemo_gym(shared_data: Path) -> None:
    path = next((shared_data / "wild").glob("nemo-gym*"))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    name, found, lost = read_file(path)
    assert (name, lost) == ("nemo-gym", [])
    assert [each.reward for each in found] == [row["reward"] for row in rows]
    outputs = [row["response"]["output"] for row in rows]
    calls = [[item["name"] for item in output if item["type"] == "function_call"] for output in outputs]
    assert [[call.name for step in each.steps for call in step.tool_calls] for each in found] == calls
    answers = [output[-1]["content"][0]["text"] for output in outputs]
    assert [each.steps[-1].text for each in found] == answers
    usage = [row["response"]["usage"]["output_tokens"] for row in rows]
    assert [each.metadata["usage"]["output_tokens"] for each in found] == usage
    assert all("reward" not in json.dumps(each.metadata) for each in found)
    assert counts(found)["tied"] == sum(map(len, calls))


def test_recorded_calls_of_autogen(shared_data: Path) -> None:
    path = next((shared_data / "wild").glob("autogen-memory*"))
    calls = json.loads(path.read_text())
    name, found, lost = read_file(path)
    assert (name, lost, len(found)) == ("autogen", [], len(calls))
    assert [each.steps[-1].text for each in found] == [call["response"]["content"] for call in calls]
    assert [len(each.steps) for each in found] == [len(call["messages"]) + 1 for call in calls]
    tokens = [call["response"]["usage"]["prompt_tokens"] for call in calls]
    assert [each.steps[-1].metrics["prompt_tokens"] for each in found] == tokens


def test_no_two_formats_claim_a_document(shared_data: Path) -> None:
    for path in sorted((shared_data / "wild").glob("*.json*")):
        if path.name.startswith(("SOURCE", "licenses")):
            continue
        with path.open("rb") as stream:
            document: Any = next(iter(read_import_records(stream))).document
        claims: list[str] = [name for name, format in formats.FORMATS.items() if format.sniff(document)]
        if len(claims) > 1:  # the general ones are tried last
            claims = [name for name in claims if name not in {"openai", *GENERAL}]
        assert len(claims) <= 1, (path.name, claims)


def test_speakers_of_a_session(shared_data: Path) -> None:
    path = next((shared_data / "wild").glob("adk-session*"))
    events = json.loads(path.read_text())["events"]
    _, (found,), _ = read_file(path)
    said = [event["author"] for event in events if "function_response" not in event["content"]["parts"][0]]
    assert [step.speaker or "user" for step in found.steps] == said
    assert found.id == json.loads(path.read_text())["id"]
