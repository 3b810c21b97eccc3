"""Zip archives: an Inspect `.eval` log, AutoLibra's folder, or files put together. Nothing is written to a folder.

What an entry claims of its size and kind is not believed: no more than a record's limit is unpacked of one, and all
together are held to the bounds of the input (`unpacking`). Entries packed by zstd, as Inspect does, are read too.
Pictures that a document of the archive names (`screenshot_path`, `image_path`) are put into what is read of it.
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO, Any, BinaryIO

import zstandard

from apps.core.storage.unpacking import MOST_ENTRIES, InputBounds
from apps.trajectories.formats.pictures import MEDIA_SUFFIXES, Pictures
from apps.trajectories.formats.record import Record, encoded, too_large
from workers.errors import InvalidRecord
from workers.schema import parse_json
from workers.schema.decode import escape, require_list, require_object

MAGIC = b"PK\x03\x04"
_IN_MEMORY = 64 * 2**20
# Of the end's record: entries, bytes of their list; bytes of a line of it.
_ENTRIES, _DIRECTORY, _LINE = 4, 5, 600
_ZSTD = 93
_LOCAL = struct.Struct("<26xHH")  # of an entry's own header: the lengths of its name and of what follows that
_HEADERS = ("header.json", "_journal/start.json")  # the second is what a run that was killed has
_READ = (".json", ".jsonl", ".ndjson", ".traj")
_OF_SYSTEM = (
    "__macosx",
    ".ds_store",
    "thumbs.db",
    "desktop.ini",
)  # written next to the files by file managers
_PEOPLE = ("human", "user")
_PICKLES = tuple(
    kind + packed for kind in (".pkl", ".pickle", ".pt", ".pth", ".joblib") for packed in ("", ".gz")
)
PICKLED = "is a pickle, which can run code when it is read, and is never loaded; send JSON."
Cut = Callable[[BinaryIO], Iterator[Record]]


def read_archive(stream: BinaryIO, limit: int, bounds: InputBounds, cut: Cut) -> Iterator[Record]:
    """limit: bytes an entry may have. bounds: of all of it. cut: reads an entry, which is no archive
    again: one that holds itself never ends. The pointer of a record begins with the entry's name."""
    with bounds.temporary(_IN_MEMORY) as kept:
        _copy(stream, kept)
        try:
            _check_directory(kept)
            with zipfile.ZipFile(kept) as archive:
                yield from _Archive(archive, limit, bounds).records(cut)
        except (zipfile.BadZipFile, NotImplementedError, struct.error) as error:
            yield Record(1, error=InvalidRecord(f"the archive is damaged: {error}."))


def _copy(stream: BinaryIO, kept: Any) -> None:
    while piece := stream.read(2**20):
        kept.write(piece)
    kept.seek(0)


def _check_directory(kept: Any) -> None:
    """Before `zipfile` reads all of it into objects, each a hundred times as large as its line."""
    end: Any = zipfile._EndRecData(kept)  # type: ignore[attr-defined]
    if end is not None and (end[_ENTRIES] > MOST_ENTRIES or end[_DIRECTORY] > MOST_ENTRIES * _LINE):
        raise zipfile.BadZipFile(
            f"it has {end[_ENTRIES]} entries; at most {MOST_ENTRIES} are read. Send it in parts"
        )


def _parse_points_path(name: str) -> tuple[str, str, str] | None:
    """What stands before `instances/INSTANCE/AGENT/points.json` of AutoLibra, INSTANCE and AGENT; None of others."""
    folder, instance, agent, last = ["", "", "", "", *name.split("/")][-4:]
    if folder != "instances" or last != "points.json" or not instance or not agent:
        return None
    return name.removesuffix(f"instances/{instance}/{agent}/points.json"), instance, agent


_OTHER_SIDE = "what a person did, which follows from the agent's trajectory of the same run"
_NOT_NAMED = "no run of the archive names the file"
_UNNAMED_MEDIA = "no document of the archive names the file, or several files have the name"
_OF_LOG = "belongs to the log, not to one sample"
_SYSTEM_FILE = "written by the file manager of macOS or Windows"


def _is_of_system(name: str) -> bool:
    parts = name.split("/")
    return parts[-1].startswith("._") or any(part in _OF_SYSTEM for part in parts)


