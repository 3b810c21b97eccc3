"""Stores of files: every pull lists them all, and fetches those that are new or changed."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.connectors.sources.source import DocumentPage, FetchedDocument, SourceContext, SourceOption
from apps.core.storage.temporary_files import TemporaryFile
from apps.trajectories import formats

_IN_MEMORY = 8 * 2**20
FORMAT = SourceOption(
    "format",
    "Format",
    "How the files are read; auto finds it for each file.",
    default=formats.AUTO,
    choices=tuple((name, name) for name in (formats.AUTO, *formats.FORMATS)),
)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """version: what changes when the file does, such as its ETag."""

    name: str
    version: str
    size: int
    modified: datetime | None = None


@dataclass(frozen=True, slots=True)
class FileList:
    """page: of the rest; None: this was all."""

    files: list[StoredFile]
    page: str | None = None


class FileStore(ABC):
    """Subclasses list files, and write one to a temporary file. The cursor is {"page"} within a pull, and empty after
    it: the next pull lists from the beginning, since files may change."""

    lists_everything = True

    def __init__(self, context: SourceContext) -> None:
        self.context = context
        self.format = context.option("format") or formats.AUTO
        self._listed: dict[str, StoredFile] = {}

    @abstractmethod
    def list_files(self, page: str | None) -> FileList: ...

    @abstractmethod
    def download(self, file: StoredFile, out: TemporaryFile) -> None:
        """Raises DocumentProblem for a file that cannot be read."""
        ...

    @abstractmethod
    def close(self) -> None: ...

    def pages(self, cursor: dict[str, Any]) -> Iterator[DocumentPage]:
        page = cursor.get("page")
        while True:
            found = self.list_files(page)
            self._listed = {file.name: file for file in found.files}
            versions = {file.name: file.version for file in found.files}
            after = {} if found.page is None else {"page": found.page}
            yield DocumentPage(list(versions), after, versions)
            if found.page is None:
                return
            page = found.page

    def fetch(self, source_id: str) -> FetchedDocument | None:
        file = self._listed[source_id]
        digest = hashlib.sha256(file.version.encode()).hexdigest()
        target = {"version": file.version}
        if not self.context.is_quiet(file.modified):
            return FetchedDocument(b"", digest, file.modified, target)
        out = TemporaryFile(self.context.connector.project_id, _IN_MEMORY)
        try:
            self.download(file, out)
            out.seek(0)
        except BaseException:
            out.close()
            raise
        return FetchedDocument(out, digest, file.modified, target)  # type: ignore[arg-type]
