"""Every file of trajectories that others published: in, counted against the source, and through ATIF and back."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.trajectories.reading import Reader, records_of
from workers.schema import Trajectory, from_atif, to_atif

Counts = dict[str, int]


def read(path: Path) -> tuple[str, list[Trajectory]]:
    reader, found = Reader(None), []
    with path.open("rb") as stream:
        for record in records_of(stream):
            for part in reader.parts(record):
                reader.prepare(part)
                found.append(reader.read(part))
    assert reader.format is not None and reader.detected
    return reader.format.name, found


def counts(trajectories: list[Trajectory]) -> Counts:
    steps = [step for one in trajectories for step in one.steps]
    return {
        "trajectories": len(trajectories),
        "messages": sum(step.source != "environment" for step in steps),
        "calls": sum(len(step.tool_calls) for step in steps),
        "observations": sum(len(step.observation) for step in steps),
    }


def _documents(path: Path) -> list[Any]:
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else [json.loads(text)]


def _roles(messages: list[dict[str, Any]], *names: str) -> int:
    return sum(message["role"] in names for message in messages)


def _chat(messages: list[dict[str, Any]]) -> Counts:
    return {
        "messages": _roles(messages, "system", "user", "assistant"),
        "calls": sum(len(message.get("tool_calls") or ()) for message in messages),
        "observations": _roles(messages, "tool"),
    }


def _after_the_first_turn(messages: list[dict[str, Any]]) -> Counts:
    """What comes from the user's side after the agent's first turn is what was observed."""
    first = next(place for place, message in enumerate(messages) if message["role"] == "assistant")
    seen = _roles(messages[first:], "user", "tool")
    return {"messages": len(messages) - seen, "observations": seen}


def _swe_agent(document: Any) -> Iterator[Counts]:
    history, made = document["history"], document.get("trajectory", [])
    said = _after_the_first_turn(history)
    answered = _roles(history, "assistant")
    # Beside the history: what the last action gave, and how the run was ended.
    yield {
        "messages": said["messages"] + max(0, len(made) - answered),
        "calls": max(answered, len(made)),
        "observations": max(said["observations"], len(made)),
    }


def _mini(document: Any) -> Iterator[Counts]:
    yield _after_the_first_turn(document) | {
        "calls": sum("```mswea" in one["content"] for one in document[2:])
    }


def _inspect(document: Any) -> Iterator[Counts]:
    for sample in document["samples"]:
        yield _chat(sample["messages"])


def _mint(document: Any) -> Iterator[Counts]:
    yield _after_the_first_turn(document["state"]["history"]) | {"calls": 0}


def _who_and_when(document: Any) -> Iterator[Counts]:
    terminal = sum(turn["name"] == "Computer_terminal" for turn in document["history"])
    yield {"messages": len(document["history"]) - terminal, "calls": 0, "observations": terminal}


def _tau(document: Any) -> Iterator[Counts]:
    for one in document:
        yield _chat(one["traj"])


@pytest.mark.parametrize(
    ("pattern", "format", "files", "trajectories", "of_source"),
    [
        ("swe_agent/**/*.traj", "swe-agent", 19, 19, _swe_agent),
        ("mini_swe_agent/*.traj.json", "mini-swe-agent", 2, 2, _mini),
        ("inspect_ai/*.json", "inspect", 3, 7, _inspect),
        ("mint/*/*.jsonl", "mint", 8, 708, _mint),
        ("who_and_when/*/*.json", "who-and-when", 126, 126, _who_and_when),
        ("agentrx_tau/tau_dataset_full.json", "agentrx", 1, 100, _tau),
        ("tau_bench/*.json", "tau-bench", 1, 140, _tau),
    ],
)
def test_everything_of_the_source_is_there(
    shared_data: Path,
    pattern: str,
    format: str,
    files: int,
    trajectories: int,
    of_source: Callable[[Any], Iterator[Counts]],
) -> None:
    paths = sorted(shared_data.glob(pattern))
    assert len(paths) == files
    total = 0
    for path in paths:
        name, found = read(path)
        assert name == format
        expected: Counts = {"trajectories": 0, "messages": 0, "calls": 0, "observations": 0}
        for one in (each for document in _documents(path) for each in of_source(document)):
            expected["trajectories"] += 1
            for key, count in one.items():
                expected[key] += count
        assert counts(found) == expected, path
        for one in found:
            back = from_atif(json.loads(json.dumps(to_atif(one))))
            assert back.steps == one.steps and back.content_hash == one.content_hash
        total += len(found)
    assert total == trajectories


def test_outcomes_are_outcomes(shared_data: Path) -> None:
    def right(pattern: str) -> int:
        found = [one for path in shared_data.glob(pattern) for one in read(path)[1]]
        assert all(one.success is not None for one in found)
        return sum(bool(one.success) for one in found)

    assert right("tau_bench/*.json") == 43
    assert right("agentrx_tau/tau_dataset_full.json") == 73
    assert right("mint/*/*.jsonl") == 384
    assert right("who_and_when/*/*.json") == 0
    assert right("inspect_ai/*.json") == 6


def test_no_outcome_stands_in_what_a_model_reads(shared_data: Path) -> None:
    for pattern, leaks in (
        ("mint/alfworld/*.jsonl", ("terminate_reason", "task_success")),
        ("who_and_when/*/1.json", ("mistake_reason", "is_correct")),
        ("inspect_ai/*.json", ("model_graded_fact", "explanation")),
        ("agentrx_tau/tau_dataset_full.json", ("gt_data_hash",)),
    ):
        for path in shared_data.glob(pattern):
            for one in read(path)[1]:
                shown = json.dumps([step["extra"] | step for step in to_atif(one)["steps"]])
                assert not any(leak in shown for leak in leaks), path


def test_tasks_that_are_the_same_are_one(shared_data: Path) -> None:
    """One issue under ten configurations, whose prompts differ; a question asked of four models."""
    paths = shared_data.glob("swe_agent/*/marshmallow-code__marshmallow-1867.traj")
    issues = [one.task for path in paths for one in read(path)[1]]
    assert len(issues) == 8 and len({task.instruction for task in issues}) == 1
    assert issues[0].instruction.startswith("TimeDelta serialization precision")
    models = [read(path)[1] for path in sorted(shared_data.glob("mint/hotpotqa/*.jsonl"))]
    assert {one.task.id for one in models[0]} == {one.task.id for one in models[1]}
    assert len({one.task.id for one in models[0]}) == 43
