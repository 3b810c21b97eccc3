"""Who spoke survives storage and every export, and the same file again brings nothing."""

import io
import json
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.trajectories import services
from apps.trajectories.exports import export_lines
from apps.trajectories.models import Step, Trajectory
from apps.trajectories.selectors import load_trajectories
from tests.trajectories.conftest import lines, record
from workers import schema

WHO = {
    "question": "Count.",
    "history": [
        {"role": "assistant", "name": "Boss", "content": "Count to two."},
        {"role": "assistant", "name": "Counter", "content": "print(2)"},
        {"role": "user", "name": "Computer_terminal", "content": "2"},
        {"role": "user", "name": "", "content": "Well."},
    ],
    "system_prompt": {"Boss": "b", "Counter": "c"},
    "mistake_agent": "Counter",
    "mistake_step": "1",
    "question_ID": "w1",
}


def conversation(count: int) -> list[dict[str, Any]]:
    """A turn of each of `count` agents, after the words of a person."""
    names = [f"agent {place}" for place in range(count)]
    asked = {"role": "user", "name": "ann", "content": "Plan the trip."}
    return [asked, *({"role": "assistant", "name": name, "content": f"I am {name}."} for name in names)]


def imported(project: Project, *records: Any) -> list[schema.Trajectory]:
    result = services.import_trajectories(project=project, stream=io.BytesIO(lines(*records)), by=None)
    assert not result.rejected, result.rejected
    keys = list(Trajectory.objects.order_by("pk").values_list("pk", flat=True))
    return [load_trajectories(keys)[key] for key in keys]


@pytest.mark.parametrize("count", [2, 5, 10])
@pytest.mark.parametrize("format", ["atif", "openai", "original"])
def test_speakers_survive_storage_and_exports(project: Project, count: int, format: str) -> None:
    messages = conversation(count)
    (stored,) = imported(project, record(1, messages=messages))
    assert [step.speaker for step in stored.steps] == [message["name"] for message in messages]
    assert schema.to_messages(stored) == messages
    (line,) = export_lines(project, Trajectory.objects.all(), format=format)
    again = services.import_trajectories(project=project, stream=io.BytesIO(line), by=None)
    assert (again.created, again.duplicates) == (0, 1), again
    if format == "atif":
        assert schema.from_atif(json.loads(line)).content_hash == stored.content_hash


def test_the_environment_has_speakers_too(project: Project) -> None:
    (stored,) = imported(project, WHO)
    assert [(step.source, step.speaker) for step in stored.steps] == [
        ("user", "Boss"),
        ("agent", "Counter"),
        ("environment", "Computer_terminal"),
        ("environment", None),
    ]
    for format in ("atif", "openai", "original"):
        (line,) = export_lines(project, Trajectory.objects.all(), format=format)
        again = services.import_trajectories(project=project, stream=io.BytesIO(line), by=None)
        assert (again.created, again.duplicates) == (0, 1), format


def test_who_speaks_is_content(project: Project) -> None:
    first, second = conversation(2), conversation(2)
    second[1]["name"], second[2]["name"] = second[2]["name"], second[1]["name"]
    assert len(imported(project, record(1, messages=first), record(1, messages=second))) == 2


def test_a_name_that_is_too_long_is_refused(project: Project) -> None:
    messages = conversation(1)
    messages[1]["name"] = "n" * (Step.SPEAKER_LENGTH + 1)
    stream = io.BytesIO(lines(record(1, messages=messages)))
    result = services.import_trajectories(project=project, stream=stream, by=None)
    assert result.created == 0
    assert "the name of a speaker has 201 characters; the limit is 200" in str(result.rejected)


def test_exports_of_earlier_versions_name_speakers_in_other_places() -> None:
    def step(**extra: Any) -> dict[str, Any]:
        return {"source": "agent", "message": "Hi", "extra": extra}

    document = {
        "schema_version": "ATIF-v1.7",
        "agent": {"name": "a", "version": "1"},
        "steps": [
            step(speaker="Boss", role="assistant") | {"step_id": 1},
            step(message={"name": "Counter"}) | {"step_id": 2},
            step(message={"name": "Counter", "annotations": [1]}) | {"step_id": 3},
        ],
    }
    read = schema.from_atif(document)
    assert [step.speaker for step in read.steps] == ["Boss", "Counter", "Counter"]
    assert [step.extra for step in read.steps] == [
        {"source_index": 1, "role": "assistant"},
        {"source_index": 2},
        {"source_index": 3, "message": {"annotations": [1]}},
    ]
