"""Files of trajectories that others published, counted as we read them and as their sources say."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from apps.trajectories.import_reader import ImportReader, read_import_records
from workers.schema import Trajectory, from_atif, to_atif

Counts = dict[str, int]


def read(path: Path) -> tuple[str, list[Trajectory]]:
    reader, found = ImportReader(None), []
    with path.open("rb") as stream:
        for record in read_import_records(stream):
            for part in reader.parts(record):
                reader.prepare(part)
                found.append(reader.read(part))
    assert reader.format is not None and reader.detected
    return reader.format.name, found


def counts(trajectories: list[Trajectory]) -> Counts:
    steps = [step for trajectory in trajectories for step in trajectory.steps]
    return {
        "trajectories": len(trajectories),
        "messages": sum(step.source != "environment" for step in steps),
        "calls": sum(len(step.tool_calls) for step in steps),
        "observations": sum(len(step.observation) for step in steps),
    }


def documents(path: Path) -> list[Any]:
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
    # Next to the history: what the last action gave, and how the run was ended.
    yield {
        "messages": said["messages"] + max(0, len(made) - answered),
        "calls": max(answered, len(made)),
        "observations": max(said["observations"], len(made)),
    }


def _mini(document: Any) -> Iterator[Counts]:
    yield _after_the_first_turn(document) | {
        "calls": sum("```mswea" in part["content"] for part in document[2:])
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
    for part in document:
        yield _chat(part["traj"])


@dataclass(frozen=True, slots=True)
class Source:
    """pattern: of its files in the data folder. of_source: counts of each trajectory by the source's own fields."""

    name: str
    pattern: str
    format: str
    files: int
    trajectories: int
    of_source: Callable[[Any], Iterator[Counts]]


SOURCES = (
    Source("SWE-agent", "swe_agent/**/*.traj", "swe-agent", 19, 19, _swe_agent),
    Source("mini-swe-agent", "mini_swe_agent/*.traj.json", "mini-swe-agent", 2, 2, _mini),
    Source("Inspect", "inspect_ai/*.json", "inspect", 3, 7, _inspect),
    Source("MINT", "mint/*/*.jsonl", "mint", 8, 708, _mint),
    Source("Who&When", "who_and_when/*/*.json", "who-and-when", 126, 126, _who_and_when),
    Source("AgentRx", "agentrx_tau/tau_dataset_full.json", "agentrx", 1, 100, _tau),
    Source("tau-bench", "tau_bench/*.json", "tau-bench", 1, 140, _tau),
)


def expected(path: Path, source: Source) -> Counts:
    """What the file holds by its source's own fields."""
    total: Counts = {"trajectories": 0, "messages": 0, "calls": 0, "observations": 0}
    for item in (each for document in documents(path) for each in source.of_source(document)):
        total["trajectories"] += 1
        for key, count in item.items():
            total[key] += count
    return total


def comes_back(trajectory: Trajectory) -> bool:
    """Whether it is the same after it was written as ATIF and read again."""
    back = from_atif(json.loads(json.dumps(to_atif(trajectory))))
    same = ("task", "id", "agent", "agent_version", "metadata", "reward", "success", "content_hash")
    return all((getattr(back, name) or None) == (getattr(trajectory, name) or None) for name in same) and all(
        ours == replace(theirs, extra={key: theirs.extra[key] for key in ours.extra if key in theirs.extra})
        for ours, theirs in zip(trajectory.steps, back.steps, strict=True)
    )
