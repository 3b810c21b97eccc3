"""`Client` against a running server: the calls of each kind of object."""

import json
from pathlib import Path
from typing import Any

import pytest
from touchstone_client import Client, JobFailed, Refused

from apps.trajectories.models import Trajectory
from tests.client_api.conftest import CHATS, comparison

pytestmark = pytest.mark.django_db(transaction=True)


def test_records_are_imported_in_batches_listed_and_read(client: Client) -> None:
    seen: list[tuple[int, int | None]] = []
    result = client.trajectories.import_file(
        (dict(chat) for chat in CHATS), batch=3, progress=lambda done, total: seen.append((done, total))
    )
    assert (result.created, result.duplicates, result.rejected) == (8, 0, ())
    assert seen == [(3, None), (6, None), (8, None)]
    assert client.trajectories.import_file(CHATS).duplicates == 8
    found = client.trajectories.list(page_size=3)
    assert len(found.to_list()) == len({entry.id for entry in found}) == 8
    first = found.take(1)[0]
    assert first.steps == 2 and first.outcome.success is None
    assert client.trajectories.get(first, format="openai")["messages"][0]["role"] == "user"
    assert client.trajectories.get(first.id)["schema_version"].startswith("ATIF")


def test_files_folders_and_streams_are_imported(client: Client, tmp_path: Path) -> None:
    (tmp_path / "runs" / "inner").mkdir(parents=True)
    for number, chat in enumerate(CHATS):
        folder = tmp_path / "runs" / ("inner" if number % 2 else "")
        (folder / f"{number}.json").write_text(json.dumps(chat))
    assert client.trajectories.import_file(tmp_path / "runs").created == 8
    lines = tmp_path / "runs.jsonl"
    lines.write_text("".join(json.dumps(chat) + "\n" for chat in CHATS[:5]))
    seen: list[tuple[int, int | None]] = []
    client.trajectories.import_file(lines, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (lines.stat().st_size,) * 2
    with lines.open("rb") as file:
        assert client.trajectories.import_file(file, format="openai").created >= 0
    assert Trajectory.objects.count() >= 8


def test_a_bad_record_is_refused_with_its_place(client: Client) -> None:
    bad: Any = [*CHATS[:4], {"nothing": 1}]
    with pytest.raises(Refused, match="Records 1 to 4 were imported before"):
        client.trajectories.import_file(bad, batch=2, format="openai")
    result = client.trajectories.import_file(bad, batch=2, format="openai", keep_good=True)
    assert result.duplicates == 4 and result.rejected[0].line == 5


def test_feedback_goes_in_and_comes_out(client: Client) -> None:
    records = [comparison(number, "A" if number < 3 else "B") for number in range(4)]
    assert client.feedback.add(records, batch=3).created == 4
    found = client.feedback.iter(campaign="A").to_list()
    assert {(entry.kind, entry.campaign, entry.annotator) for entry in found} == {("pairwise", "A", "ann")}
    assert len(found) == 3 and found[0]["choice"] in "ab" and found[0].task["id"].startswith("case-")
    assert client.feedback.add(found).duplicates == 3
    assert client.feedback.iter(kind="rubric").to_list() == []


def test_a_correction_that_calls_a_tool_goes_in_and_comes_out(client: Client) -> None:
    chat = {"messages": [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Hm."}]}
    call = {"text": "I look.", "tool_calls": [{"name": "find", "arguments": {"id": 7}}]}
    record = {"task": {"id": "t"}, "trajectory": chat, "labels": {"0": "bad"}, "annotator": "ann"}
    with pytest.raises(Refused, match="the trajectory has no tools, so that 'find' cannot be called"):
        client.feedback.add([record | {"corrections": {"0": call}}])
    called = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"id": 8}'}}
    chat["messages"].append({"role": "assistant", "content": "", "tool_calls": [called]})
    assert client.feedback.add([record | {"corrections": {"0": call, "1": "Bye."}}]).created == 1
    (found,) = client.feedback.iter(kind="step").to_list()
    assert found["corrections"] == {"0": call, "1": "Bye."}


def test_a_dataset_is_frozen_trained_and_deployed(client: Client, workers: None, tmp_path: Path) -> None:
    client.feedback.add([comparison(number) for number in range(4)])
    version = client.datasets.freeze("answers", kinds=["pairwise"], shares=(1.0, 0.0, 0.0))
    version = client.datasets.wait(version, timeout=30)
    assert (version.name, version.records) == ("desk/answers@1", {"pairwise": 4})
    assert [entry.name for entry in client.datasets.list()] == ["desk/answers@1"]
    rows = client.datasets.export(version, "trl")
    assert len(rows.to_list()) == rows.save(tmp_path / "rows.jsonl") == 4
    assert rows.download(tmp_path / "as-is.jsonl") == (tmp_path / "rows.jsonl").stat().st_size
    run = client.runs.wait(client.runs.start(version, recipe="bradley-terry", seed=3), timeout=30)
    assert (run.state, run.model, run.seed) == ("succeeded", "desk/answers@1", 3)
    assert client.models.get("answers").run == run.run == client.models.list().take(1)[0].run
    model = client.models.get("desk/answers@1")
    deployed = client.endpoints.deploy(model, "desk-answers")
    assert deployed.active == 1 and deployed.revision is not None
    again = client.endpoints.deploy(model, "desk-answers", stage="shadow")
    assert again.active == 1 and again.revision is not None and again.revision.number == 2
    assert client.endpoints.release("desk-answers").stage == "shadow"
    assert client.endpoints.roll_back_release("desk-answers").ended is not None
    assert client.endpoints.get("desk-answers").revisions[0].number == 2
    assert client.endpoints.usage("desk-answers").total["items"] == 0


def test_a_model_that_is_not_there_cannot_be_deployed(client: Client) -> None:
    with pytest.raises(Refused, match="404: There is no model desk/none") as caught:
        client.endpoints.deploy("none@3", "desk-answers")
    assert (caught.value.status, caught.value.pointer) == (404, "/model")
    assert client.endpoints.list().to_list() == []


def test_a_failed_job_is_an_error(client: Client, workers: None) -> None:
    with pytest.raises(JobFailed, match="dataset desk/none@1 failed: No feedback") as caught:
        client.datasets.wait(client.datasets.freeze("none"), timeout=30)
    assert caught.value.job.state == "failed"