class _Archive:
    def __init__(self, archive: zipfile.ZipFile, limit: int, bounds: InputBounds) -> None:
        self._archive, self._limit, self._bounds = archive, limit, bounds
        self._names = {entry.filename for entry in archive.infolist()}
        self._read_names: set[str] = set()
        self._by_ending = {"/".join(name.split("/")[-2:]): name for name in self._names}
        self._pictures = Pictures(self._names, lambda name: self._bytes(archive.getinfo(name)), limit)

    def records(self, cut: Cut) -> Iterator[Record]:
        entries = [entry for entry in self._archive.infolist() if not entry.is_dir()]
        if len(entries) > MOST_ENTRIES:
            raise zipfile.BadZipFile(f"it has {len(entries)} entries; at most {MOST_ENTRIES} are read")
        header = next((name for name in _HEADERS if name in self._names), None)
        points = [entry for entry in entries if _parse_points_path(entry.filename) is not None]
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
            yield Record(1, error=InvalidRecord(f"the archive has no file of {', '.join(_READ)} in it."))
        yield from skipped

    def _inspect(self, entries: list[zipfile.ZipInfo], header: str) -> Iterator[Record]:
        try:
            about = parse_json(self._bytes(self._archive.getinfo(header)))
            evaluation = about.get("eval") if isinstance(about, dict) else None
        except InvalidRecord as error:
            yield Record(1, pointer=f"/{escape(header)}", error=error)
            return
        samples = [entry for entry in entries if entry.filename.startswith("samples/")]
        for number, entry in enumerate(samples, 1):
            at = f"/{escape(entry.filename)}"
            try:
                document = {"eval": evaluation, "sample": parse_json(self._bytes(entry))}
            except InvalidRecord as error:
                yield Record(number, pointer=at, error=error)
            else:
                yield Record(number, encoded(document), document, at)
        if not samples:
            yield Record(1, error=InvalidRecord("the log has no samples; there is nothing to judge."))
        for entry in entries:
            if entry not in samples and entry.filename != header:
                yield Record(1, pointer=f"/{escape(entry.filename)}", skipped=_OF_LOG)
        for key in about if isinstance(about, dict) else ():
            if key != "eval" and about[key] not in (None, "", [], {}):
                yield Record(1, pointer=f"/{escape(header)}/{escape(key)}", skipped=_OF_LOG)

    def _autolibra(self, points: list[zipfile.ZipInfo]) -> Iterator[Record]:
        """A document for each run: its points with the data they name, its instance, what was written about it."""
        for number, entry in enumerate(points, 1):
            at = f"/{escape(entry.filename)}"
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
        for entry in self._archive.infolist():
            if not entry.is_dir() and entry.filename not in self._read_names:
                yield Record(1, pointer=f"/{escape(entry.filename)}", skipped=_NOT_NAMED)

    def _run(self, entry: zipfile.ZipInfo) -> dict[str, Any]:
        found = _parse_points_path(entry.filename)
        assert found is not None
        (root, instance, agent), folder = found, entry.filename.removesuffix("points.json")
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
        return parse_json(self._bytes(self._archive.getinfo(name))) if name in self._names else None

    def _files(self, entries: list[zipfile.ZipInfo], cut: Cut) -> Iterator[Record]:
        for number, entry in enumerate(entries, 1):
            at = f"/{escape(entry.filename)}"
            name = entry.filename.lower()
            if _is_of_system(name):
                yield Record(number, pointer=at, skipped=_SYSTEM_FILE)
                continue
            if name.endswith(_PICKLES):
                yield Record(number, pointer=at, error=InvalidRecord(PICKLED))
            elif not name.endswith((*_READ, *MEDIA_SUFFIXES)):
                yield Record(number, pointer=at, skipped=f"a file of another kind than {', '.join(_READ)}")
            if not name.endswith(_READ):
                continue
            try:
                content = self._bytes(entry)
            except InvalidRecord as error:
                yield Record(number, pointer=at, error=error)
                continue
            for record in cut(io.BytesIO(content)):
                placed = replace(record, line=number, pointer=at + record.pointer, source=entry.filename)
                yield self._with_pictures(placed, entry.filename)
        for entry in entries:
            name = entry.filename.lower()
            is_media = name.endswith(MEDIA_SUFFIXES) and not _is_of_system(name)
            if is_media and entry.filename not in self._read_names:
                yield Record(1, pointer=f"/{escape(entry.filename)}", skipped=_UNNAMED_MEDIA)

    def _with_pictures(self, record: Record, folder: str) -> Record:
        try:
            document = self._pictures.embed_images(record.document, folder)
            return replace(record, document=document, is_edited=document is not record.document)
        except InvalidRecord as error:
            return replace(record, document=None, error=error)

    def _bytes(self, entry: zipfile.ZipInfo) -> bytes:
        """What is in an entry. Raises InvalidRecord for what is not read."""
        parts = entry.filename.replace("\\", "/").split("/")
        if ".." in parts or entry.filename.startswith(("/", "\\")) or ":" in parts[0]:
            raise InvalidRecord(f"the archive names {entry.filename!r}, which is outside of it.")
        if entry.flag_bits & 1:
            raise InvalidRecord("the entry is encrypted; send it without a password.")
        try:
            with self._open(entry) as file:
                content = file.read(self._limit + 1)
        except (zipfile.BadZipFile, zlib.error, zstandard.ZstdError, EOFError, struct.error) as error:
            raise InvalidRecord(f"the entry is damaged: {error}.") from None
        except (NotImplementedError, RuntimeError):
            raise InvalidRecord(
                "the entry is packed in a way that is not read; use deflate or zstd."
            ) from None
        if len(content) > self._limit:
            raise too_large(self._limit)
        self._bounds.became(len(content))
        self._read_names.add(entry.filename)
        return content

    def _open(self, entry: zipfile.ZipInfo) -> IO[bytes]:
        if entry.compress_type != _ZSTD:
            return self._archive.open(entry)
        file = self._archive.fp
        assert file is not None
        file.seek(entry.header_offset)
        name, extra = _LOCAL.unpack(file.read(_LOCAL.size))
        file.seek(name + extra, 1)
        packed = file.read(entry.compress_size)
        return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
