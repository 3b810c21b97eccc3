"""Moves records of a file to other files without decoding their trajectories."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from workers.schema.storage import COMPRESSION, TRAJECTORY_LINE, encode_line, line_key, read_lines


@dataclass(frozen=True, slots=True)
class RecordLine:
    """record: the JSON object, whose trajectories are content hashes. keys: these, in its order.

    texts: lines of all trajectories that no file has yet, by content hash; shared by the lines of a file.
    """

    record: dict[str, Any]
    keys: tuple[str, ...]
    texts: dict[str, str]


def read_record_lines(path: Path) -> Iterator[RecordLine]:
    """Records of a file that `write_records` made, in order. Each has to be written, or left out, before the next."""
    texts: dict[str, str] = {}
    with closing(read_lines(path)) as lines:
        for text in lines:
            if text.startswith(TRAJECTORY_LINE):
                texts[line_key(text)] = text
                continue
            record = json.loads(text)
            keys = (record[name] for name in ("a", "b", "trajectory") if name in record)
            yield RecordLine(record, (*keys, *record.get("trajectories", ())), texts)


class RecordLineWriter:
    """Writes what RecordWriter writes for the same records. A context manager.

    A trajectory goes to one file only: to that of the first record with it that is written.
    counts: how many of each kind were written. keys: of the trajectories, in order.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.counts, self.keys = path, Counter[str](), dict[str, None]()
        self._open = ExitStack()

    def __enter__(self) -> "RecordLineWriter":
        with ExitStack() as stack:
            raw = stack.enter_context(self.path.open("wb"))
            compressor = zstandard.ZstdCompressor(level=COMPRESSION)
            self._out = stack.enter_context(compressor.stream_writer(raw))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def write(self, line: RecordLine) -> None:
        for key in line.keys:
            text = line.texts.pop(key, None)
            if text is not None:
                self._out.write(text.encode())
                self.keys[key] = None
        self._out.write(encode_line(line.record))
        self.counts[line.record["kind"]] += 1
