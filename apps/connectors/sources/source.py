"""What a kind of connector is: its fields, and how its documents are found and fetched."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any, BinaryIO, Protocol

from apps.connectors.models import Connector
from apps.core.errors import DomainError


@dataclass(frozen=True, slots=True)
class SourceOption:
    """A field of a connector's options. choices: None for any text."""

    name: str
    label: str
    help_text: str = ""
    required: bool = False
    default: str = ""
    choices: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A document as it is now. last_activity: of a trace; None where it cannot change any more. digest: what tells it
    from an earlier state of it. target: what scores of it are attached to."""

    body: bytes | BinaryIO
    digest: str
    last_activity: datetime | None = None
    target: dict[str, Any] = field(default_factory=dict)

    def open(self) -> BinaryIO:
        return BytesIO(self.body) if isinstance(self.body, bytes) else self.body

    @property
    def size(self) -> int:
        return len(self.body) if isinstance(self.body, bytes) else 0


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Documents by the ids that the peer has for them, and where to go on once they are stored. versions: what is known
    of a document before it is fetched, such as an ETag: an equal one need not be fetched. total: of the pull, where
    it is known."""

    ids: list[str]
    cursor: dict[str, Any]
    versions: dict[str, str] = field(default_factory=dict)
    total: int | None = None


class DocumentProblem(DomainError):
    """Why a document cannot be fetched, and will not be fetched any better the next time; the others can."""


class Source(Protocol):
    """A peer, opened for one run. Its methods raise DomainError with what to do about it.

    format: of the documents, as `import_trajectories` names it. lists_everything: whether the pages name every document
    each time; otherwise those that are not quiet yet are asked for by their ids.
    """

    format: str
    lists_everything: bool

    def pages(self, cursor: dict[str, Any]) -> Iterator[DocumentPage]:
        """What there is after `cursor`, oldest first; the empty cursor is the beginning."""
        ...

    def fetch(self, source_id: str) -> FetchedDocument | None:
        """None where the peer has it no more."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a source is opened with. secret: decrypted. pause: waits for seconds, and raises where the run is to end."""

    connector: Connector
    secret: str
    pause: Callable[[float], None]
    now: datetime

    @property
    def settle(self) -> timedelta:
        return timedelta(minutes=self.connector.settle_minutes)

    @property
    def overlap(self) -> timedelta:
        return timedelta(minutes=self.connector.overlap_minutes)

    def is_quiet(self, last_activity: datetime | None) -> bool:
        return last_activity is None or last_activity <= self.now - self.settle

    def option(self, name: str) -> str:
        return str(self.connector.options.get(name) or "")


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A row of `KINDS`. has_traces: whether its documents are traces, which may grow. username_label, key_label: of the
    two; empty: the kind has none. key_required: whether it cannot be called without one. environment: variables in
    which the peer's own client looks for a field, for the command `connect`."""

    name: str
    title: str
    lead: str
    open: Callable[[SourceContext], Source]
    address: str = "Address"
    address_help: str = ""
    default_address: str = ""
    username_label: str = ""
    key_label: str = ""
    key_help: str = ""
    key_required: bool = False
    address_required: bool = True
    options: tuple[SourceOption, ...] = ()
    has_traces: bool = True
    environment: dict[str, tuple[str, ...]] = field(default_factory=dict)
