"""AutoLibra's folder as its package writes it: runs with the data of their points, and what people wrote about them."""

import io
import json
import zipfile
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.annotation.feedback.services import import_feedback
from apps.annotation.models import Annotator, Comment
from apps.trajectories import formats
from apps.trajectories.models import Trajectory
from apps.trajectories.services import import_trajectories

RUN = "set/instances/7f3a/agent"
POINTS: list[tuple[str, Any]] = [
    ("observation", {"content": "The shop is open."}),
    ("action", {"content": "I look for shoes."}),
    ("observation", {"url": "http://shop.test", "html": "[1] shoes"}),
    ("action", {"action_type": "click", "element": 1}),
    ("observation", "Bought."),
]
SAID = [
    {
        "annotator_id": "zoe",
        "content": {"feedback": "It never asked for my size."},
        "span": {"point_indices": [3, 4]},
    },
    {"annotator_id": "yan", "content": {"feedback": "Quick.", "tone": "curt", "rating": 3}},
]


def folder(**changed: Any) -> dict[str, Any]:
    """Name in the archive: its JSON."""
    points = []
    files: dict[str, Any] = {}
    for number, (kind, data) in enumerate(POINTS):
        name = f"json_data/7f3a_agent_{number}.json"
        files[f"{RUN}/{name}"] = data
        reference = json.dumps({"media_type": "json", "file_path": name})
        moment = f"2026-01-01T00:00:0{number}"
        points.append(
            {"timestamp": moment, "agent_id": "agent", "point_type": kind, "data_reference": reference}
        )
    picture = json.dumps({"media_type": "image", "file_path": "numpy_data/x.npy", "shape": [4, 4, 3]})
    points.append(
        {"timestamp": "t", "agent_id": "agent", "point_type": "observation", "data_reference": picture}
    )
    agents = {"agent": {"agent_id": "agent", "agent_type": "agent"}, "user": {"agent_type": "human"}}
    about = {
        "instance_id": "7f3a",
        "agents": agents,
        "metadata": {"task": "Buy shoes.", "source_model": "m1"},
    }
    theirs = [points[1] | {"agent_id": "user", "data_reference": points[1]["data_reference"]}]
    user = "set/instances/7f3a/user"
    files |= {
        f"{RUN}/points.json": points,
        "set/instances/7f3a/metadata.json": about,
        f"{user}/points.json": theirs,
        f"{user}/json_data/7f3a_agent_1.json": {"content": "Hello."},
        "set/metadata.yaml": "name: set",
        "notes/annotations/7f3a_agent.json": {
            "instance_id": "7f3a",
            "agent_id": "agent",
            "annotations": SAID,
        },
    }
    return files | changed


def packed(files: dict[str, Any]) -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, json.dumps(content))
    stream.seek(0)
    return stream


def test_a_folder_is_read(project: Project) -> None:
    result = import_trajectories(project=project, stream=packed(folder()), by=None)
    assert (result.created, result.format) == (1, "autolibra"), "the user's side is told from the agent's"
    row = Trajectory.objects.get()
    assert (row.agent_name, row.external_id, row.task.instruction) == ("agent", "7f3a_agent", "Buy shoes.")
    assert row.metadata["source_model"] == "m1"
    told, looked, clicked = row.steps.all()
    assert told.source == "user" and told.message[0]["text"] == "The shop is open."
    assert (
        looked.message[0]["text"] == "I look for shoes."
        and "[1] shoes" in looked.observation[0]["content"][0]["text"]
    )
    assert clicked.tool_calls[0]["name"] == "click" and clicked.tool_calls[0]["arguments"]["element"] == 1
    assert clicked.observation[0]["content"][0]["text"] == "Bought."
    assert "numpy_data/x.npy" in clicked.observation[1]["content"][0]["text"]
    again = import_trajectories(project=project, stream=packed(folder()), by=None)
    assert (again.created, again.duplicates) == (0, 1)


def test_what_people_wrote_comes_with_it(project: Project) -> None:
    result = import_feedback(project=project, stream=packed(folder()), format="autolibra", by=None)
    assert (result.created, result.rejected) == (3, [])
    assert set(Annotator.objects.values_list("name", flat=True)) == {"zoe", "yan"}
    found = {object.text: (object.first_step, object.last_step) for object in Comment.objects.all()}
    assert found == {
        "It never asked for my size.": (2, 2),
        "Quick.": (None, None),
        "tone: curt": (None, None),
    }
    again = import_feedback(project=project, stream=packed(folder()), format="autolibra", by=None)
    assert (again.created, again.duplicates) == (0, 3)


def test_what_their_package_renders_is_read() -> None:
    points = [
        {"timestamp": "t", "agent_id": "a", "point_type": kind, "data": data, "metadata": {}}
        for kind, data in POINTS
    ]
    assert formats.detect(points).name == "autolibra"
    run = formats.FORMATS["autolibra"].read(points)
    assert (run.agent, len(run.steps), run.agent_steps) == ("a", 3, [1, 2])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({f"{RUN}/points.json": {"a": 1}}, "array"),
        ({f"{RUN}/points.json": [1]}, "object"),
        ({f"{RUN}/points.json": [{"point_type": "action", "data_reference": "{"}]}, "JSON"),
        (
            {
                f"{RUN}/points.json": [
                    {
                        "point_type": "action",
                        "data_reference": '{"media_type": "json", "file_path": "../../x"}',
                    }
                ]
            },
            "not in the archive",
        ),
        ({f"{RUN}/points.json": [{"point_type": "x", "data_reference": "{}"}]}, "neither"),
        ({f"{RUN}/points.json": []}, "no agent step"),
        ({"set/instances/7f3a/metadata.json": []}, "object"),
    ],
)
def test_a_broken_folder_is_refused(project: Project, changed: dict[str, Any], words: str) -> None:
    result = import_trajectories(project=project, stream=packed(folder(**changed)), by=None)
    assert result.created == 0 and words in result.rejected[0]["message"], result.rejected
    assert "points.json" in result.rejected[0]["pointer"]


def test_a_name_outside_of_the_archive_is_refused(project: Project) -> None:
    point = {"point_type": "action", "data_reference": '{"media_type": "json", "file_path": "../../../../x"}'}
    files = folder(**{f"{RUN}/points.json": [point], f"{RUN}/../../../../x": "secret"})
    result = import_trajectories(project=project, stream=packed(files), by=None)
    assert "outside of it" in result.rejected[0]["message"]


def test_a_span_that_is_none_is_refused(project: Project) -> None:
    for indices in ([-1], ["x"], "x", [True]):
        said = [{"content": {"feedback": "a"}, "span": {"point_indices": indices}}]
        files = folder(**{"notes/annotations/7f3a_agent.json": {"annotations": said}})
        result = import_feedback(project=project, stream=packed(files), format="autolibra", by=None)
        assert result.created == 0 and "point_indices" in result.rejected[0]["pointer"]
