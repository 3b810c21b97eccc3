"""import_trajectories PROJECT FILE... : agents' trajectories from files or standard input."""

import io
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.conf import settings
from django.core.management.base import CommandParser
from django.db import transaction

from apps.accounts.models import Project
from apps.accounts.services import project_for
from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.errors import DomainError
from apps.core.storage.temporary_files import TemporaryFile
from apps.core.storage.unpacking import bounds_of_operator
from apps.trajectories import formats, saved, services, traces
from apps.trajectories.formats.mapping import FieldMapping
from apps.trajectories.hub_datasets import PREFIX, HubDataset, HubName, HubPart
from apps.trajectories.import_reader import read_import_records
from apps.trajectories.masking import DETECTORS, checked_detectors
from workers.errors import InvalidRecord

_FIELDS_SHOWN = 10
_LONGEST_MAPPING = 64 * 2**10  # bytes
_PART_IN_MEMORY = 8 * 2**20
Source = AbstractContextManager[BinaryIO | Path]
_WAIT = 1.0  # seconds between looks at a file that grows


class Command(TouchstoneCommand):
    help = "Import trajectories. What is already there is not imported again."
    store_access = "check"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument(
            "files",
            nargs="+",
            metavar="FILE",
            help="a file (JSON, JSON Lines, Parquet, Arrow or CSV), an archive, a folder, or a data set of the hub"
            " (hf://datasets/ORG/NAME[@REVISION]); - is standard input",
        )
        parser.add_argument(
            "--format",
            default=formats.AUTO,
            help=f"auto (default), mapping:NAME, {', '.join(formats.FORMATS)}",
        )
        parser.add_argument(
            "--map",
            metavar="FILE",
            help="read any JSON, Parquet or CSV by a mapping of its fields: a file of TOML, or the TOML itself, see "
            "docs/formats.md",
        )
        parser.add_argument(
            "--keep-good", action="store_true", help="import the good records of a file with bad ones"
        )
        parser.add_argument(
            "--mask",
            default="",
            metavar="NAMES",
            help="replace secrets and personal data by tokens before anything is stored, besides what the project"
            f" always masks; separated by commas, of {', '.join(DETECTORS)}",
        )
        parser.add_argument(
            "--follow", action="store_true", help="keep reading a growing file of JSON lines, until Ctrl-C"
        )

    def run(
        self,
        *,
        project: str,
        files: list[str],
        format: str,
        map: str | None,
        keep_good: bool,
        follow: bool,
        mask: str,
        **_: Any,
    ) -> dict[str, Any]:
        owner = project_for(project)
        self.mask = checked_detectors(name.strip() for name in mask.split(",") if name.strip())
        saved.format_named(owner, format)
        if map is not None and (format != formats.AUTO or follow):
            raise DomainError("--map does not combine with --format or --follow; leave them out.")
        if follow:
            return self._follow(owner, files, format)
        read_by = format if map is None else formats.by_mapping(_read_mapping(map))
        total = services.ImportResult()
        with nullcontext() if keep_good else transaction.atomic():
            for name, source in _sources(files):
                result = self._import(owner, name, source, read_by, keep_good)
                self._report(name, result)
                _add(total, result, None if files == [name] else name)
            if total.rejected and not keep_good:
                transaction.set_rollback(True)
                total.created = total.duplicates = total.updated = 0
        if total.rejected and not keep_good:
            raise CommandFailed(
                "Nothing was imported. Fix the rejected records, or use --keep-good.", result=total.as_json()
            )
        return total.as_json()

    def _import(
        self, project: Project, name: str, source: Source, format: str | formats.Format, keep_good: bool
    ) -> services.ImportResult:
        with source as stream, self.progress(None, f"Reading {name}") as progress:
            return services.import_trajectories(
                project=project,
                stream=stream,
                format=format,
                keep_good=keep_good,
                by=None,
                progress=progress.update,
                bounds=bounds_of_operator(),
                mask=self.mask,
            )

    def _report(self, name: str, result: services.ImportResult) -> None:
        self.say(
            f"{name}: {result.format or 'no format recognised'}, {result.created} created,"
            f" {result.duplicates} already there ({result.updated} updated), {result.rejected_count} rejected"
        )
        for rejection in result.rejected[:20]:
            where = f" at {rejection['pointer']}" if rejection["pointer"] else ""
            self.say(f"  line {rejection['line']}{where}: {rejection['message']}")
        if result.rejected_count > 20:
            self.say(f"  and {result.rejected_count - 20} more; --json lists up to 1000.")
        for use, counts in (("dropped", result.dropped), ("kept, not shown to models", result.kept)):
            if rows := counts.as_json():
                self.say(f"  fields {use}: {len(rows)}")
            for row in rows[:_FIELDS_SHOWN]:
                self.say(f"    {row['path']} x {row['count']}: {row['reason']}")
            if len(rows) > _FIELDS_SHOWN:
                self.say(f"    and {len(rows) - _FIELDS_SHOWN} more; --json lists them.")
        if result.masked is not None:
            masked = ", ".join(f"{name} {count}" for name, count in sorted(result.masked.items()))
            self.say(f"  masked: {masked or 'nothing found'}")
        if missing := sorted(result.missing_attachments):
            count = "1000 or more" if len(missing) >= services.MOST_LISTED else len(missing)
            self.say(f"  {count} attachments that this project has not are named; the first: {missing[0]}")

    def _follow(self, project: Project, files: list[str], format: str) -> dict[str, Any]:
        if len(files) != 1 or files[0] == "-":
            raise DomainError("--follow reads one file; give its name.")
        total, line = services.ImportResult(), 1
        for lines in _growing(Path(files[0])):
            result = self._piece(project, lines, format, line)
            line += lines.count(b"\n")
            self._report(files[0], result)
            _add(total, result, None)
        return total.as_json()

    def _piece(self, project: Project, lines: bytes, format: str, line: int) -> services.ImportResult:
        """Of spans a piece may hold half a run: they wait, like those that arrive over HTTP, until a trace is whole."""
        if _is_spans(lines, format):
            result = services.ImportResult(format="otel")
            received = traces.receive_lines(
                project=project, lines=lines, first_line=line, reject=result.reject
            )
            result.dropped.add_all(received.dropped)
            self.say(
                f"{received.kept} spans kept; what is whole becomes trajectories while the installation runs"
            )
            return result
        return services.import_trajectories(
            project=project,
            stream=io.BytesIO(lines),
            format=format,
            keep_good=True,
            by=None,
            first_line=line,
            mask=self.mask,
        )


