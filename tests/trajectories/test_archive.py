"""Zip archives: Inspect's `.eval`, files put together, and what is refused of them."""

import gzip
import io
import json
import pickle
import struct
import zipfile
import zlib
from typing import Any

import pytest
import zstandard

from apps.core.errors import DomainError
from apps.trajectories.formats.record import Record
from apps.trajectories.formats.stream import read_records
from apps.trajectories.import_reader import ImportReader
from tests.trajectories.benchmarks.run_documents import INSPECT, SAMPLE
from tests.trajectories.conftest import record

LIMIT = 2**20


def zipped(entries: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


def zstd_zipped(entries: dict[str, bytes]) -> bytes:
    """As Inspect packs: compression method 93, which Python's own module does not write before 3.14."""
    out, directory = bytearray(), bytearray()
    for name, content in entries.items():
        packed = zstandard.ZstdCompressor().compress(content)
        sizes = struct.pack("<III", zlib.crc32(content), len(packed), len(content))
        lengths = struct.pack("<HH", len(name), 0)
        directory += b"PK\x01\x02" + struct.pack("<HHHHHH", 63, 63, 0, 93, 0, 0) + sizes + lengths
        directory += struct.pack("<HHHII", 0, 0, 0, 0, len(out)) + name.encode()
        out += (
            b"PK\x03\x04" + struct.pack("<HHHHH", 63, 0, 93, 0, 0) + sizes + lengths + name.encode() + packed
        )
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(out), 0)
    return bytes(out + directory + b"PK\x05\x06" + end)


def found(data: bytes, limit: int = LIMIT) -> list[Record]:
    return [record for record in read_records(io.BytesIO(data), limit=limit) if not record.skipped]


def dumped(document: Any) -> bytes:
    return json.dumps(document).encode()


LOG = {
    "header.json": dumped({key: value for key, value in INSPECT.items() if key != "samples"}),
    "samples/3_epoch_1.json": dumped(SAMPLE),
    "samples/4_epoch_1.json": dumped(SAMPLE | {"id": 4}),
    "summaries.json": b"[]",
}


@pytest.mark.parametrize("pack", [zipped, zstd_zipped, lambda entries: zipped(entries, zipfile.ZIP_STORED)])
def test_an_eval_log_is_its_samples(pack: Any) -> None:
    reader = ImportReader(None)
    tasks = []
    for log in found(pack(LOG)):
        for part in reader.parts(log):
            reader.prepare(part)
            tasks.append(reader.read(part).task.id)
    assert tasks == ["pets/3", "pets/4"]
    assert reader.format is not None and reader.format.name == "inspect"


def test_half_a_character_in_a_sample_is_replaced() -> None:
    odd = SAMPLE | {"input": "a \ud800 b"}
    (only_record,) = found(zipped(LOG | {"samples/3_epoch_1.json": dumped(odd)}))[:1]
    reader = ImportReader(None)
    reader.prepare(only_record)
    assert reader.read(only_record).task.instruction == "a \ufffd b"


def test_a_log_of_a_run_that_was_killed_has_its_journal() -> None:
    killed = {
        ("_journal/start.json" if name == "header.json" else name): value for name, value in LOG.items()
    }
    assert [record.document["eval"]["task"] for record in found(zipped(killed))] == ["pets", "pets"]
    nothing = found(zipped({"header.json": LOG["header.json"]}))
    assert "no samples" in str(nothing[0].error)


def test_files_put_together_are_read_one_by_one() -> None:
    lines = b"\n".join(dumped(record(number)) for number in range(3))
    records = found(zipped({"a/one.json": dumped(record(7)), "b/many.jsonl": lines, "note.txt": b"Hello."}))
    assert [(record.line, record.pointer, record.error) for record in records] == [
        (1, "/a~1one.json", None),
        *[(2, "/b~1many.jsonl", None)] * 3,
    ]
    assert records[0].document == record(7) and json.loads(records[0].raw) == record(7)


