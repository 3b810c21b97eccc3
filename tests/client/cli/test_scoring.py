"""`touchstone score`: batches, one revision, and errors that name the line of the file."""

import json
from pathlib import Path

import pytest

from tests.client.cli.conftest import Touchstone
from tests.client.conftest import Reply, Script, result_of


@pytest.fixture
def lines(server: Script, monkeypatch: pytest.MonkeyPatch, settings_folder: Path, tmp_path: Path) -> Path:
    monkeypatch.setenv("TOUCHSTONE_URL", server.url)
    monkeypatch.setenv("TOUCHSTONE_PROJECT", "desk")
    monkeypatch.setenv("TOUCHSTONE_API_KEY", "tsk_secret")
    file = tmp_path / "items.jsonl"
    file.write_text("".join(json.dumps({"text": "x" * number}) + "\n\n" for number in range(1, 6)))
    return file


def test_items_are_scored_in_batches_by_one_revision(
    server: Script, touchstone: Touchstone, lines: Path
) -> None:
    found = touchstone("score", "sample", lines, "--batch", "2", "--run", "grpo-1")
    results = [json.loads(line) for line in found.out.splitlines()]
    assert found.status == 0 and [result["reward"] for result in results] == [1.0, 2.0, 3.0, 4.0, 5.0]
    expected = result_of({"text": "x"})
    assert results[0] == expected  # as the API answers it
    bodies = [call["body"] for call in server.calls]
    assert [len(body["inputs"]) for body in bodies] == [2, 2, 1]
    assert [body.get("version") for body in bodies] == [None, 3, 3] and bodies[0]["run"] == "grpo-1"


def test_standard_input_and_a_file_for_the_results(
    touchstone: Touchstone, lines: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rewards.jsonl"
    found = touchstone("score", "sample", "-", "--out", out, "--json", stdin=lines.read_bytes())
    assert found.json == {"endpoint": "sample", "version": 3, "items": 5, "path": str(out)}
    assert len(out.read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "Line 2 is not JSON"),
        ("[1]", "Line 2 is not a JSON object"),
        ("[" * 100_000, "Line 2 is not JSON"),
    ],
)
def test_a_bad_line_is_named_and_leaves_no_file(
    touchstone: Touchstone, lines: Path, tmp_path: Path, line: str, words: str
) -> None:
    lines.write_text(f'{{"text": "a"}}\n{line}\n')
    found = touchstone("score", "sample", lines, "--out", tmp_path / "out.jsonl")
    assert found.status == 1 and words in found.err
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"items.jsonl"}


def test_what_the_server_refuses_is_named_by_its_line(
    server: Script, touchstone: Touchstone, lines: Path
) -> None:
    server.replies = [Reply(), Reply(422, {"detail": "No such role.", "pointer": "/inputs/1/messages/0"})]
    found = touchstone("score", "sample", lines, "--batch", "2", "--json", "--out", "-")
    assert found.status == 2
    found = touchstone("score", "sample", lines, "--batch", "2")
    assert found.status == 1 and "Error: Line 7: No such role. (at /messages/0)" in found.err
    assert len(found.out.splitlines()) == 2  # those of the batch before


def test_a_file_that_is_not_there(touchstone: Touchstone, lines: Path) -> None:
    found = touchstone("score", "sample", lines.with_name("none.jsonl"))
    assert found.status == 1 and found.err.endswith("none.jsonl: No such file or directory.\n")
