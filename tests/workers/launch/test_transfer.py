from pathlib import Path

import pytest

from tests.workers.launch.memory_files import MemoryFiles
from workers.errors import RewardError
from workers.launch import streams, transfer
from workers.launch.streams import StreamReader, StreamWriter
from workers.launch.transfer import (
    FolderIndex,
    drop_file,
    folder_files,
    forget_older,
    newest_index,
    read_folder,
    write_folder,
)


def test_a_folder_comes_back_and_parts_are_stored_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PART_BYTES", 4)
    files, source, target = MemoryFiles(), tmp_path / "a", tmp_path / "b"
    (source / "checkpoints").mkdir(parents=True)
    (source / "checkpoints" / "step-1.pt").write_bytes(b"abcdabcdef")
    (source / "empty").write_bytes(b"")
    (source / "unfinished.part").write_bytes(b"no")
    (source / ".lock").write_bytes(b"no")
    (source / "data").mkdir()
    (source / "data" / "train").write_bytes(b"no")
    write_folder(files, "outputs", folder_files(source, without=["data"]), 1)
    assert len(files.names("outputs/parts")) == 2
    number, index = newest_index(files, "outputs") or (0, FolderIndex({}))
    read_folder(files, "outputs", index, target)
    assert number == 1
    assert {name: path.read_bytes() for name, path in folder_files(target).items()} == {
        "checkpoints/step-1.pt": b"abcdabcdef",
        "empty": b"",
    }
    damaged = next(name for name in files.content if "/parts/" in name)
    files.content[damaged] = b"xxxx"
    with pytest.raises(RewardError, match="damaged in the artifact store"):
        read_folder(files, "outputs", index, target)
    with pytest.raises(RewardError, match="leads out of its folder"):
        read_folder(files, "outputs", FolderIndex({"../x": ()}), target)


def test_old_indexes_and_their_parts_are_deleted(tmp_path: Path) -> None:
    files, known = MemoryFiles(), set[str]()
    for number in range(1, 5):
        (tmp_path / "checkpoint").write_text(f"step {number}")
        (tmp_path / "derived").write_text("of the records")
        write_folder(files, "outputs", folder_files(tmp_path), number, known=known)
        forget_older(files, "outputs", known=known)
    assert [name[:9] for name in files.names("outputs/index")] == ["000000003", "000000004"]
    assert len(files.names("outputs/parts")) == 3 == len(known)
    drop_file(files, "outputs", "derived")
    assert b"of the records" not in files.content.values()
    assert list((newest_index(files, "outputs") or (0, FolderIndex({})))[1].files) == ["checkpoint"]


def all_new(reader: StreamReader) -> bytes:
    return b"".join(reader.read())


def test_a_stream_is_followed_over_restarts_and_has_few_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_TOGETHER", 4)
    monkeypatch.setattr(streams, "_MOST_BYTES", 10)
    files, path = MemoryFiles(), tmp_path / "events.jsonl"
    writer = StreamWriter(files, "events", path, 1)
    newest, all_of_them = (StreamReader(files, "events", only_newest=each) for each in (True, False))
    late, read = StreamReader(files, "events", only_newest=True), b""
    for number in range(30):
        with path.open("a") as out:
            out.write(f"{number}\n")
        writer.send()
        read += all_new(newest)
    assert read == all_new(late) == path.read_bytes()
    assert len(files.content) < 15
    path.write_bytes(b"0\n1\n")
    StreamWriter(files, "events", path, 2).send()
    assert (all_new(newest), newest.generation) == (b"0\n1\n", 2)
    assert all_new(all_of_them) == read + b"0\n1\n"
    assert all_new(newest) == b""


def test_a_stream_whose_reading_failed_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_MOST_BYTES", 4)
    files, path = MemoryFiles(), tmp_path / "log.txt"
    path.write_bytes(b"abcdefghij")
    StreamWriter(files, "log", path, 1).send()
    reader, read = StreamReader(files, "log", only_newest=False), list[bytes]()
    files.away_after = 2
    with pytest.raises(RewardError, match="away"):
        read.extend(reader.read())
    files.away_after = None
    assert b"".join(reader.read()) == b"ij"
