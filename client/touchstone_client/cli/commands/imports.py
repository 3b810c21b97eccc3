"""`import`: files, folders and standard input to a project."""

import sys
import tomllib
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from touchstone_client.api_objects import read_object
from touchstone_client.cli.command import Command, Session
from touchstone_client.cli.output import Output
from touchstone_client.cli.statuses import CommandFailed, UsageFailed
from touchstone_client.errors import BadReply, Refused
from touchstone_client.resources.trajectories import FieldCount, ImportResult

_REJECTED_SHOWN = 20
_FIELDS_SHOWN = 10
_OF_A_FILE = (400, 413, 415, 422)  # statuses that say something about the file, not about all of them


@dataclass(frozen=True, slots=True)
class FileResult:
    """result: None where the file was refused before a record was read. error: why nothing of it was imported."""

    name: str
    result: ImportResult | None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        found = self.result.to_dict() if self.result else {}
        return {"file": self.name, **found, **({"error": self.error} if self.error else {})}


def _add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a file (JSON, JSON lines, CSV, Parquet, an archive) or a folder; - is standard input",
    )
    parser.add_argument(
        "--format", help="by default found out; names are in docs/formats.md, and mapping:NAME"
    )
    parser.add_argument(
        "--map", metavar="FILE", help="a mapping of fields in TOML, for tables of any shape (docs/formats.md)"
    )
    parser.add_argument(
        "--keep-good", action="store_true", help="import the good records of a file with bad ones"
    )


def _run(session: Session) -> None:
    options = session.options
    if options.map is not None and options.format is not None:
        raise UsageFailed("--map and --format are both set; a mapping is a format, so leave one of them out.")
    if options.files.count("-") > 1:
        raise UsageFailed("- is standard input, which can be imported once.")
    mapping = None if options.map is None else read_mapping(Path(options.map))
    done: list[FileResult] = []
    for name in options.files:
        done.append(_import(session, name, mapping))
        _report(session.output, done[-1])
        session.so_far = _total(done)
    refused = [each for each in done if each.error]
    if refused:
        of = (
            "Nothing was imported"
            if len(done) == 1
            else f"Nothing was imported of {len(refused)} of {len(done)} files"
        )
        keep = (
            " Fix the rejected records, or use --keep-good." if any(each.result for each in refused) else ""
        )
        reason = f": {refused[0].error}" if not keep else "."
        raise CommandFailed(f"{of}{reason}{keep}")
    session.output.result(_total(done))


def _import(session: Session, name: str, mapping: Mapping[str, str] | None) -> FileResult:
    options, source = session.options, _source(name)
    try:
        with session.output.progress(f"Sending {name}", " bytes") as progress:
            result = session.client.trajectories.import_file(
                source, format=options.format, map=mapping, keep_good=options.keep_good, progress=progress
            )
    except Refused as error:
        if error.status not in _OF_A_FILE:
            raise
        return FileResult(name, _refused_result(error), str(error.problem.get("detail") or error))
    except ValueError as error:  # a folder without files, or a file that shrank
        return FileResult(name, None, str(error))
    return FileResult(name, result)


def _source(name: str) -> str | BinaryIO:
    if name != "-":
        return name
    if sys.stdin.isatty():
        raise UsageFailed("Standard input is a terminal; pipe a file into it.")
    return sys.stdin.buffer


def _refused_result(error: Refused) -> ImportResult | None:
    if "rejected" not in error.problem:
        return None
    try:
        return read_object(ImportResult, {"created": 0, "duplicates": 0, **error.problem})
    except BadReply:
        return None


def read_mapping(path: Path) -> dict[str, str]:
    """The table [fields] of a file in TOML: JSONPaths by field, which the server checks. Raises UsageFailed."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageFailed(f"{path} is not valid TOML: {error}") from None
    fields = document.get("fields")
    if not isinstance(fields, dict) or len(document) != 1:
        raise UsageFailed(f'{path} must be one table [fields], such as: [fields] then messages = "$.turns".')
    return fields


def _report(output: Output, done: FileResult) -> None:
    result = done.result
    if result is None:
        output.say(f"{done.name}: refused. {done.error}")
        return
    output.say(
        f"{done.name}: {result.created} created, {result.duplicates} already there ({result.updated} updated), "
        f"{len(result.rejected)} rejected"
    )
    for rejection in result.rejected[:_REJECTED_SHOWN]:
        place = f" at {rejection.pointer}" if rejection.pointer else ""
        output.say(f"  line {rejection.line}{place}: {rejection.message}")
    if len(result.rejected) > _REJECTED_SHOWN:
        output.say(f"  and {len(result.rejected) - _REJECTED_SHOWN} more; --json lists them.")
    _report_fields(output, "dropped", result.dropped)
    _report_fields(output, "kept, not shown to models", result.kept)
    if missing := result.missing_attachments:
        output.say(
            f"  {len(missing)} attachments that this project has not are named; the first: {missing[0]}"
        )


def _report_fields(output: Output, label: str, fields: Sequence[FieldCount]) -> None:
    if fields:
        output.say(f"  fields {label}: {len(fields)}")
    for each in fields[:_FIELDS_SHOWN]:
        output.say(f"    {each.path} x {each.count}: {each.reason}")
    if len(fields) > _FIELDS_SHOWN:
        output.say(f"    and {len(fields) - _FIELDS_SHOWN} more; --json lists them.")


def _total(done: Sequence[FileResult]) -> dict[str, Any]:
    results = [each.result for each in done if each.result]
    counts = {
        name: sum(getattr(each, name) for each in results) for name in ("created", "duplicates", "updated")
    }
    rejected = [
        {"file": each.name, **rejection.to_dict()}
        for each in done
        if each.result
        for rejection in each.result.rejected
    ]
    dropped = [field.to_dict() for each in results for field in each.dropped]
    return {**counts, "rejected": rejected, "dropped": dropped, "files": [each.to_dict() for each in done]}


COMMANDS = (Command("import", "Import trajectories; what is there already is only counted", _add, _run),)
