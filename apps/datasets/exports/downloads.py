"""Exports of dataset versions as downloads, and who takes one along."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO

from apps.accounts.models import ApiKey, User
from apps.accounts.services import record_audit
from apps.core.http.streaming import StreamedLines
from apps.core.storage.storage_names import download_header
from apps.datasets.exports.accepted import DEFAULT, Acceptance
from apps.datasets.exports.columns import LeftOut
from apps.datasets.exports.folders import scratch_folder, zip_folder
from apps.datasets.exports.formats import export_lines, require_format, write_folder
from apps.datasets.models import DatasetVersion

_CHUNK = 2**16


def left_out_counts(left_out: LeftOut) -> dict[str, int]:
    """What a finished export has no line for: number by reason."""
    return {reason: number for reason, number in sorted(left_out.items()) if number}


def record_export(
    dataset_version: DatasetVersion,
    *,
    format: str,
    split: str | None,
    by: User | ApiKey | None,
    pushed_to: str | None = None,
) -> None:
    """Who takes a dataset version along, and to which hub."""
    given = {"split": split, "pushed_to": pushed_to}
    data = {"format": format} | {name: value for name, value in given.items() if value}
    record_audit(
        project=dataset_version.project,
        actor=by,
        verb="dataset.exported",
        target=str(dataset_version),
        data=data,
    )


def export_response(
    dataset_version: DatasetVersion,
    *,
    format: str,
    split: str | None,
    by: User | ApiKey,
    rule: Acceptance = DEFAULT,
) -> StreamedLines:
    """An export as a download: lines, written while they are sent, or a zip file of a folder.

    The header X-Touchstone-Left-Out says what the format has no line for, as JSON.
    """
    found = require_format(format, split, rule)
    record_export(dataset_version, format=format, split=split, by=by)
    name = "-".join(
        (
            dataset_version.project.slug,
            dataset_version.name,
            str(dataset_version.version),
            split or "all",
            format,
        )
    )
    left_out: LeftOut = Counter()
    if found.is_folder:
        content: Iterator[bytes] | Iterator[str] = _zip_chunks(dataset_version, format, split, left_out, rule)
        content_type, ending = "application/zip", "zip"
    else:
        rows = export_lines(dataset_version, format, split, left_out, rule)
        content = chain([next(rows, "")], rows)
        content_type, ending = "application/x-ndjson", "jsonl"
    response = StreamedLines(content, content_type=content_type)
    if counts := left_out_counts(left_out):
        response["X-Touchstone-Left-Out"] = json.dumps(counts)
    response["Content-Disposition"] = download_header(f"{name}.{ending}")
    return response


def _zip_chunks(
    dataset_version: DatasetVersion, format: str, split: str | None, left_out: LeftOut, rule: Acceptance
) -> Iterator[bytes]:
    """The zip file is complete before the first chunk, and closed after the last."""
    packed = tempfile.TemporaryFile(prefix="export-")  # noqa: SIM115 - closed when the response is sent
    with scratch_folder() as scratch:
        folder = scratch / "files"
        folder.mkdir()
        for _ in write_folder(dataset_version, format, split, left_out, folder, rule):
            pass
        zip_folder(folder, scratch / "files.zip")
        _copy(scratch / "files.zip", packed)
    return _chunks(packed)


def _copy(path: Path, target: IO[bytes]) -> None:
    with path.open("rb") as source:
        while chunk := source.read(2**20):
            target.write(chunk)
    target.seek(0)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk
