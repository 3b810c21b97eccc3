"""The commands as scripts call them; and every kind of bad record, by command, by POST and by upload."""

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client

from apps.accounts.models import Project, User
from apps.trajectories.models import Import, Task, Trajectory
from tests.trajectories.conftest import lines, record

ASKED = {"role": "user", "content": "Where is it?"}
ANSWERED = {"role": "assistant", "content": "On its way."}


def import_(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("import_trajectories", "desk", *arguments, "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def refused(*arguments: str) -> tuple[dict[str, Any], str]:
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("import_trajectories", "desk", *arguments, "--json", stdout=out, stderr=io.StringIO())
    return json.loads(out.getvalue()), str(caught.value)


def atif(number: int, *, second: int = 2) -> dict[str, Any]:
    """second: step_id of the second step."""
    steps = [
        {"step_id": 1, "source": "user", "message": f"What is {number}?"},
        {"step_id": second, "source": "agent", "message": "A number."},
    ]
    agent = {"name": "desk", "version": "1"}
    return {"schema_version": "ATIF-v1.6", "session_id": f"s{number}", "agent": agent, "steps": steps}


BAD = {
    "malformed": (b'{"messages": nope}', "", "not valid JSON"),
    "no agent step": (lines({"messages": [ASKED]}), "/messages", "no agent step"),
    "no number as reward": (lines(record(reward="high")), "/reward", "expected a number"),
    "duplicate step index": (lines(atif(0, second=1)), "/steps/1/step_id", "duplicate step index"),
    "call without a name": (
        lines({"messages": [ASKED, ANSWERED | {"tool_calls": [{"function": {"arguments": "{}"}}]}]}),
        "/messages/1/tool_calls/0/function/name",
        "name of its function",
    ),
    "over the limit": (
        lines(record(1, metadata={"long": "x" * 3000})),
        "",
        "TOUCHSTONE_MAX_RECORD_MB",
    ),
}
_BY_OTHER_WAYS = ("malformed", "call without a name")


@pytest.mark.parametrize(
    ("way", "line", "pointer", "said"),
    [  # one reader serves all three ways: each meets a record that is no JSON, and one that no format can be
        pytest.param(way, *BAD[name], id=f"{way}-{name}")
        for way, names in (("command", BAD), ("post", _BY_OTHER_WAYS), ("upload", _BY_OTHER_WAYS))
        for name in names
    ],
)
def test_one_bad_record_of_a_thousand(
    project: Project,
    client: Client,
    key: dict[str, str],
    researcher: User,
    settings: Any,
    tmp_path: Path,
    way: str,
    line: bytes,
    pointer: str,
    said: str,
) -> None:
    settings.MAX_RECORD_BYTES = 2000
    good = atif if b"ATIF" in line else record
    data = lines(*(good(number) for number in range(516))) + line.rstrip() + b"\n"
    data += lines(*(good(number) for number in range(517, 1000)))

    if way == "command":
        (tmp_path / "runs.jsonl").write_bytes(data)
        result, message = refused(str(tmp_path / "runs.jsonl"))
        assert "Nothing was imported" in message
        (only_rejection,) = result["rejected"]
    elif way == "post":
        url = "/api/v1/projects/desk/trajectories"
        answer = client.post(url, data, content_type="application/x-ndjson", headers=key)
        assert answer.status_code == 422
        (only_rejection,) = answer.json()["rejected"]
    else:
        file = SimpleUploadedFile("runs.jsonl", data)
        page = client.post("/p/desk/trajectories/upload/", {"file": file, "format": "auto"})
        assert said in page.content.decode()
        token = page.context["confirm"].initial["token"]
        client.post("/p/desk/trajectories/imports/", {"token": token})
        job = Import.objects.get()
        assert job.state == "failed"
        (only_rejection,) = job.rejected

    assert (only_rejection["line"], only_rejection["pointer"] or "") == (517, pointer)
    assert said in only_rejection["message"]
    assert not Trajectory.objects.exists()
    assert not Task.objects.exists()


def test_what_scripts_read(project: Project, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(record(1), record(2)))
    (tmp_path / "b.jsonl").write_bytes(lines(record(2), record(3)))
    names = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    none: dict[str, Any] = {"updated": 0, "rejected": [], "dropped": [], "kept": []}
    assert import_(*names) == {"created": 3, "duplicates": 1} | none
    assert import_(*names) == {"created": 0, "duplicates": 4} | none


def test_a_bad_file_among_several_imports_none_of_them(project: Project, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(record(1)))
    (tmp_path / "b.jsonl").write_bytes(lines(record(2), {"messages": []}))
    names = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    result, _ = refused(*names)
    assert (result["created"], result["duplicates"]) == (0, 0)
    assert [(rejection["file"], rejection["line"]) for rejection in result["rejected"]] == [(names[1], 2)]
    assert not Trajectory.objects.exists()
    kept = import_(*names, "--keep-good")
    assert (kept["created"], len(kept["rejected"])) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.jsonl"], "none.jsonl cannot be read: No such file"),
        (["-", "--format", "csv"], "There is no trajectory format 'csv'; choose from auto"),
        (["-", "--follow"], "--follow reads one file"),
    ],
)
def test_calls_that_cannot_be_meant(project: Project, arguments: list[str], said: str) -> None:
    result, message = refused(*arguments)
    assert said in message
    assert said in result["error"]["message"]


