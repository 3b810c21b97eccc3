"""Each fixture against the schema, against the shape of the real data, and against the importer that reads it."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers import READERS
from apps.annotation.feedback_types.comment import CommentValue
from apps.annotation.feedback_types.pairwise import PreferenceValue
from apps.trajectories.formats import FORMATS, detect
from workers.errors import InvalidRecord
from workers.schema import Step, Trajectory
from workers.schema.storage import read_lines

FIXTURES = {
    path.stem: json.loads(path.read_text())
    for path in sorted((Path(__file__).parent / "fixtures").glob("*.json"))
}
FEEDBACK = [name for name, entry in FIXTURES.items() if entry["command"] == "import_feedback"]
TRAJECTORIES = [name for name, entry in FIXTURES.items() if entry["command"] == "import_trajectories"]
ARRAYS = ("pandalm", "fine-grained-rlhf")  # files that are one JSON array; the others are JSON lines


@pytest.mark.parametrize("name", FIXTURES)
def test_a_fixture_has_the_shape_of_its_data(name: str, shared_data: Path):
    one = FIXTURES[name]
    for source, file in (("source", one["data"]), ("source_labels", one.get("labels"))):
        if file:
            assert shape(one[source][0]) <= shape(first_record(shared_data / file)), f"{name}: {source}"


def first_record(path: Path) -> Any:
    """mini-swe-agent's record is a list itself; the other lists are files of records."""
    if path.suffix == ".jsonl":
        return json.loads(next(read_lines(path)))
    document = json.loads(path.read_text())
    return document[0] if isinstance(document, list) and "role" not in document[0] else document


def shape(record: Any) -> set[str]:
    """The keys of a record and of the objects in it, two deep."""
    if isinstance(record, list):
        return {f"[]{key}" for element in record for key in shape(element)}
    if not isinstance(record, dict):
        return set()
    return {
        *record,
        *(f"{key}/{inner}" for key, value in record.items() if isinstance(value, dict) for inner in value),
    }


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_trajectories_are_read_as_the_fixture_says(name: str):
    one = FIXTURES[name]
    assert {detect(source).name for source in one["source"]} == {one["format"]}
    read = [FORMATS[one["format"]].read(source) for source in one["source"]]
    assert [
        compact(trajectory, like) for trajectory, like in zip(read, one["trajectories"], strict=True)
    ] == one["trajectories"]


@pytest.mark.parametrize("name", FEEDBACK)
def test_feedback_is_read_as_the_fixture_says(name: str):
    one = FIXTURES[name]
    array = one["format"] in ARRAYS
    text = json.dumps(one["source"]) if array else "\n".join(map(json.dumps, one["source"]))
    found = [incoming for _, incoming in READERS[one["format"]](BytesIO(text.encode()))]
    trajectories: list[Trajectory] = []
    records = [record(incoming, trajectories) for incoming in found if isinstance(incoming, Incoming)]
    assert not any(isinstance(incoming, InvalidRecord) for incoming in found)
    assert records == one["records"]
    assert [
        compact(trajectory, like) for trajectory, like in zip(trajectories, one["trajectories"], strict=True)
    ] == one["trajectories"]


@pytest.mark.parametrize("name", FIXTURES)
def test_records_name_steps_that_are_there(name: str):
    one = FIXTURES[name]
    for said in one["records"]:
        steps = one["trajectories"][said.get("trajectory", 0)]["steps"]
        agent_steps = sum(step["source"] == "agent" for step in steps)
        assert said.get("steps", [0, 0])[1] < len(steps)
        assert (said.get("first_error") or 0) < agent_steps
        assert all(said.get(place, 0) < len(one["trajectories"]) for place in ("a", "b", "trajectory"))


def record(incoming: Incoming, trajectories: list[Trajectory]) -> dict[str, Any]:
    """As the fixtures write it; trajectories seen for the first time are added to the list."""
    places = []
    for place in incoming.places:
        assert isinstance(place, Trajectory)
        if place not in trajectories:
            trajectories.append(place)
        places.append(trajectories.index(place))
    out: dict[str, Any] = {"kind": incoming.kind, "annotator": incoming.annotator}
    if incoming.item:
        out["item"] = incoming.item
    if isinstance(incoming.value, PreferenceValue):
        return out | {"a": places[0], "b": places[1], "choice": incoming.value.choice}
    assert isinstance(incoming.value, CommentValue) and incoming.value.anchor
    anchor = incoming.value.anchor
    said = {"text": incoming.value.text, "sign": incoming.value.sign, "quote": anchor.quote}
    return (
        out | said | {"trajectory": places[0], "steps": list(anchor.steps), "chars": list(anchor.chars or ())}
    )


def compact(trajectory: Trajectory, like: dict[str, Any]) -> dict[str, Any]:
    """A trajectory as the fixtures write it; `like` says which of its optional fields they mention."""
    task = trajectory.task
    named = {"id": task.id, "instruction": task.instruction, "reference": task.reference}
    out: dict[str, Any] = {"task": {key: named[key] for key in like["task"]}}
    optional = {"agent": trajectory.agent, "reward": trajectory.reward, "success": trajectory.success}
    out |= {key: value for key, value in optional.items() if key in like}
    return out | {"steps": [compact_step(step) for step in trajectory.steps]}


def compact_step(step: Step) -> dict[str, Any]:
    out: dict[str, Any] = {"source": step.source}
    if step.message:
        out["text"] = step.text
    if step.tool_calls:
        out["calls"] = [[call.name, call.arguments] for call in step.tool_calls]
    if step.observation:
        out["results"] = ["".join(part.text or "" for part in result.content) for result in step.observation]
    return out
