import bz2
import gzip
import io
import json
import lzma
import tracemalloc
from collections.abc import Callable

import pytest
import zstandard

from apps.trajectories.formats.record import Record
from apps.trajectories.formats.stream import read_records
from tests.trajectories.conftest import lines, record

LIMIT = 2**20


def read(data: bytes, limit: int = LIMIT) -> list[Record]:
    return list(read_records(io.BytesIO(data), limit=limit))


MANY = [record(number) for number in range(1000)]


@pytest.mark.parametrize(
    "data",
    [
        lines(*MANY),
        json.dumps(MANY).encode(),
        json.dumps(MANY, indent=2).encode(),
        b"\xef\xbb\xbf" + lines(*MANY).replace(b"\n", b"\r\n"),
        b"\n".join(json.dumps(value, indent=1).encode() for value in MANY),
        gzip.compress(lines(*MANY)),
        zstandard.compress(json.dumps(MANY).encode()),
    ],
    ids=["lines", "array", "indented", "crlf-bom", "documents", "gzip", "zstd"],
)
def test_every_shape_gives_the_same_records(data: bytes) -> None:
    found = read(data)
    assert [record.error for record in found if record.error] == []
    assert [record.document for record in found] == MANY


def test_raw_bytes_are_the_records_own() -> None:
    odd = b'{"prompt": "\\u00e9",  "response":"\xc3\xa9", "x": 1.10, "x": 12345678901234567890.5}'
    assert [record.raw for record in read(b"[ " + odd + b" ,\n" + odd + b"]")] == [odd, odd]
    assert [record.raw.strip() for record in read(odd + b"\n" + odd)] == [odd, odd]


def test_a_list_of_messages_is_one_record() -> None:
    messages = record()["messages"]
    assert [record.document for record in read(json.dumps(messages, indent=1).encode())] == [messages]
    assert [record.document for record in read(lines(messages, messages))] == [messages, messages]


def test_a_bad_line_is_named_and_the_others_are_read() -> None:
    broken = lines(*MANY).splitlines(keepends=True)
    broken[516] = b'{"id": nope}\n'
    found = read(b"".join(broken))
    assert [(record.line, str(record.error)) for record in found if record.error] == [
        (517, "not valid JSON: Expecting value at column 8.")
    ]
    assert len(found) == 1000


def test_a_bad_element_ends_the_array_with_its_line_and_pointer() -> None:
    broken = [json.dumps(value) for value in MANY]
    broken[516] = '{"id": nope}'
    last = read(("[" + ",\n".join(broken) + "]").encode())[-1]
    assert (last.line, last.pointer) == (517, "/516")
    assert "not valid JSON" in str(last.error)


@pytest.mark.parametrize("cut", [1, 100, 5000])
def test_a_cut_array_says_so(cut: int) -> None:
    assert "not valid JSON" in str(read(json.dumps(MANY).encode()[:-cut])[-1].error)


def test_a_record_over_the_limit_is_refused_and_the_next_is_read() -> None:
    data = lines(record(1), record(2, note="x" * 5000), record(3))
    found = read(data, limit=2000)
    assert [(record.line, record.error is None) for record in found] == [(1, True), (2, False), (3, True)]
    assert "TOUCHSTONE_MAX_RECORD_MB" in str(found[1].error)
    huge = b'[{"a": "' + b"x" * (4 * 2**20) + b'"}]'
    assert "TOUCHSTONE_MAX_RECORD_MB" in str(read(huge)[-1].error)


@pytest.mark.parametrize("data", [b"", b"\n \n", b"[]", b" [ ] "])
def test_nothing_gives_nothing(data: bytes) -> None:
    assert read(data) == []


