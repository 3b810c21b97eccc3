"""Failed steps with their corrections, and reflections between two attempts, as rows for trainers."""

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.annotation.feedback.services import import_feedback
from apps.datasets.exports import EXPORTS
from apps.datasets.exports.reflections import QUESTION
from apps.datasets.models import DatasetVersion
from tests.datasets.feedback import freeze

FIND = {"type": "function", "id": "c1", "function": {"name": "find", "arguments": '{"id": 7}'}}
CORRECTION = {"text": "", "tool_calls": [{"name": "find", "arguments": {"id": 8}}]}


def run(*turns: Any, **metadata: Any) -> dict[str, Any]:
    """turns: what the agent says; None calls a tool, which fails."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Where is 7?"}]
    for turn in turns:
        if turn is None:
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [FIND]},
                {"role": "tool", "tool_call_id": "c1", "content": "Error: no such order"},
            ]
        else:
            messages.append({"role": "assistant", "content": turn})
    return {"messages": messages} | ({"metadata": metadata} if metadata else {})


def bring(project: Project, format: str, *records: dict[str, Any]) -> None:
    stream = io.BytesIO("".join(json.dumps(record) + "\n" for record in records).encode())
    result = import_feedback(project=project, stream=stream, format=format, by=None)
    assert not result.rejected, result.rejected


def exported(version: DatasetVersion, format: str) -> tuple[list[dict[str, Any]], dict[str, int]]:
    left_out: Counter[str] = Counter()
    rows = [json.loads(line) for line in EXPORTS[format](version, None, left_out)]
    return rows, dict(+left_out)


def steps(task: str, annotator: str = "ann", **given: Any) -> dict[str, Any]:
    return {"task": {"id": task, "instruction": "Find 7."}, "annotator": annotator} | given


@pytest.fixture
def labelled(project: Project) -> DatasetVersion:
    first = run("Hello.", None, "Bye.")
    bring(
        project,
        "steps",
        steps(
            "a", trajectory=first, labels={"0": "good", "1": "bad", "2": "bad"}, corrections={"1": CORRECTION}
        ),
        steps("a", "ben", trajectory=first, labels={"2": "good", "0": "good"}),
        steps("a", "cid", trajectory=first, labels={"2": "good"}),
        steps("b", trajectory=run("Sorry.", "It is lost."), first_error=1),
        steps("c", trajectory=run(None), labels={"0": "good"}),  # whoever looked found the failure right
        steps("d", trajectory=run(None, "Gone."), labels={"1": "good"}),
    )
    return freeze(project)


def test_failed_steps_are_exported_alone_with_their_corrections(labelled: DatasetVersion) -> None:
    rows, left_out = exported(labelled, "trl-failed-steps")
    found = {(row["task"], row["agent_step"]): row for row in rows}
    assert sorted(found) == [("a", 1), ("b", 1), ("d", 0)]  # two of three call the last step of a good
    called = found["a", 1]
    assert [message["role"] for message in called["prompt"]] == ["user", "assistant"]
    (action,) = called["completion"]
    assert action["tool_calls"][0]["function"] == {"name": "find", "arguments": {"id": 7}}
    assert called["correction"][0]["tool_calls"][0]["function"]["arguments"] == {"id": 8}
    assert (called["reasons"], called["origin"], called["label"]) == (
        ["bad", "failed_call"],
        "imported",
        False,
    )
    assert (found["b", 1]["reasons"], found["b", 1]["correction"]) == (["first_error"], [])
    assert found["b", 1]["completion"] == [{"role": "assistant", "content": "It is lost."}]
    assert (found["d", 0]["reasons"], found["d", 0]["origin"]) == (["failed_call"], "observation")
    assert left_out == {"trajectories without a failed step": 1}


def test_trl_reads_failed_steps_as_rejected_completions(labelled: DatasetVersion, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(EXPORTS["trl-failed-steps"](labelled, None, Counter())))
    rows = datasets.load_dataset("json", data_files=str(file), cache_dir=str(tmp_path / "cache"))["train"]
    assert len(rows) == 3 and set(rows["label"]) == {False}
    assert {"prompt", "completion", "correction"} <= set(rows.column_names)


def test_a_reflection_stands_between_two_attempts(project: Project) -> None:
    first = run("It is lost.")
    second = run("Let me look.", "It is in Bonn.")
    lonely = run("Hm.")
    task = {"id": "a", "instruction": "Find 7."}
    bring(
        project,
        "comments",
        {
            "task": task,
            "trajectory": first,
            "text": "Look before you answer.",
            "sign": -1,
            "annotator": "ann",
        },
        {
            "task": task,
            "trajectory": first,
            "text": "Not lost.",
            "anchor": {"steps": [1, 1]},
            "annotator": "ann",
        },
        {"task": task, "trajectory": first, "text": "Too short.", "annotator": "ben"},
        {"task": {"id": "b"}, "trajectory": lonely, "text": "No.", "annotator": "ann"},
    )
    bring(
        project,
        "outcomes",
        {"task": task, "trajectory": first, "success": False},
        {"task": task, "trajectory": second, "success": True},
    )
    rows, left_out = exported(freeze(project), "trl-reflections")
    assert [row["annotator"] for row in rows] == ["ann", "ben"]
    row = rows[0]
    assert row["completion"] == [
        {"role": "assistant", "content": "Look before you answer.\nStep 1: Not lost."}
    ]
    prompt = row["prompt"][0]["content"]
    assert prompt.startswith("Find 7.") and "It is lost." in prompt and prompt.endswith(QUESTION)
    assert "The attempt failed." in prompt
    assert [message["content"] for message in row["retry"]][-1] == "It is in Bonn."
    assert (row["gain"], row["origin"]) == (1.0, "imported")
    assert row["retry_trajectory"] > row["trajectory"]
    assert left_out == {
        "reflections on attempts without a later one": 1,
        "trajectories that no one reflected on": 1,
    }


def test_attempts_are_ordered_by_their_number_and_agents_reflect_too(project: Project) -> None:
    """The later attempt was imported first; its agent wrote what it would do differently."""
    from apps.trajectories.services import import_trajectories

    about = {"task": {"id": "a", "instruction": "Find 7."}, "agent": "fox"}
    lines = [
        about | run("It is in Bonn.", attempt=2) | {"id": "second", "reward": 0.75, "success": True},
        about
        | run("It is lost.", attempt=1, reflection="I should look first.")
        | {"id": "first", "reward": 0.25, "success": False},
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert import_trajectories(project=project, stream=io.BytesIO(data), by=None).created == 2
    rows, left_out = exported(freeze(project), "trl-reflections")
    (row,) = rows
    assert row["completion"][0]["content"] == "I should look first."
    assert (row["gain"], row["annotator"], row["origin"]) == (0.5, "fox", "agent")
    assert row["retry"][-1]["content"] == "It is in Bonn."
    assert "The attempt failed." in row["prompt"][0]["content"]
    assert left_out == {"trajectories that no one reflected on": 1}