def test_one_bad_file_is_named_and_the_others_are_read() -> None:
    records = found(zipped({"bad.json": b'{"a": ', "good.json": dumped(record())}))
    assert records[0].pointer == "/bad.json" and "not valid JSON" in str(records[0].error)
    assert records[1].document == record()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("../../etc/cron.json", b"{}", "outside of it"),
        ("/etc/cron.json", b"{}", "outside of it"),
        ("..\\x.json", b"{}", "outside of it"),
        ("C:\\x.json", b"{}", "outside of it"),
        ("tape.pkl", b"anything", "never loaded"),
        ("bomb.json", b" " * (LIMIT + 1), "more than 1 MB"),
    ],
)
def test_what_is_refused_says_why(name: str, content: bytes, said: str) -> None:
    (only_record,) = found(zipped({name: content}))
    assert said in str(only_record.error) and only_record.pointer.startswith("/")


def test_a_bomb_of_zstd_is_not_unpacked() -> None:
    (only_record,) = found(zstd_zipped({"bomb.json": b" " * (50 * LIMIT)}))
    assert "more than 1 MB" in str(only_record.error)


def test_many_entries_that_unpack_to_too_much_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.core.storage.unpacking.ALWAYS", 3 * LIMIT)
    with pytest.raises(DomainError, match="more than 300 times its size"):
        found(zipped({f"{number}.json": b" " * LIMIT for number in range(9)}))


def test_a_lying_or_broken_archive_is_said_to_be_so() -> None:
    whole = zipped({"a.json": dumped(record())})
    assert "damaged" in str(found(whole[: len(whole) // 2])[0].error)
    assert "damaged" in str(found(b"PK\x03\x04" + b"\x00" * 100)[0].error)
    lying = bytearray(zstd_zipped({"a.json": dumped(record())}))
    lying[40:44] = b"\xff\xff\xff\xff"
    assert found(bytes(lying))[0].error is not None
    assert "no file of" in str(found(zipped({"note.txt": b""}))[0].error)


def test_an_archive_in_an_archive_is_not_unpacked() -> None:
    records = found(zipped({"inner.json": zipped({"a.json": dumped(record())})}))
    assert records and all(record.error is not None and record.document is None for record in records)


def test_a_compressed_file_in_an_archive_is_read_within_the_same_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (only_record,) = found(zipped({"inner.json.gz": gzip.compress(dumped(record()))}))
    assert only_record.document == record()
    monkeypatch.setattr("apps.core.storage.unpacking.ALWAYS", LIMIT)
    with pytest.raises(DomainError, match="more than 300 times its size"):
        found(zipped({"inner.jsonl.gz": gzip.compress(b"{}\n" * 20 * LIMIT)}))


def test_an_encrypted_entry_is_refused() -> None:
    data = bytearray(zipped({"a.json": b"{}"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    assert "encrypted" in str(found(bytes(data))[0].error)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_refused_by_what_it_is(protocol: int) -> None:
    (only_record,) = found(pickle.dumps(record(), protocol))
    assert "is a pickle" in str(only_record.error)


def test_what_of_an_eval_log_belongs_to_no_sample_is_named() -> None:
    log = LOG | {
        "header.json": dumped({**INSPECT, "samples": None, "plan": {"steps": [1]}}),
        "reductions.json": b"[]",
    }
    skipped = {
        record.pointer for record in read_records(io.BytesIO(zipped(log)), limit=LIMIT) if record.skipped
    }
    assert {"/summaries.json", "/reductions.json", "/header.json/plan", "/header.json/status"} <= skipped


def test_a_picture_that_no_document_names_is_told() -> None:
    data = zipped(
        {"a.json": json.dumps({"screenshot": "b.png"}).encode(), "b.png": b"x", "c.png": b"y", "d.jpg": b"z"}
    )
    skipped = {record.pointer for record in read_records(io.BytesIO(data), limit=LIMIT) if record.skipped}
    assert skipped == {"/c.png", "/d.jpg"}
