"""Archives and folders: an Inspect `.eval` log, AutoLibra's folder, or files put together.

No more than a record's limit is unpacked of one document, and all together is held to the bounds of the input
(`unpacking`). Pictures that a document names (`screenshot_path`, `image_path`) are put into what is read of it.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from apps.core.storage.unpacking import MOST_ENTRIES, InputBounds
from apps.trajectories.formats.entries import (
    DAMAGED,
    Entries,
    FolderEntries,
    TarEntries,
    ZipEntries,
    open_bounded,
    temporary_copy,
)
from apps.trajectories.formats.pictures import MEDIA_SUFFIXES, Pictures
from apps.trajectories.formats.record import Record, encoded, too_large
from apps.trajectories.formats.text_kinds import text_kind
from workers.errors import InvalidRecord
from workers.schema import parse_json
from workers.schema.decode import escape, require_list, require_object

ZIP_MAGIC, TAR_MAGIC = b"PK\x03\x04", b"ustar"
TAR_MAGIC_AT = 257
_HEADERS = ("header.json", "_journal/start.json")  # the second is what a run that was killed has
_PLAIN = (".json", ".jsonl", ".ndjson", ".traj", ".parquet", ".arrow", ".feather", ".csv", ".tsv", ".af")
_TEXT = (
    ".md",
    ".txt",
    ".html",
    ".htm",
    ".history",
    ".sse",
    ".log",
)  # read where they are of a kind that is known
_READ = tuple(kind + packed for kind in _PLAIN for packed in ("", ".gz", ".zst", ".bz2", ".xz"))
_TEXT_LOOKED = 2**18  # bytes
_UNKNOWN_TEXT = "a text that is no session of a kind that is read"
_OF_SYSTEM = (
    "__macosx",
    ".ds_store",
    "thumbs.db",
    "desktop.ini",
)  # written next to the files by file managers
_PEOPLE = ("human", "user")
SCORE = "osworld_result"  # what the text of `result.txt` becomes
_PICKLES = tuple(
    kind + packed for kind in (".pkl", ".pickle", ".pt", ".pth", ".joblib") for packed in ("", ".gz")
)
PICKLED = "is a pickle, which can run code when it is read, and is never loaded; send JSON."
Cut = Callable[[BinaryIO], Iterator[Record]]


def is_archive(head: bytes) -> bool:
    """head: the first bytes of a file, at least 262 of them if it has so many."""
    return head.startswith(ZIP_MAGIC) or head[TAR_MAGIC_AT:].startswith(TAR_MAGIC)


def read_archive(
    stream: BinaryIO, limit: int, bounds: InputBounds, cut: Cut, original: BinaryIO | None = None
) -> Iterator[Record]:
    """limit: bytes a document may have. bounds: of all of it. cut: reads an entry, which is no archive
    again: one that holds itself never ends. original: the file itself, where it can be read from any place. The pointer
    of a record begins with the entry's name."""
    with temporary_copy(stream, bounds) if original is None else nullcontext(original) as kept:
        is_zip = kept.read(len(ZIP_MAGIC)) == ZIP_MAGIC
        kept.seek(0)
        try:
            entries: Entries = ZipEntries(kept) if is_zip else TarEntries(kept)
            yield from _Archive(entries, limit, bounds).records(cut)
        except DAMAGED as error:
            yield Record(1, error=InvalidRecord(f"the archive is damaged: {error}."))


def read_folder(folder: Path, limit: int, bounds: InputBounds, cut: Cut) -> Iterator[Record]:
    """As `read_archive`, of a folder of this machine."""
    yield from _Archive(FolderEntries(folder), limit, bounds).records(cut)


def _parse_points_path(name: str) -> tuple[str, str, str] | None:
    """What stands before `instances/INSTANCE/AGENT/points.json` of AutoLibra, INSTANCE and AGENT; None of others."""
    folder, instance, agent, last = ["", "", "", "", *name.split("/")][-4:]
    if folder != "instances" or last != "points.json" or not instance or not agent:
        return None
    return name.removesuffix(f"instances/{instance}/{agent}/points.json"), instance, agent


_OTHER_SIDE = "what a person did, which follows from the agent's trajectory of the same run"
_NOT_NAMED = "no run of the archive names the file"
_LINK = "a link or a device, which is not followed"
_UNNAMED_MEDIA = "no document of the archive names the file, or several files have the name"
_OF_LOG = "belongs to the log, not to one sample"
_SYSTEM_FILE = "written by the file manager of macOS or Windows"


