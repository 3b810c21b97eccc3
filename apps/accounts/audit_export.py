"""The audit trail as JSON lines, which are verified without a database.

First a line that says what it is, then an event a line in the chain's order, and last a line with the chain's head and
the anchors of the home: without it the file was cut.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.utils import timezone

from apps.accounts import audit_chain
from apps.accounts.audit_hash import FIELDS, ChainCheck, Head, verify_documents
from apps.accounts.models import ApiKey, Project, User
from apps.accounts.pseudonyms import meanings_in
from apps.accounts.services import record_audit
from apps.core.errors import DomainError

FORMAT = 1
_NAMES_AT_ONCE = 1000


def export_lines(*, project: Project | None, by: User | ApiKey | None, names: bool = False) -> Iterator[str]:
    """Of a project, or of the installation without one. The export is itself an event, and in what it exports.

    names: with whom the pseudonyms mean, which is not hashed and can be forgotten.
    """
    data = {"scope": project.slug if project else "installation", "names": names}
    record_audit(project=project, actor=by, verb="audit.exported", data=data)
    audit_chain.seal(every=True)
    return _lines(project, names)


def _lines(project: Project | None, names: bool) -> Iterator[str]:
    slug = project.slug if project else None
    yield _line({"touchstone_audit": FORMAT, "project": slug, "exported_at": timezone.now().isoformat()})
    last, count = Head(), 0
    number = "project_sequence" if project else "sequence"
    for documents in _batches(project):
        for document in documents:
            yield _line(document)
            last, count = Head(document[number], document["hash"]), count + 1
        if names:
            values = [[each["actor"], each["target"], each["data"]] for each in documents]
            if found := meanings_in(values):
                yield _line({"names": found})
    anchors = {str(number): each for number, each in audit_chain.anchors(settings.HOME).items()}
    yield _line({"end": {"events": count, "head": str(last), "anchors": anchors}})


def _batches(project: Project | None) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    found = audit_chain.documents(project=project.pk if project else None, whole=project is None)
    for document in found:
        batch.append(document)
        if len(batch) == _NAMES_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def verify_file(path: Path, *, head: str = "") -> ChainCheck:
    """An export against itself. head: `SEQUENCE:HASH` that was written down elsewhere. Raises DomainError."""
    try:
        with path.open(encoding="utf-8") as file:
            return _verified(file, path, head)
    except (OSError, UnicodeDecodeError) as error:
        raise DomainError(f"{path} cannot be read: {error}.") from error


def _verified(file: IO[str], path: Path, head: str) -> ChainCheck:
    first = _parsed(file.readline(), path, 1)
    if first.get("touchstone_audit") != FORMAT:
        raise DomainError(
            f"{path} is not an export of the audit trail: its first line is not an export header."
        )
    reader, of_project = _Reader(file, path), first.get("project") is not None
    verdict = verify_documents(reader, of_project=of_project, anchors=parsed_head(head))
    if reader.end is None:
        verdict.faults.append("The file was cut: its last line, with the head of the chain, is missing.")
        return verdict
    told = reader.end.get("head"), reader.end.get("events")
    if told != (str(verdict.head), verdict.events):
        verdict.faults.append(f"Events are missing or were added: the last line counts {told[1]}, {told[0]}.")
    for number, wanted in reader.end.get("anchors", {}).items():
        if reader.hashes.get(int(number), wanted) != wanted:
            verdict.faults.append(f"Event {number} is not the one that was anchored: {wanted}.")
    return verdict


class _Reader:
    """The events of an export; `end` and the hashes are there when it was read."""

    def __init__(self, file: IO[str], path: Path) -> None:
        self._file, self._path = file, path
        self.end: dict[str, Any] | None = None
        self.hashes: dict[int, str] = {}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(self._file, start=2):
            document = _parsed(line, self._path, number)
            if "end" in document:
                self.end = document["end"]
            elif "names" not in document:
                if "sequence" not in document or "hash" not in document:
                    raise DomainError(
                        f"{self._path}, line {number} is no event: it lacks its number or hash."
                    )
                document = dict.fromkeys(FIELDS) | document
                self.end = None  # what follows the last line was added
                self.hashes[document["sequence"]] = document["hash"]
                yield document


def _parsed(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise DomainError(f"{path}, line {number} is not JSON: the file is damaged or was cut.") from error
    if not isinstance(found, dict):
        raise DomainError(f"{path}, line {number} is not an object.")
    return found


def parsed_head(head: str) -> dict[int, str]:
    """An anchor out of `SEQUENCE:HASH`; none out of nothing. Raises DomainError."""
    if not head:
        return {}
    number, _, hash_ = head.partition(":")
    if not number.isdecimal() or len(hash_) != 64:
        raise DomainError(f"{head!r} is no head; it is SEQUENCE:HASH, as an export or the log has it.")
    return {int(number): hash_}