def _read_mapping(name: str) -> FieldMapping:
    """name: of a file of TOML, or what would be in it: `fields = {...}`."""
    if name.lstrip().startswith(("fields", "[fields]")) and "=" in name:
        try:
            return FieldMapping.from_toml(name)
        except InvalidRecord as error:
            raise DomainError(f"--map: {error.message} ({error.pointer or 'all of it'})") from None
    with _open(name) as stream:
        try:
            return FieldMapping.from_toml(stream.read(_LONGEST_MAPPING).decode("utf-8", "replace"))
        except InvalidRecord as error:
            raise DomainError(f"{name}: {error.message} ({error.pointer or 'the whole file'})") from None


def _is_spans(lines: bytes, format: str) -> bool:
    if format != formats.AUTO:
        return format == "otel"
    first = next(iter(read_import_records(io.BytesIO(lines))), None)
    return first is not None and formats.FORMATS["otel"].sniff(first.document)


def _sources(names: list[str]) -> Iterator[tuple[str, Source]]:
    """What is to be read, with the names that results are reported by. A data set of the hub is read part by part."""
    for name in names:
        if not name.startswith(PREFIX):
            yield name, _open_source(name)
            continue
        dataset = HubDataset(HubName.parse(name))
        for part in dataset.parts():
            yield (
                f"{PREFIX}{dataset.name.repository}@{dataset.commit[:12]} {part.name}",
                _open_part(dataset, part),
            )


@contextmanager
def _open_part(dataset: HubDataset, part: HubPart) -> Iterator[BinaryIO]:
    with closing(TemporaryFile(None, _PART_IN_MEMORY)) as file:
        dataset.write(part, file)
        file.seek(0)
        yield cast(BinaryIO, file)


def _open_source(name: str) -> Source:
    """A file, or the path of a folder."""
    path = Path(name)
    return nullcontext(path) if name != "-" and path.is_dir() else _open(name)


def _open(name: str) -> AbstractContextManager[BinaryIO]:
    if name == "-":  # never closed: after Ctrl-C the thread that reads ahead may still wait in it
        return nullcontext(os.fdopen(os.dup(sys.stdin.fileno()), "rb"))
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise DomainError(f"{name} cannot be read: {error.strerror}.") from None


def _add(total: services.ImportResult, result: services.ImportResult, name: str | None) -> None:
    total.created += result.created
    total.duplicates += result.duplicates
    total.updated += result.updated
    if result.masked is not None:
        total.masked = (total.masked or Counter()) + result.masked
    total.dropped.add_all(result.dropped)
    total.kept.add_all(result.kept)
    total.missing_attachments |= result.missing_attachments
    total.rejected_count += result.rejected_count
    total.rejected += [rejection | ({"file": name} if name else {}) for rejection in result.rejected]


def _growing(path: Path) -> Iterator[bytes]:
    """Whole lines as they are written, until Ctrl-C; blank pieces are not worth an import."""
    rest = b""
    with _open(str(path)) as stream:
        try:
            while True:
                piece = stream.read(8 * 2**20)
                lines, newline, rest = (rest + piece).rpartition(b"\n")
                if lines.strip():
                    yield lines + newline
                if len(rest) > settings.MAX_RECORD_BYTES:
                    raise DomainError(f"{path} has a line over the limit of TOUCHSTONE_MAX_RECORD_MB.")
                if not piece:
                    time.sleep(_WAIT)
        except KeyboardInterrupt:
            return
