"""Parquet, Arrow, CSV, tar archives and folders."""

import csv
import datetime
import decimal
import gzip
import io
import json
import tarfile

import pytest

from apps.core.storage.unpacking import InputBounds, TooMuch
from apps.trajectories.formats.stream import read_records

pytestmark = pytest.mark.unit
arrow = pytest.importorskip("pyarrow")
LIMIT = 2**20
ROWS = [
    {"prompt": f"question {n}", "response": "answer " * n, "reward": n / 4, "picture": None}
    for n in range(200)
]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def found(source, limit=LIMIT, bounds=None):
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    return list(read_records(stream, limit=limit, bounds=bounds))


def parquet(rows, **options):
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(rows), out, **options)
    return out.getvalue()


def arrow_file(rows, make):
    out = io.BytesIO()
    table = arrow.Table.from_pylist(rows)
    with make(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    return out.getvalue()


def tar(files, mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            if content is None:
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            else:
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content or b""))
    return out.getvalue()


@pytest.mark.parametrize(
    "raw",
    [
        parquet(ROWS),
        parquet(ROWS, row_group_size=30, compression="zstd"),
        arrow_file(ROWS, arrow.ipc.new_file),
        arrow_file(ROWS, arrow.ipc.new_stream),
        gzip.compress(parquet(ROWS)),
        tar({"data/train.parquet": parquet(ROWS)}),
    ],
    ids=["parquet", "row groups", "arrow file", "arrow stream", "gzip", "tar"],
)
def test_rows_of_tables_are_records_without_the_columns_that_have_no_value(raw):
    records = found(raw)
    assert [record.error for record in records] == [None] * 200
    wanted = [{key: value for key, value in row.items() if value is not None} for row in ROWS]
    assert [record.document for record in records] == wanted
    assert json.loads(records[7].raw) == wanted[7]


def test_what_json_has_no_form_for_is_written_as_readers_expect_it():
    row = {
        "image": {"bytes": PNG, "path": "a.png"},
        "bytes": b"\x00\x01",
        "at": datetime.datetime(2026, 11, 26, 19, 0, tzinfo=datetime.UTC),
        "took": datetime.timedelta(seconds=90),
        "price": decimal.Decimal("1.50"),
        "messages": [{"role": "user", "content": "Hi", "name": None}, {"role": "assistant", "content": "Yo"}],
    }
    [record] = found(parquet([row]))
    read = record.document
    assert read["image"].startswith("data:image/png;base64,") and read["bytes"] == "AAE="
    assert (read["at"], read["took"], read["price"]) == ("2026-11-26T19:00:00+00:00", 90.0, 1.5)
    assert read["messages"][0] == {"role": "user", "content": "Hi"}


def test_a_damaged_table_says_where_and_keeps_the_rows_before():
    raw = bytearray(arrow_file(ROWS, arrow.ipc.new_stream))
    records = found(bytes(raw[: len(raw) * 2 // 3]))
    assert records[0].document["prompt"] == "question 0"
    assert "Arrow file is damaged here" in records[-1].error.message
    assert records[-1].line == len(records)
    [broken] = found(parquet(ROWS)[:-30] + bytes(30))
    assert "Parquet file is damaged here" in broken.error.message


def test_a_row_over_the_limit_is_refused_and_the_others_are_read():
    first, second = found(parquet([{"prompt": "x" * 3000}, {"prompt": "y"}]), limit=1000)
    assert "record has more than" in first.error.message and second.document == {"prompt": "y"}


def test_a_table_that_becomes_too_much_is_refused():
    rows = [{"prompt": "x" * 100_000}] * 200
    with pytest.raises(TooMuch):
        found(parquet(rows, compression="zstd"), bounds=InputBounds(most_bytes=2**20))


def test_without_pyarrow_it_says_what_to_install(monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *rest, **named):
        if name == "pyarrow":
            raise ImportError
        return real(name, *rest, **named)

    raw = parquet(ROWS)
    monkeypatch.setattr(builtins, "__import__", without)
    [record] = found(raw)
    assert "pip install pyarrow" in record.error.message


class TestCsv:
    def test_cells_are_text_but_outcomes_and_nested_values(self):
        messages = [
            {"role": "user", "content": 'He said "hi",\nthen left'},
            {"role": "assistant", "content": "1"},
        ]
        out = io.StringIO()
        table = csv.writer(out)
        table.writerow(["id", "messages", "reward", "success", "note"])
        table.writerow(["7", json.dumps(messages), "0.5", "True", ""])
        table.writerow(["8", repr(messages), "-1", "false", "[sic"])
        first, second = found(out.getvalue().encode())
        assert first.document == {"id": "7", "messages": messages, "reward": 0.5, "success": True}
        assert second.document["messages"] == messages
        assert (second.document["success"], second.document["note"], second.line) == (False, "[sic", 3)

    def test_tabs_and_semicolons_delimit_too(self):
        assert found("﻿prompt\tresponse\nA, b\tc\n".encode())[0].document == {
            "prompt": "A, b",
            "response": "c",
        }
        assert found(b"prompt;response\n1;2\n")[0].document == {"prompt": "1", "response": "2"}

    @pytest.mark.parametrize(
        "raw, words, line",
        [
            (b"a,b\n1,2,3\n", "the row has 3 cells, the header 2", 2),
            (b'a,b\n1,2\n3,"4', "not valid CSV", 3),
            (b"a,b\n1,\xff\n", "not UTF-8", 2),
            (b"a,b\n1," + b"x" * 4000, "a line has more than", 2),
        ],
    )
    def test_bad_rows_are_told_with_their_line(self, raw, words, line):
        record = found(raw, limit=1000)[-1]
        assert words in record.error.message and record.line == line

    def test_json_lines_of_text_are_not_csv(self):
        assert found(b'{"prompt": "a, b", "response": "c"}\n')[0].document["prompt"] == "a, b"


class TestTarsAndFolders:
    FILES = {
        "runs/b.jsonl": b'{"prompt": "1", "response": "2"}\n{"prompt": "3", "response": "4"}\n',
        "runs/a.json.gz": gzip.compress(b'{"prompt": "5", "response": "6"}'),
        "notes.md": b"# Notes",
    }

    @pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
    def test_a_tar_archive_is_read_file_by_file(self, mode):
        records = found(tar(self.FILES | {"link": None}, mode))
        assert [record.document["prompt"] for record in records if record.document] == ["1", "3", "5"]
        assert {record.pointer: record.skipped for record in records if record.skipped} == {
            "/notes.md": next(record.skipped for record in records if record.pointer == "/notes.md"),
            "/link": "a link or a device, which is not followed",
        }

    def test_a_folder_is_read_in_the_order_of_its_names_and_links_are_not_followed(self, tmp_path):
        for name, content in self.FILES.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(content)
        (tmp_path / "runs/z.json").symlink_to(tmp_path / "notes.md")
        records = found(tmp_path)
        assert [record.document["prompt"] for record in records if record.document] == ["5", "1", "3"]
        assert [record.pointer for record in records if record.skipped] == ["/notes.md", "/runs~1z.json"]
        assert {record.source for record in records if record.document} == {"runs/b.jsonl", "runs/a.json.gz"}

    def test_names_outside_and_archives_within_are_refused(self):
        records = found(tar({"../up.json": b"{}", "in.json": tar({"x.json": b"{}"})}))
        assert "outside of it" in records[0].error.message
        assert "an archive in an archive" in records[1].error.message

    def test_a_long_file_of_an_archive_is_read_record_by_record(self):
        line = json.dumps({"prompt": "x" * 500, "response": "y"}).encode() + b"\n"
        records = found(tar({"long.jsonl": line * 100}), limit=1000)  # fifty times the limit of a record
        assert len(records) == 100 and not any(record.error for record in records)

    def test_a_tar_cut_short_is_told(self):
        whole = tar({"a.json": b'{"prompt": "1", "response": "2"}', "b.json": b"1" * 3000})
        assert any(record.error for record in found(whole[:2600]))