def _is_of_system(name: str) -> bool:
    parts = name.split("/")
    return parts[-1].startswith("._") or any(part in _OF_SYSTEM for part in parts)


class _Archive:
    def __init__(self, entries: Entries, limit: int, bounds: InputBounds) -> None:
        self._entries, self._limit, self._bounds = entries, limit, bounds
        self._names = set(entries.names)
        self._read_names: set[str] = set()
        self._by_ending = {"/".join(name.split("/")[-2:]): name for name in self._names}
        self._pictures = Pictures(self._names, self._bytes, limit)

    def records(self, cut: Cut) -> Iterator[Record]:
        entries = self._entries.names
        if len(entries) > MOST_ENTRIES:
            message = f"it has {len(entries)} files; at most {MOST_ENTRIES} are read. Send it in parts."
            yield Record(1, error=InvalidRecord(message))
            return
        header = next((name for name in _HEADERS if name in self._names), None)
        points = [name for name in entries if _parse_points_path(name) is not None]
        if header:
            found = self._inspect(entries, header)
        else:
            found = self._autolibra(points) if points else self._files(entries, cut)
        read, skipped = False, []
        for record in found:
            if record.skipped:
                skipped.append(record)
                continue
            read = True
            yield record
        if not read:
            yield Record(1, error=InvalidRecord(f"there is no file of {', '.join(_PLAIN)} in it."))
        yield from skipped
        for name in self._entries.not_files:
            yield Record(1, pointer=f"/{escape(name)}", skipped=_LINK)

    def _inspect(self, entries: list[str], header: str) -> Iterator[Record]:
        try:
            about = parse_json(self._bytes(header))
            evaluation = about.get("eval") if isinstance(about, dict) else None
        except InvalidRecord as error:
            yield Record(1, pointer=f"/{escape(header)}", error=error)
            return
        samples = [entry for entry in entries if entry.startswith("samples/")]
        for number, entry in enumerate(samples, 1):
            at = f"/{escape(entry)}"
            try:
                document = {"eval": evaluation, "sample": parse_json(self._bytes(entry))}
            except InvalidRecord as error:
                yield Record(number, pointer=at, error=error)
            else:
                yield Record(number, encoded(document), document, at)
        if not samples:
            yield Record(1, error=InvalidRecord("the log has no samples; there is nothing to judge."))
        for entry in entries:
            if entry not in samples and entry != header:
                yield Record(1, pointer=f"/{escape(entry)}", skipped=_OF_LOG)
        for key in about if isinstance(about, dict) else ():
            if key != "eval" and about[key] not in (None, "", [], {}):
                yield Record(1, pointer=f"/{escape(header)}/{escape(key)}", skipped=_OF_LOG)

    def _autolibra(self, points: list[str]) -> Iterator[Record]:
        """A document for each run: its points with the data they name, its instance, what was written about it."""
        for number, entry in enumerate(points, 1):
            at = f"/{escape(entry)}"
            try:
                document = self._run(entry)
            except InvalidRecord as error:
                yield Record(number, pointer=at, error=error)
                continue
            if document["agent"].get("agent_type") in _PEOPLE and not document["annotations"]:
                yield Record(number, pointer=at, skipped=_OTHER_SIDE)
                continue
            raw = encoded(document)
            if len(raw) > self._limit:
                yield Record(number, pointer=at, error=too_large(self._limit))
            else:
                yield Record(number, raw, document, at)
        for entry in self._entries.names:
            if entry not in self._read_names:
                yield Record(1, pointer=f"/{escape(entry)}", skipped=_NOT_NAMED)

    def _run(self, entry: str) -> dict[str, Any]:
        found = _parse_points_path(entry)
        assert found is not None
        (root, instance, agent), folder = found, entry.removesuffix("points.json")
        about = self._json(f"{root}instances/{instance}/metadata.json")
        about = {} if about is None else require_object(about)
        points = []
        for index, message in enumerate(require_list(parse_json(self._bytes(entry)))):
            point = require_object(message, pointer=f"/{index}")
            reference = point.pop("data_reference", None)
            try:
                reference = require_object(
                    parse_json(reference.encode()) if isinstance(reference, str) else reference
                )
            except InvalidRecord as error:
                raise error.at(f"/{index}/data_reference") from None
            points.append(point | {"data": self._data(f"{folder}{reference.get('file_path')}", reference)})
        agents = require_object(about.get("agents") or {}, pointer="/agents")
        name = self._by_ending.get(f"annotations/{instance}_{agent}.json")
        annotations_file = self._json(name) if name else None
        return {
            "instance_id": instance,
            "agent_id": agent,
            "agent": require_object(agents.get(agent) or {}),
            "metadata": about.get("metadata") or {},
            "points": points,
            "annotations": require_object(annotations_file or {}).get("annotations") or [],
        }

    def _data(self, name: str, reference: dict[str, Any]) -> Any:
        """What a point's file holds; of an array of numbers, such as a picture, what it is."""
        if reference.get("media_type") != "json":
            return {"not read": {key: reference.get(key) for key in ("media_type", "file_path", "shape")}}
        if name not in self._names:
            raise InvalidRecord(f"names {name!r}, which is not in the archive.")
        return self._json(name)

    def _json(self, name: str) -> Any:
        """What an entry holds; None where there is no such entry."""
        return parse_json(self._bytes(name)) if name in self._names else None

    def _files(self, entries: list[str], cut: Cut) -> Iterator[Record]:
        for number, entry in enumerate(entries, 1):
            at = f"/{escape(entry)}"
            name = entry.lower()
            if _is_of_system(name):
                yield Record(number, pointer=at, skipped=_SYSTEM_FILE)
                continue
            if name.endswith(_PICKLES):
                yield Record(number, pointer=at, error=InvalidRecord(PICKLED))
                continue
            if (score := self._score(entry)) is not None:
                yield Record(number, encoded(score), score, at, source=entry)
                continue
            if reason := self._not_read(entry):
                yield Record(number, pointer=at, skipped=reason)
            if reason or name.endswith(MEDIA_SUFFIXES):
                continue
            for record in self._cut(entry, cut):
                placed = replace(record, line=number, pointer=at + record.pointer, source=entry)
                yield self._with_pictures(placed, entry)
        for entry in entries:
            name = entry.lower()
            is_media = name.endswith(MEDIA_SUFFIXES) and not _is_of_system(name)
            if is_media and entry not in self._read_names:
                yield Record(1, pointer=f"/{escape(entry)}", skipped=_UNNAMED_MEDIA)

    def _not_read(self, entry: str) -> str:
        """Why a file holds no records; empty where it may, and for pictures. Of texts, such as a README, only the
        sessions, pages and streams of a known kind do."""
        name = entry.lower()
        if name.endswith(_TEXT):
            try:
                with open_bounded(self._entries, entry, self._bounds) as file:
                    head = file.read(_TEXT_LOOKED).decode("utf-8-sig", "replace")
            except (InvalidRecord, *DAMAGED):
                return _UNKNOWN_TEXT
            return _UNKNOWN_TEXT if text_kind(head.lstrip()) is None else ""
        return (
            ""
            if name.endswith((*_READ, *MEDIA_SUFFIXES))
            else f"a file of another kind than {', '.join(_READ)}"
        )

    def _score(self, entry: str) -> dict[str, float] | None:
        """The score of an OSWorld run, which lies next to its `traj.jsonl` as a text; None of other files."""
        folder, _, name = entry.rpartition("/")
        if name != "result.txt" or f"{folder}/traj.jsonl".lstrip("/") not in self._names:
            return None
        try:
            score = float(self._bytes(entry))
        except (ValueError, InvalidRecord):
            return None
        return {SCORE: score} if math.isfinite(score) else None

    def _with_pictures(self, record: Record, folder: str) -> Record:
        try:
            document = self._pictures.embed_images(record.document, folder)
            return replace(record, document=document, is_edited=document is not record.document)
        except InvalidRecord as error:
            return replace(record, document=None, error=error)

    def _cut(self, entry: str, cut: Cut) -> Iterator[Record]:
        """The records of an entry; what is wrong with it is told by the last of them."""
        try:
            with open_bounded(self._entries, entry, self._bounds) as file:
                self._read_names.add(entry)
                yield from cut(file)
        except InvalidRecord as error:
            yield Record(1, error=error)
        except DAMAGED as error:
            yield Record(1, error=InvalidRecord(f"the entry is damaged: {error}."))

    def _bytes(self, entry: str) -> bytes:
        """What is in an entry. Raises InvalidRecord for what is not read."""
        try:
            with open_bounded(self._entries, entry, self._bounds) as file:
                content = file.read(self._limit + 1)
        except DAMAGED as error:
            raise InvalidRecord(f"the entry is damaged: {error}.") from None
        if len(content) > self._limit:
            raise too_large(self._limit)
        self._read_names.add(entry)
        return content