def test_a_project_that_does_not_exist(db: None) -> None:
    with pytest.raises(CommandError, match="no project nowhere"):
        call_command("import_trajectories", "nowhere", "-", stdout=io.StringIO(), stderr=io.StringIO())


# The descriptor is left to the end of the process: a thread may still wait in it after Ctrl-C.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_standard_input(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "piped").write_bytes(lines(record(1), record(2)))
    with (tmp_path / "piped").open() as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        assert import_("-")["created"] == 2


def test_following_a_file_that_grows(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole lines come in as they are written; half of one waits; a bad one is named and holds up nothing."""
    path = tmp_path / "growing.jsonl"
    third = lines(record(3))
    path.write_bytes(lines(record(1)))
    grows = iter([lines(record(2)) + third[:20], third[20:] + b"nope\n", lines(record(4))])
    counts: list[int] = []

    def wait(seconds: float) -> None:
        counts.append(Trajectory.objects.count())
        piece = next(grows, None)
        if piece is None:
            raise KeyboardInterrupt
        with path.open("ab") as file:
            file.write(piece)

    monkeypatch.setattr(time, "sleep", wait)
    found = import_(str(path), "--follow")
    assert counts == [1, 2, 3, 4]
    assert found["created"] == 4
    assert [rejection["line"] for rejection in found["rejected"]] == [4]


@pytest.mark.parametrize("format", ["openai", "atif", "original"])
def test_out_again(project: Project, tmp_path: Path, format: str) -> None:
    records = [record(1, success=True), record(2)]
    (tmp_path / "in.jsonl").write_bytes(lines(*records))
    import_(str(tmp_path / "in.jsonl"))
    out = io.StringIO()
    target = tmp_path / "out.jsonl"
    call_command(
        "export_trajectories", "desk", "--format", format, "--out", str(target), "--json", stdout=out
    )
    assert len(target.read_bytes().splitlines()) == 2
    other = Project.objects.create(slug="other", name="Other")
    call_command("import_trajectories", "other", str(target), stdout=io.StringIO(), stderr=io.StringIO())
    hashes = [
        sorted(Trajectory.objects.filter(project=each).values_list("content_hash", flat=True))
        for each in (project, other)
    ]
    assert hashes[0] == hashes[1]


def test_only_those_asked_for(project: Project, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(lines(record(1, success=True), record(2, success=False), record(3)))
    import_(str(tmp_path / "in.jsonl"))
    target = tmp_path / "out.jsonl"
    command = ["export_trajectories", "desk", "--format", "openai", "--out", str(target)]
    quiet = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    call_command(*command, "--success", "true", **quiet)
    (only_rejection,) = map(json.loads, target.read_text().splitlines())
    assert only_rejection["task"]["id"] == "task-1"
    call_command(*command, "--task", "task-3", **quiet)
    assert len(target.read_text().splitlines()) == 1
