"""Stores of traces, listed by when traces began: what a pull of one looks at, and where the next one goes on."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from apps.connectors.sources.peer_client import PeerClient, format_time, parse_time
from apps.connectors.sources.source import (
    DocumentPage,
    DocumentProblem,
    FetchedDocument,
    SourceContext,
    SourceOption,
)
from apps.core.errors import DomainError
from apps.trajectories.formats.record import encoded

SINCE = SourceOption(
    "since", "Since", "Date of the first traces to pull, such as 2026-01-31. Empty pulls all there are."
)


class TraceParts:
    """The parts of one trace, which come page by page. Raises DocumentProblem for too much, and for a page that was
    there already: a server that never ends must not fill the memory."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []
        self._bytes, self._pages = 0, set[str]()

    def add(self, parts: list[dict[str, Any]], following: Any) -> None:
        self._bytes += sum(len(encoded(part)) for part in parts)
        if self._bytes > settings.MAX_RECORD_BYTES:
            most = settings.MAX_RECORD_BYTES // 2**20
            raise DocumentProblem(
                f"The trace has more than {most} MB; raise TOUCHSTONE_MAX_RECORD_MB to read it."
            )
        if following and str(following) in self._pages:
            raise DocumentProblem("The server repeats a page of the trace instead of the next one.")
        self._pages.add(str(following))
        self.parts += parts


@dataclass(frozen=True, slots=True)
class Window:
    """Traces that began from `start` (None: ever) to before `end`. page: where to go on within it."""

    start: datetime | None
    end: datetime
    page: Any = None


@dataclass(frozen=True, slots=True)
class TraceList:
    """page: of the rest of the window; None: this was all."""

    ids: list[str]
    page: Any = None


class TraceStore(ABC):
    """Subclasses list the traces of a window, and fetch one.

    A pull looks at the traces that began since the last one ended, and again at those of the overlap before, for spans
    that came late. The cursor: {"until": what began before was looked at, "window": of a pull that is not over}.
    """

    format: str
    lists_everything = False

    def __init__(self, context: SourceContext, headers: dict[str, str]) -> None:
        self.context = context
        self.client = PeerClient(context.connector.address, headers, context.pause)

    @abstractmethod
    def list_traces(self, window: Window) -> TraceList: ...

    @abstractmethod
    def fetch(self, source_id: str) -> FetchedDocument | None: ...

    def close(self) -> None:
        self.client.close()

    def pages(self, cursor: dict[str, Any]) -> Iterator[DocumentPage]:
        window = self._window(cursor)
        until = cursor.get("until")
        while True:
            found = self.list_traces(window)
            after = {"until": until, "window": _window_document(window, found.page)}
            if found.page is None:
                after = {"until": format_time(window.end)}
            yield DocumentPage(found.ids, after)
            if found.page is None:
                return
            if found.page == window.page:
                raise DomainError(
                    "The server repeats a page of its list instead of the next one.", status=502
                )
            window = Window(window.start, window.end, found.page)

    def _window(self, cursor: dict[str, Any]) -> Window:
        if isinstance(kept := cursor.get("window"), dict):
            end = parse_time(kept.get("end"))
            if end is not None:
                return Window(parse_time(kept.get("start")), end, kept.get("page"))
        until = parse_time(cursor.get("until"))
        start = read_since(self.context.option("since")) if until is None else until - self.context.overlap
        return Window(start, self.context.now)


def read_since(value: str) -> datetime | None:
    """Raises DomainError."""
    if not value:
        return None
    found = parse_time(value)
    if found is None:
        raise DomainError(f"{value[:40]!r} is no date. Enter one such as 2026-01-31.", pointer="/since")
    return found


def trace_document(
    document: Any, *, last_activity: datetime | None, target: dict[str, Any], steady: Any = None
) -> FetchedDocument:
    """steady: what of the document tells a later state of the trace from an earlier one; without it, all of it. Scores,
    our own ones too, come and go and change no trace."""
    text = json.dumps(
        document if steady is None else steady, sort_keys=True, ensure_ascii=False, default=str
    ).encode("utf-8", "surrogatepass")
    return FetchedDocument(encoded(document), hashlib.sha256(text).hexdigest(), last_activity, target)


def latest(*values: Any) -> datetime | None:
    """The latest of times as an API gives them."""
    return max((found for value in values if (found := parse_time(value)) is not None), default=None)


def _window_document(window: Window, page: Any) -> dict[str, Any]:
    return {
        "start": format_time(window.start) if window.start else None,
        "end": format_time(window.end),
        "page": page,
    }
