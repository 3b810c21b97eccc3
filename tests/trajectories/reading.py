"""Bytes of a file as the importer reads them."""

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

from apps.trajectories import formats
from apps.trajectories.formats import general
from apps.trajectories.import_reader import ImportReader, read_import_records
from workers.errors import InvalidRecord
from workers.schema import Part, Trajectory

GENERAL = frozenset(name for name, *_ in general.FORMATS)  # formats of any program's runs, tried last


def read_bytes(
    raw: bytes, name: str | None = None
) -> tuple[list[Trajectory], list[InvalidRecord], ImportReader]:
    """The trajectories, what was refused, and the reader with what it dropped. name: of the format, else detected."""
    reader = ImportReader(None if name is None else formats.FORMATS[name])
    parts = [part for record in read_import_records(io.BytesIO(raw)) for part in reader.parts(record)]
    found, refused = [], []
    for part in [*parts, *reader.rest()]:
        try:
            reader.prepare(part)
            found.append(reader.read(part))
        except InvalidRecord as error:
            refused.append(error)
    return found, refused, reader


def read_one(document: Any, name: str | None = None) -> Trajectory:
    """The only trajectory of a document; a list of events is sent as JSON lines."""
    rows = document if isinstance(document, list) else [document]
    raw = b"\n".join(json.dumps(row).encode() for row in rows)
    is_chat = isinstance(document, list) and "role" in document[0]
    found, refused, _ = read_bytes(json.dumps(document).encode() if is_chat else raw, name)
    assert not refused, refused[0].message
    (trajectory,) = found
    return trajectory


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def media(trajectory: Trajectory) -> list[str]:
    """The sources of what is no text, in order, data URLs by their type."""
    parts: list[Part] = []
    for step in trajectory.steps:
        parts += [*step.message, *(part for result in step.observation for part in result.content)]
    return [(part.source or "").partition(";base64,")[0] for part in parts if part.type != "text"]
