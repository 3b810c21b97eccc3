"""Answers next to the messages, a top-level `system`, and outcome, task, model, usage, cost and times of files."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.trajectories import formats, services
from apps.trajectories.models import Task, Trajectory
from tests.trajectories.conftest import lines, record
from tests.trajectories.mutations import DOCUMENTS
from tests.trajectories.real_files import read
from workers.schema import Trajectory as Read

ASKED = [{"role": "user", "content": "2+2?"}]


def openai(**fields: Any) -> Read:
    return formats.FORMATS["openai"].read({"messages": ASKED} | fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"response": "4"},
        {"response": {"role": "assistant", "content": "4"}},
        {"response": {"choices": [{"message": {"role": "assistant", "content": "4"}, "index": 0}]}},
        {"response": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "4"}]}},
        {"response": {"object": "response", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4"}]}]}},
        {"response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "4"}]}}]}},
        {"response": [{"role": "assistant", "content": "4"}]},
        {"choices": [{"message": {"role": "assistant", "content": "4"}}]},
    ],
)  # fmt: skip
def test_the_answer_next_to_the_messages_is_the_last_step(fields: dict[str, Any]) -> None:
    found = openai(**fields)
    assert [(step.source, step.text) for step in found.steps] == [("user", "2+2?"), ("agent", "4")]


def test_an_answer_that_is_among_the_messages_is_not_doubled() -> None:
    messages = [*ASKED, {"role": "assistant", "content": "4"}]
    found = openai(messages=messages, choices=[{"message": messages[1]}])
    assert len(found.steps) == 2
    again = openai(messages=[*messages, *ASKED], choices=[{"message": messages[1]}])
    assert [step.source for step in again.steps] == ["user", "agent", "user", "agent"]


def test_a_top_level_system_is_the_first_step() -> None:
    for system in (
        "Be kind.",
        [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
    ):
        found = openai(system=system, response="4")
        assert (found.steps[0].source, found.steps[0].text) == ("system", "Be kind.")
    asked = formats.FORMATS["prompt-response"].read({"prompt": "2+2?", "response": "4", "system": "Be kind."})
    assert [step.text for step in asked.steps] == ["Be kind.", "2+2?", "4"]
    messages = [{"role": "system", "content": "Be kind."}, *ASKED]
    assert len(openai(system="Be kind.", messages=messages, response="4").steps) == 3


def test_four_agent_steps_of_a_log_of_calls(shared_data: Path) -> None:
    _, (found,) = read(shared_data / "wild/openhands-llmlog__llm-log.json")
    log = json.loads((shared_data / "wild/openhands-llmlog__llm-log.json").read_text())
    assert len(found.agent_steps) == 4
    last = found.steps[found.agent_steps[-1]]
    answer = log["response"]["choices"][0]["message"]
    assert [call.id for call in last.tool_calls] == [call["id"] for call in answer["tool_calls"]]
    assert last.metrics["completion_tokens"] == log["response"]["usage"]["completion_tokens"]
    assert found.agent == log["response"]["model"]
    assert (found.metadata["cost"], found.metadata["seconds"]) == (log["cost"], log["latency_sec"])
    assert found.metadata["usage"]["input_tokens"] == log["response"]["usage"]["prompt_tokens"]


@pytest.mark.parametrize(
    ("fields", "success"),
    [
        ({"resolved": True}, True),
        ({"resolved": 0.0}, False),
        ({"target": False}, False),
        ({"target": "Paris"}, None),
        ({"target": 1}, None),
        ({"success": False, "resolved": True}, False),
    ],
)
def test_outcomes_under_the_names_of_data_sets(fields: dict[str, Any], success: bool | None) -> None:
    assert openai(response="4", **fields).success is success


def test_task_and_model_of_a_data_set(project: Project) -> None:
    row = {"instance_id": "repo__1", "model": "gpt-4o", "resolved": True, "patch": "diff"}
    row["messages"] = json.dumps([*ASKED, {"role": "assistant", "content": "4"}])
    services.import_trajectories(project=project, stream=io.BytesIO(lines(row)), by=None)
    stored = Trajectory.objects.get()
    assert (stored.task.external_id, stored.agent_name, stored.success) == ("repo__1", "gpt-4o", True)


def test_model_stats_of_swe_agent() -> None:
    stats = {"instance_cost": 1.25, "tokens_sent": 900, "tokens_received": 30, "api_calls": 4}
    info = {"model_stats": stats, "swe_agent_version": "1.1.0", "resolved": True}
    config = json.dumps({"agent": {"name": "main", "model": {"name": "claude"}}})
    found = formats.FORMATS["swe-agent"].read(
        DOCUMENTS["swe-agent"] | {"info": info, "replay_config": config, "instance_id": "repo__1"}
    )
    assert (found.task.id, found.agent_version, found.success) == ("repo__1", "1.1.0", True)
    assert found.metadata["model"] == "claude"
    assert found.metadata["usage"] == {"input_tokens": 900, "output_tokens": 30}
    assert found.metadata["cost"] == 1.25


def test_usage_and_times_of_inspect(shared_data: Path) -> None:
    path = next(shared_data.glob("inspect_ai/*browser.json"))
    sample = json.loads(path.read_text())["samples"][0]
    _, (found, *_) = read(path)
    assert found.metadata["seconds"] == sample["total_time"]
    usage = sample["model_usage"]["openai/gpt-4o-mini"]
    assert found.metadata["usage"] == {
        "input_tokens": usage["input_tokens"],
        "output_tokens": usage["output_tokens"],
    }
    measured = [step.metrics for step in found.steps if step.source == "agent" and step.metrics]
    assert sum(metrics["input_tokens"] for metrics in measured) == usage["input_tokens"]
    assert all(metrics["seconds"] > 0 for metrics in measured)


def test_a_score_that_is_no_number_is_null_and_the_rest_of_the_log_is_read(
    project: Project, shared_data: Path
) -> None:
    raw = (shared_data / "cases/import/inspect_one_nan.json").read_bytes()
    result = services.import_trajectories(project=project, stream=io.BytesIO(raw), by=None)
    assert (result.created, result.rejected) == (2, [])
    assert sorted(Trajectory.objects.values_list("outcome_reward", flat=True), key=str) == [1.0, None]
    (dropped,) = [row for row in result.dropped.as_json() if "not a finite number" in row["reason"]]
    assert (dropped["path"], dropped["count"]) == ("/samples/*/scores/acc/value", 1)


def test_sub_agents_of_atif_are_trajectories_with_a_parent() -> None:
    def part(session: str, **more: Any) -> dict[str, Any]:
        steps = [{"step_id": 1, "source": "agent", "message": f"of {session}"}]
        return {
            "schema_version": "ATIF-v1.7",
            "session_id": session,
            "agent": {"name": "a"},
            "steps": steps,
        } | more

    split = formats.FORMATS["atif"].split
    assert split is not None
    document = part("one", subagent_trajectories=[part("two", subagent_trajectories=[part("three")])])
    found = [formats.FORMATS["atif"].read(each) for _, each in split(document)]
    assert [(each.id, each.steps[0].text, each.metadata.get("parent")) for each in found] == [
        ("one", "of one", None),
        ("two", "of two", "one"),
        ("three", "of three", "two"),
    ]
    assert [pointer for pointer, _ in split(document)] == [
        "",
        "/subagent_trajectories/0",
        "/subagent_trajectories/0/subagent_trajectories/0",
    ]


@pytest.mark.parametrize("character", ["t", "\N{HIRAGANA LETTER A}"])
def test_a_task_id_of_2000_characters(project: Project, character: str) -> None:
    long = "".join(chr(ord(character) + number % 23) for number in range(2000))
    data = lines(record(1, task=long), record(2, task=long), record(1, task=long[:-1] + character))
    for created in (3, 0):
        result = services.import_trajectories(project=project, stream=io.BytesIO(data), by=None)
        assert (result.created, result.rejected) == (created, [])
    assert Task.objects.count() == 2
    result = services.import_trajectories(
        project=project, stream=io.BytesIO(lines(record(1, task=long + "t"))), by=None
    )
    assert "2001 characters; the limit is 2000" in result.rejected[0]["message"]


def test_a_zip_of_macos(project: Project) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("runs/a.jsonl", lines(record(1)))
        archive.writestr("__MACOSX/runs/._a.jsonl", b"\0\5\26\7 no JSON")
        archive.writestr("runs/.DS_Store", b"\0")
        archive.writestr("runs/notes.txt", b"notes")
    packed.seek(0)
    result = services.import_trajectories(project=project, stream=packed, by=None)
    assert (result.created, result.rejected) == (1, [])
    assert {row["path"] for row in result.dropped.as_json()} == {
        "/__MACOSX~1runs~1._a.jsonl",
        "/runs~1.DS_Store",
        "/runs~1notes.txt",
    }


def test_the_zip_of_a_mac_in_the_data(project: Project, shared_data: Path) -> None:
    raw = (shared_data / "cases/import/zip_macosx.zip").read_bytes()
    result = services.import_trajectories(project=project, stream=io.BytesIO(raw), by=None)
    assert result.created and not result.rejected


@pytest.mark.parametrize(
    "about",
    [
        {"choices": ["yes", "no"], "answer": 1},
        {"response": 0.5},
        {"response": {"grade": "A"}},
        {"choices": [{"key": "A"}]},
    ],
)
def test_choices_of_a_question_and_grades_are_metadata(about: dict[str, object]) -> None:
    document = {
        "messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "yes"}]
    } | about
    found = formats.FORMATS["openai"].read(document)
    assert len(found.steps) == 2 and found.metadata == about
