"""Lists of the API: lazy, iterated as often as wanted, and taken as a list, a data frame, a data set or a file."""

import html
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from touchstone_client.api_objects import ObjectReader
from touchstone_client.errors import BadReply
from touchstone_client.progress import Progress, progress_bar
from touchstone_client.tables import row_of, to_data_frame, to_data_set, to_json
from touchstone_client.transport import AsyncCaller, Caller

if TYPE_CHECKING:
    import datasets  # type: ignore[import-untyped,import-not-found,unused-ignore]
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

T = TypeVar("T")
PAGE_SIZE = 100
_IN_NOTEBOOK = 10  # entries shown


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """Answers `{items, next}`, one after the other."""

    path: str
    read: Callable[[Any], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    page_size: int | None = None

    def page_params(self, cursor: str | None) -> dict[str, Any]:
        return query_params({**self.params, "limit": self.page_size or PAGE_SIZE, "cursor": cursor})

    def read_page(self, reply: Any) -> tuple[list[T], str | None]:
        try:
            entries, following = reply["items"], reply["next"]
        except (KeyError, TypeError) as error:
            raise BadReply(f"The reply does not have the shape of a page ({error!r}).") from error
        return [self.read(entry) for entry in entries], following


@dataclass(frozen=True, slots=True)
class Lines(Generic[T]):
    """An answer of JSON lines, read as it arrives."""

    path: str
    read: Callable[[Any], T]
    params: Mapping[str, Any] = field(default_factory=dict)

    def line_params(self) -> dict[str, Any]:
        return query_params(self.params)

    def read_line(self, line: bytes) -> T:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadReply(f"A line of the reply is not JSON: {line[:200]!r}") from error
        return self.read(found)


def query_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as they stand in an address; those that are None are left out."""
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in params.items()
        if value is not None
    }


class Listing(Generic[T]):
    """Entries of a list, requested as they are iterated; each iteration begins again with the first.

    The number of requests is that of the pages that are looked at. In a notebook its first entries are shown.
    """

    def __init__(self, caller: Caller, source: Pages[T] | Lines[T]) -> None:
        self._caller, self._source = caller, source

    def __iter__(self) -> Iterator[T]:
        source = self._source
        if isinstance(source, Lines):
            for line in self._caller.lines(source.path, source.line_params()):
                yield source.read_line(line)
            return
        cursor = None
        while True:
            reply = self._caller.call("GET", source.path, params=source.page_params(cursor))
            entries, cursor = source.read_page(reply)
            yield from entries
            if cursor is None:
                return

    def take(self, count: int) -> list[T]:
        """The first entries."""
        return list(islice(self, count))

    def to_list(self, *, progress: Progress = False) -> list[T]:
        with progress_bar(progress, _label(self._source), unit=" entries") as show:
            entries: list[T] = []
            for entry in self:
                entries.append(entry)
                show(len(entries), None)
            return entries

    def to_pandas(self, *, progress: Progress = False) -> "pandas.DataFrame":
        """A row for each entry; fields of inner objects are columns such as `outcome.reward`. Needs pandas."""
        return to_data_frame(self.to_list(progress=progress), _columns(self._source))

    def to_dataset(self, *, progress: Progress = False) -> "datasets.Dataset":
        """As `to_pandas`. Columns whose values have no common type are JSON text. Needs `datasets`."""
        return to_data_set(self.to_list(progress=progress))

    def save(self, path: str | os.PathLike[str], *, progress: Progress = False) -> int:
        """Write the entries to a file as JSON lines, without keeping them in memory; returns their number.

        The file is replaced when all of them are there.
        """
        with _LineFile(path, progress, _label(self._source)) as file:
            for line in self.json_lines():
                file.write(line)
        return file.count

    def download(self, path: str | os.PathLike[str]) -> int:
        """Write the answer to a file as it is, a zip file too; returns the number of bytes. Not of pages."""
        with _LineFile(path, False, "") as file:
            for part in self._caller.parts(*_streamed(self._source)):
                file.write(part)
        return file.size

    def parts(self) -> Iterator[bytes]:
        """The bytes of the answer as they arrive, those of a zip file too. Not of pages."""
        return self._caller.parts(*_streamed(self._source))

    def json_lines(self) -> Iterator[bytes]:
        """The entries as lines of JSON, those of streamed answers as the server wrote them."""
        source = self._source
        if isinstance(source, Lines):
            yield from self._caller.lines(source.path, source.line_params())
        else:
            yield from (to_json(entry).encode() + b"\n" for entry in self)

    def __repr__(self) -> str:
        return _described(self)

    def _repr_html_(self) -> str:
        first = self.take(_IN_NOTEBOOK + 1)
        return _html_table([row_of(entry) for entry in first[:_IN_NOTEBOOK]], more=len(first) > _IN_NOTEBOOK)


class AsyncListing(Generic[T]):
    """As Listing, for `async for`; what takes all entries is awaited."""

    def __init__(self, caller: AsyncCaller, source: Pages[T] | Lines[T]) -> None:
        self._caller, self._source = caller, source

    async def __aiter__(self) -> AsyncIterator[T]:
        source = self._source
        if isinstance(source, Lines):
            async for line in self._caller.lines(source.path, source.line_params()):
                yield source.read_line(line)
            return
        cursor = None
        while True:
            reply = await self._caller.call("GET", source.path, params=source.page_params(cursor))
            entries, cursor = source.read_page(reply)
            for entry in entries:
                yield entry
            if cursor is None:
                return

    async def take(self, count: int) -> list[T]:
        entries: list[T] = []
        if count > 0:
            async for entry in self:
                entries.append(entry)
                if len(entries) == count:
                    break
        return entries

    async def to_list(self, *, progress: Progress = False) -> list[T]:
        with progress_bar(progress, _label(self._source), unit=" entries") as show:
            entries: list[T] = []
            async for entry in self:
                entries.append(entry)
                show(len(entries), None)
            return entries

    async def to_pandas(self, *, progress: Progress = False) -> "pandas.DataFrame":
        """As `Listing.to_pandas`."""
        return to_data_frame(await self.to_list(progress=progress), _columns(self._source))

    async def to_dataset(self, *, progress: Progress = False) -> "datasets.Dataset":
        """As `Listing.to_dataset`."""
        return to_data_set(await self.to_list(progress=progress))

    async def save(self, path: str | os.PathLike[str], *, progress: Progress = False) -> int:
        """As `Listing.save`."""
        with _LineFile(path, progress, _label(self._source)) as file:
            async for line in self.json_lines():
                file.write(line)
        return file.count

    async def download(self, path: str | os.PathLike[str]) -> int:
        """As `Listing.download`."""
        with _LineFile(path, False, "") as file:
            async for part in self._caller.parts(*_streamed(self._source)):
                file.write(part)
        return file.size

    async def json_lines(self) -> AsyncIterator[bytes]:
        """As `Listing.json_lines`."""
        source = self._source
        if isinstance(source, Lines):
            async for line in self._caller.lines(source.path, source.line_params()):
                yield line
        else:
            async for entry in self:
                yield to_json(entry).encode() + b"\n"

    def __repr__(self) -> str:
        return _described(self)


class _LineFile(AbstractContextManager["_LineFile"]):
    """A file of lines, which replaces the one at its path when the block ends well."""

    def __init__(self, path: str | os.PathLike[str], progress: Progress, label: str) -> None:
        self._target = Path(path)
        self._partial = self._target.with_name(f".{self._target.name}.partial")
        self._bar = progress_bar(progress, label, unit=" lines")
        self.count = self.size = 0

    def __enter__(self) -> Self:
        self._show = self._bar.__enter__()
        self._file = self._partial.open("wb")
        return self

    def write(self, line: bytes) -> None:
        self._file.write(line)
        self.count += 1
        self.size += len(line)
        self._show(self.count, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if kind is None:
            self._partial.replace(self._target)
        else:
            self._partial.unlink(missing_ok=True)
        self._bar.__exit__(kind, error, trace)


def _streamed(source: Pages[Any] | Lines[Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(source, Pages):
        raise TypeError("A list of pages has no file to download; use save().")
    return source.path, source.line_params()


def _columns(source: Pages[Any] | Lines[Any]) -> tuple[str, ...]:
    return source.read.kind.columns() if isinstance(source.read, ObjectReader) else ()


def _label(source: Pages[Any] | Lines[Any]) -> str:
    return source.path.rpartition("/")[2]


def _described(listing: Listing[Any] | AsyncListing[Any]) -> str:
    return (
        f"<{type(listing).__name__} of {listing._source.path}; iterate it, or take to_list() or to_pandas()>"
    )


def _html_table(rows: list[dict[str, Any]], *, more: bool) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(row.get(name)))}</td>" for name in names) + "</tr>"
        for row in rows
    )
    note = f"<p>The first {len(rows)} entries.</p>" if more else f"<p>{len(rows)} entries.</p>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
