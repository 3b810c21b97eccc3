"""How the audit trail is chained: plain Python, so that an export is verified without a database, and by others.

The hash of an event is the SHA-256 of its document: the JSON of FIELDS with sorted keys, no spaces, and everything but
ASCII escaped. A document holds the hash of the event before it in the installation and of the one before it in its
project, so that both chains show what was changed, taken out, added or moved.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

START = "0" * 64  # what the first event of a chain follows
FIELDS = (
    "sequence",
    "previous_hash",
    "project_sequence",
    "project_previous_hash",
    "at",
    "project",
    "project_slug",
    "actor",
    "verb",
    "target",
    "data",
)
_EXACT = 2**53  # whole numbers up to this are the same in every JSON reader


def event_hash(document: Mapping[str, Any]) -> str:
    """Of a document with FIELDS; what else it holds is not hashed."""
    text = json.dumps({name: document[name] for name in FIELDS}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def storable(value: Any) -> Any:
    """The same as PostgreSQL's jsonb gives it back: what is hashed must be what is read later."""
    if isinstance(value, Mapping):
        return {str(storable(str(name))): storable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [storable(each) for each in value]
    if isinstance(value, bool | None):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else str(value)
    if isinstance(value, float):
        return _storable_number(value)
    # Neither fits into the database: NUL, and halves of surrogate pairs.
    return str(value).replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _storable_number(value: float) -> int | float | str:
    if not math.isfinite(value):
        return str(value)
    if value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    return str(value) if "e" in repr(value) else value


@dataclass(frozen=True, slots=True)
class Head:
    """How far a chain goes: the number of its last event, and that one's hash."""

    sequence: int = 0
    hash: str = START

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


@dataclass
class ChainCheck:
    """What a look at a chain found. head: of the last event that was read."""

    events: int = 0
    head: Head = field(default_factory=Head)
    faults: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return not self.faults


_MOST_FAULTS = 100


def verify_documents(
    documents: Iterable[Mapping[str, Any]],
    *,
    of_project: bool = False,
    anchors: Mapping[int, str] | None = None,
) -> ChainCheck:
    """Go along a chain from its first event. of_project: along that of a project.

    anchors: hashes by number that were written down elsewhere; what they name must be there, and the same.
    """
    verdict, left = ChainCheck(), dict(anchors or {})
    number, before = (
        ("project_sequence", "project_previous_hash") if of_project else ("sequence", "previous_hash")
    )
    for document in documents:
        verdict.events += 1
        for fault in _faults(document, verdict.head, number, before):
            if len(verdict.faults) < _MOST_FAULTS:
                verdict.faults.append(fault)
        verdict.head = Head(document[number], document["hash"])
        wanted = left.pop(document["sequence"], document["hash"])
        if wanted != document["hash"]:
            verdict.faults.append(f"Event {document['sequence']} is not the one that was anchored: {wanted}.")
    if left and not of_project:
        verdict.faults.append(
            f"Events are missing: an anchor names event {max(left)}, the trail ends at {verdict.head.sequence}."
        )
    return verdict


def _faults(document: Mapping[str, Any], head: Head, number: str, before: str) -> Iterator[str]:
    found = document[number]
    if missing := [name for name in FIELDS if name not in document]:
        yield f"Event {found} has no {', '.join(missing)}."
        return
    if found != head.sequence + 1:
        yield f"After event {head.sequence} comes {found}: events were taken out, added or moved."
    elif document[before] != head.hash:
        yield f"Event {found} does not follow the one before it: one of them was changed or exchanged."
    if event_hash(document) != document["hash"]:
        yield f"Event {found} was changed: {document['at']} {document['verb']}."
