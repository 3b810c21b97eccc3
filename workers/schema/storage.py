"""Records on disk: zstd-compressed JSON lines. A trajectory is written once, before the first record that names it.

{"kind": "trajectory", "key": "<content hash>", ...}
{"kind": "pairwise", "a": "<key>", "b": "<key>", "choice": "a", ...}
"""

import io
import json
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import zstandard
from msgspec.structs import replace

from workers.errors import InvalidRecord
from workers.schema.decode import convert, parse_json, require_object
from workers.schema.records import (
    DERIVED_FROM,
    KIND_OF,
    RECORD_TYPES,
    FeedbackRecord,
    RankingRecord,
    Trajectory,
)
from workers.schema.speakers import with_speakers
from workers.schema.spooled_trajectories import SpooledTrajectories, decode_trajectory

TRAJECTORY_LINE = '{"kind": "trajectory",'  # how a line with one begins
_DERIVED = f'"{DERIVED_FROM}": "'
_SINGLE = ("a", "b", "trajectory")
SPLITS = ("train", "validation", "test")
COMPRESSION = 6  # level of zstd


def to_builtins(value: Any) -> Any:
    """A record as plain JSON values; keys of dictionaries become text."""
    return msgspec.to_builtins(value, str_keys=True)


def write_records(
    path: Path, records: Iterable[FeedbackRecord], *, level: int = COMPRESSION
) -> dict[str, int]:
    """Write records to `path`, in order; how many of each kind. level: of zstd."""
    with RecordWriter(path, level=level) as writer:
        for record in records:
            writer.write(record)
    return writer.counts


class RecordWriter:
    """Writes records to a file, one at a time, so that several files can be written in one pass. A context manager.

    counts: how many of each kind were written.
    """

    def __init__(self, path: Path, *, level: int = COMPRESSION) -> None:
        self.path, self.counts, self._level = path, dict[str, int](), level
        self._written: set[str] = set()
        self._open = ExitStack()

    def __enter__(self) -> "RecordWriter":
        with ExitStack() as stack:
            raw = stack.enter_context(self.path.open("wb"))
            self._out = stack.enter_context(zstandard.ZstdCompressor(level=self._level).stream_writer(raw))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def write(self, record: FeedbackRecord) -> None:
        kind = KIND_OF[type(record)]
        line: dict[str, Any] = {"kind": kind}
        for name in record.__struct_fields__:
            value = getattr(record, name)
            if isinstance(value, Trajectory):
                line[name] = _write_once(value, self._written, self._out)
            elif name == "trajectories":
                line[name] = [_write_once(trajectory, self._written, self._out) for trajectory in value]
            else:
                line[name] = to_builtins(value)
        self._out.write(encode_line(line))
        self.counts[kind] = self.counts.get(kind, 0) + 1


def write_trajectories(path: Path, trajectories: Iterable[Trajectory]) -> int:
    """Trajectories alone, each once; how many."""
    written: set[str] = set()
    with path.open("wb") as raw, zstandard.ZstdCompressor(level=COMPRESSION).stream_writer(raw) as out:
        for trajectory in trajectories:
            _write_once(trajectory, written, out)
    return len(written)


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """All that a file of trajectories, or of records, holds. Raises InvalidRecord naming the line."""
    with closing(read_lines(path)) as lines:
        for number, text in enumerate(lines, start=1):
            with _named(path, number):
                line = require_object(parse_json(text))
                if line.pop("kind", None) != "trajectory":
                    continue
                line.pop("key", None)
                found = with_speakers(convert(line, Trajectory))
            yield found


def holds_trajectory(path: Path, content_hash: str) -> bool:
    """Whether a file that `write_records` made has the trajectory, or one that was made from it (DERIVED_FROM), by
    looking at its lines."""
    return holds_any_trajectory(path, {content_hash})


def holds_any_trajectory(path: Path, content_hashes: Collection[str]) -> bool:
    """The same of one of many trajectories, in one pass."""
    beginnings = {_beginning(content_hash) for content_hash in content_hashes}
    with closing(read_lines(path)) as lines:
        return any(
            line[: line.find('"', _KEY_AT) + 1] in beginnings
            or any(content in content_hashes for content in _sources(line))
            for line in lines
            if line.startswith(TRAJECTORY_LINE)
        )


def _sources(line: str) -> Iterator[str]:
    """What stands behind the key DERIVED_FROM; in a text of a JSON line its quotes would be escaped."""
    at = line.find(_DERIVED)
    while at >= 0:
        start = at + len(_DERIVED)
        yield line[start : start + 64]
        at = line.find(_DERIVED, start)