def test_what_is_no_utf8_and_what_is_damaged_is_said() -> None:
    assert "UTF-8" in str(read(b'{"a": "\xff"}\n')[0].error)
    assert "UTF-8" in str(read(b'[{"a": "\xff"}]')[0].error)
    whole = gzip.compress(lines(*MANY))
    assert "damaged" in str(read(whole[: len(whole) // 2])[-1].error)


def test_hostile_depth_and_digits_are_errors_and_no_crash() -> None:
    assert "nested too deeply" in str(read(b'{"a": ' + b"[" * 100_000 + b"\n")[0].error)
    assert read(b"[" + b"[" * 100_000 + b"]")[0].error is not None
    assert "too large: a number of 5,000 digits" in str(read(b'{"a": ' + b"9" * 5000 + b"}")[0].error)


LARGER = [{**document, "text": "x" * 14_000} for document in MANY[:100]]


@pytest.mark.parametrize("data", [lines(*LARGER), json.dumps(LARGER).encode()], ids=["lines", "array"])
def test_memory_does_not_grow_with_the_file(data: bytes) -> None:
    class Endless(io.RawIOBase):
        """20 MB of records, made as they are read."""

        def __init__(self) -> None:
            self.left, self.rest = 15, b"" if data[:1] == b"{" else b"["

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            while len(self.rest) < size and self.left:
                self.left -= 1
                self.rest += data if data[:1] == b"{" else data[1:-1] + (b"," if self.left else b"]")
            piece, self.rest = self.rest[:size], self.rest[size:]
            return piece

    tracemalloc.start()
    count = sum(1 for record in read_records(Endless(), limit=LIMIT) if record.error is None)  # type: ignore[arg-type]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 15 * 100
    assert peak < 12 * 2**20


def test_arrays_one_after_another_are_all_read() -> None:
    found = list(read_records(io.BytesIO(b'[{"a": 1}, {"a": 2}]\n[]\n[{"a": 3}]'), limit=100))
    assert [(record.line, record.pointer, record.document) for record in found] == [
        (1, "/0", {"a": 1}),
        (1, "/1", {"a": 2}),
        (3, "/0", {"a": 3}),
    ]
    (_, wrong) = list(read_records(io.BytesIO(b'[{"a": 1}] and more'), limit=100))
    assert "expected [" in str(wrong.error)


@pytest.mark.parametrize("before", [b'{"steps": ', b"[", b'[{"a": "' + b"x" * 3_000_000 + b'"}, '])
def test_a_record_that_would_become_gigabytes_is_refused_before_it_is_built(before: bytes) -> None:
    """A line, an element of an array, and one that follows a long one."""
    bomb = before + b"[" + b"[]," * 1_200_000 + b"[]]"
    found = [record.error for record in read_records(io.BytesIO(bomb), limit=64 * 2**20) if record.error]
    assert "over 1,000,000 arrays and objects" in str(found[0])


@pytest.mark.parametrize(
    "data",
    [
        bz2.compress(lines(*MANY)),
        bz2.compress(lines(*MANY[:500])) + bz2.compress(lines(*MANY[500:])),
        lzma.compress(json.dumps(MANY).encode()),
        lzma.compress(lines(*MANY[:3])) + b"\0" * 8 + lzma.compress(lines(*MANY[3:])),
        lines(*MANY).decode().encode("utf-16"),
        json.dumps(MANY, ensure_ascii=False).encode("utf-16-le"),
        lines(*MANY).decode().encode("utf-32"),
        zstandard.compress(lines(*MANY).decode().encode("utf-16")),
        lines(*MANY).replace(b"\n", b"\r"),
        b"".join(json.dumps(value).encode() for value in MANY),
    ],
    ids=[
        *("bzip2", "bzip2 twice", "xz", "xz twice", "utf-16", "utf-16-le without a mark", "utf-32"),
        *("utf-16 in zstd", "cr", "one line"),
    ],
)
def test_what_other_programs_pack_and_encode_is_read(data: bytes) -> None:
    found = read(data)
    assert [str(record.error) for record in found if record.error] == []
    assert [record.document for record in found] == MANY


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_a_damaged_file_is_said_to_be_damaged(pack: Callable[[bytes], bytes]) -> None:
    packed = pack(json.dumps([record(number) for number in range(3000)]).encode())
    for broken in (packed[:-20], packed[: len(packed) // 2] + b"x" * 50 + packed[len(packed) // 2 :]):
        assert "the compressed file is damaged" in str(read(broken)[-1].error)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b"\x89HDF\r\n", "HDF5"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
    ],
)
def test_files_that_hold_no_json_are_named(head: bytes, says: str) -> None:
    (found,) = read(head + b"\0" * 300)
    assert says in str(found.error) and "not read" in str(found.error)


def test_damaged_utf_16_is_refused_with_its_place() -> None:
    """It was rewritten: what the decoder did not know became U+FFFD."""
    raw = lines({"text": "good"}, {"text": "bad x"}).decode().encode("utf-16")
    at = raw.index("x".encode("utf-16-le"))
    for data, place in ((raw[:at] + b"\x00\xd8" + raw[at + 2 :], at), (raw[:-1], len(raw) - 2)):
        found = list(read_records(io.BytesIO(data), limit=2**20))
        assert found[-1].error is not None
        assert f"not UTF-16 at byte {place:,} of the file" in found[-1].error.message
