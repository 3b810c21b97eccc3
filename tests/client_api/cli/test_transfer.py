"""import and export against a running server."""

import json
from pathlib import Path

import pytest
from touchstone_client import Client

from apps.trajectories.models import Trajectory
from tests.client.cli.conftest import Touchstone
from tests.client_api.conftest import CHATS, comparison

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("signed_in")]


def test_files_folders_and_standard_input(touchstone: Touchstone, chats: Path, tmp_path: Path) -> None:
    found = touchstone("import", chats)
    assert (found.status, found.out) == (0, f"{chats}: 8 created, 0 already there (0 updated), 0 rejected\n")
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "more.json").write_text(json.dumps({**CHATS[0], "task": "another"}))
    total = touchstone("import", chats, folder, "-", "--json", stdin=chats.read_bytes()).json
    assert (total["created"], total["duplicates"], total["rejected"]) == (1, 16, [])
    assert [each["file"] for each in total["files"]] == [str(chats), str(folder), "-"]
    assert Trajectory.objects.count() == 9


def test_rejected_records_are_shown_with_line_and_reason(
    touchstone: Touchstone, chats: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(f'{json.dumps(CHATS[0])}\n{{"messages": 3}}\n')
    found = touchstone("import", bad, "--format", "openai")
    assert found.status == 1 and "0 created" in found.out and "  line 2 at /messages: " in found.out
    assert found.err == "Error: Nothing was imported. Fix the rejected records, or use --keep-good.\n"
    assert not Trajectory.objects.exists()
    both = touchstone("import", bad, chats, "--format", "openai", "--json")
    assert both.status == both.json["error"]["status"] == 1
    assert both.json["created"] == 8 and both.json["rejected"][0]["file"] == str(bad)
    assert "of 1 of 2 files" in both.err and Trajectory.objects.count() == 8
    kept = touchstone("import", bad, "--format", "openai", "--keep-good", "--json")
    assert kept.status == 0 and kept.json["duplicates"] == 1 and kept.json["rejected"][0]["line"] == 2


def test_a_mapping_reads_any_table(touchstone: Touchstone, tmp_path: Path) -> None:
    rows, mapping = tmp_path / "rows.jsonl", tmp_path / "mapping.toml"
    rows.write_text(
        "".join(json.dumps({"n": n, "turns": chat["messages"]}) + "\n" for n, chat in enumerate(CHATS))
    )
    mapping.write_text('[fields]\nmessages = "$.turns"\ntask = "$.n"\n')
    assert touchstone("import", rows, "--map", mapping, "--json").json["created"] == 8
    mapping.write_text('[fields]\nmessages = "turns"\n')
    assert "/fields/messages" in touchstone("import", rows, "--map", mapping).err
    mapping.write_text("fields = ")
    assert "is not valid TOML" in touchstone("import", rows, "--map", mapping).err
    mapping.write_text("[other]")
    assert touchstone("import", rows, "--map", mapping).status == 2
    assert touchstone("import", rows, "--map", mapping, "--format", "openai").status == 2


def test_what_cannot_be_read(touchstone: Touchstone, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = touchstone("import", tmp_path / "empty")
    assert found.status == 1 and "has no files" in found.err and found.err.count("\n") == 1
    none = touchstone("import", tmp_path / "none.jsonl")
    assert none.status == 1 and "none.jsonl: No such file or directory." in none.err
    (tmp_path / "odd.bin").write_bytes(b"\x00\x01" * 20)
    odd = touchstone("import", tmp_path / "odd.bin", "--json")
    assert odd.status == 1 and odd.err.count("Error:") == 1


def test_trajectories_are_exported_and_imported_again(
    touchstone: Touchstone, chats: Path, tmp_path: Path
) -> None:
    touchstone("import", chats)
    found = touchstone("export", "trajectories", "--task", "case-1")
    documents = [json.loads(line) for line in found.out.splitlines()]
    assert found.status == 0 and len(documents) == 2 and documents[0]["schema_version"].startswith("ATIF")
    out = tmp_path / "out.jsonl"
    written = touchstone("export", "trajectories", "--format", "openai", "--limit", 3, "--out", out, "--json")
    assert written.json == {"path": str(out), "records": 3}
    assert all("messages" in json.loads(line) for line in out.read_text().splitlines())
    assert touchstone("export", "trajectories", "--format", "nonsense", "--out", out).status == 1
    assert len(out.read_text().splitlines()) == 3  # kept


def test_feedback_is_exported_as_the_server_writes_it(client: Client, touchstone: Touchstone) -> None:
    client.feedback.add([comparison(number, "A" if number < 3 else "B") for number in range(4)])
    found = touchstone("export", "feedback", "--campaign", "A")
    records = [json.loads(line) for line in found.out.splitlines()]
    assert len(records) == 3 and {record["campaign"] for record in records} == {"A"}
    assert client.feedback.add(records).duplicates == 3
    assert "3 records." in found.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("dataset",),
        ("feedback", "name"),
        ("trajectories", "--campaign", "A"),
        ("feedback", "--split", "test"),
        ("trajectories", "--limit", "-1"),
        ("everything",),
    ],
)
def test_options_that_do_not_belong_together(touchstone: Touchstone, arguments: tuple[str, ...]) -> None:
    found = touchstone("export", *arguments)
    assert found.status == 2 and found.out == "" and found.err
    assert touchstone("export", "feedback", "--json").status == 2  # the records are JSON lines already