def read_records(path: Path) -> Iterator[FeedbackRecord]:
    """Records of a file that `write_records` made. Raises InvalidRecord naming the line."""
    trajectories: dict[str, Trajectory] = {}
    with closing(read_lines(path)) as lines:
        for number, text in enumerate(lines, start=1):
            with _named(path, number):
                line = require_object(parse_json(text))
                kind = line.pop("kind", None)
                if kind == "trajectory":
                    trajectories[line.pop("key", "")] = with_speakers(convert(line, Trajectory))
                    continue
                record = _record(kind, line, trajectories)
            yield record


def stream_records(path: Path) -> Iterator[FeedbackRecord]:
    """As `read_records`, with the trajectories in a temporary file, in memory that hardly grows with their number."""
    with closing(read_lines(path)) as lines, closing(SpooledTrajectories()) as trajectories:
        for number, text in enumerate(lines, start=1):
            with _named(path, number):
                if text.startswith(TRAJECTORY_LINE):
                    key, trajectory = decode_trajectory(text)
                    trajectories.add(key, text, trajectory)
                    continue
                line = require_object(parse_json(text))
                record = _record(line.pop("kind", None), line, trajectories)
            yield record


def read_split(folder: Path, split: str) -> list[FeedbackRecord]:
    """The records of one of SPLITS, from the data/ of a run directory; none where the split has no file."""
    path = folder / "data" / f"{split}.jsonl.zst"
    return list(read_records(path)) if path.is_file() else []


def read_raw_records(path: Path, *, about: str | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Records as JSON objects with trajectories by content hash, each with its position among the records of a file of
    `write_records`. about: only records of this `item`; the others are not decoded."""
    wanted = None if about is None else f'"item": {json.dumps(about, ensure_ascii=False)}'
    with closing(read_lines(path)) as lines:
        records = (line for line in lines if not line.startswith(TRAJECTORY_LINE))
        for position, line in enumerate(records):
            if wanted is None or wanted in line:
                record = require_object(parse_json(line))
                if about is None or record.get("item") == about:
                    yield position, record


@contextmanager
def _named(path: Path, number: int) -> Iterator[None]:
    try:
        yield
    except InvalidRecord as error:
        message = f"{path.name}, line {number}: {error.message}"
        raise InvalidRecord(message, pointer=error.pointer) from None


def read_lines(path: Path) -> Generator[str, None, None]:
    """Lines of a file, zstd-compressed if its name ends with .zst."""
    with path.open("rb") as raw:
        stream = zstandard.ZstdDecompressor().stream_reader(raw) if path.suffix == ".zst" else raw
        with io.TextIOWrapper(stream, encoding="utf-8") as lines:
            yield from (line for line in lines if line.strip())


def _record(kind: Any, line: dict[str, Any], trajectories: Mapping[str, Trajectory]) -> FeedbackRecord:
    if kind not in RECORD_TYPES:
        raise InvalidRecord(f"unknown kind {kind!r}; known are {', '.join(RECORD_TYPES)}.", pointer="/kind")
    # The trajectories are values already; the rest is converted with a stand-in and they are put back.
    found = {name: _look_up(line[name], trajectories, name) for name in _SINGLE if name in line}
    several = tuple(_look_up(key, trajectories, "trajectories") for key in line.get("trajectories", []))
    stand_in: dict[str, Any] = dict.fromkeys(found, _STAND_IN) | ({"trajectories": []} if several else {})
    record = convert(line | stand_in, RECORD_TYPES[kind])
    if isinstance(record, RankingRecord):
        return replace(record, trajectories=several)
    return replace(record, **found)


_STAND_IN: dict[str, Any] = {"steps": [], "task": {"id": ""}}


def _look_up(key: Any, trajectories: Mapping[str, Trajectory], name: str) -> Trajectory:
    if key not in trajectories:
        raise InvalidRecord(
            f"names the trajectory {key!r}, which no line before it holds.", pointer=f"/{name}"
        )
    return trajectories[key]


def _write_once(trajectory: Trajectory, written: set[str], out: Any) -> str:
    key = trajectory.content_hash
    if key not in written:
        written.add(key)
        out.write(encode_line({"kind": "trajectory", "key": key} | to_builtins(trajectory)))
    return key


def _beginning(content_hash: str) -> str:
    return json.dumps({"kind": "trajectory", "key": content_hash})[:-1]


_KEY_AT = len(_beginning("")) - 1  # where the content hash begins in the line of a trajectory


def line_key(text: str) -> str:
    """The content hash in the line of a trajectory."""
    return text[_KEY_AT : text.index('"', _KEY_AT)]


def encode_line(line: dict[str, Any]) -> bytes:
    return (json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode()
