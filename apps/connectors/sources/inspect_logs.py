"""Logs of Inspect: those that an `inspect view` server shows, or a folder of the workers that the operator listed."""

from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings

from apps.connectors.sources.file_store import FileList, FileStore, StoredFile
from apps.connectors.sources.peer_client import PeerClient, objects_in, parse_time, path_part
from apps.connectors.sources.source import DocumentProblem, Source, SourceContext, SourceKind, SourceOption
from apps.core.errors import DomainError
from apps.core.storage.temporary_files import TemporaryFile

SETTING = "TOUCHSTONE_IMPORT_DIRS"
_PART = 8 * 2**20
_MOST_FILES = 100_000
_ENDINGS = (".eval", ".json")


class InspectView(FileStore):
    """By the API that its pages call."""

    def __init__(self, context: SourceContext) -> None:
        super().__init__(context)
        self.format = "inspect"
        headers = {"Authorization": context.secret} if context.secret else {}
        self.client = PeerClient(context.connector.address, headers, context.pause)

    def close(self) -> None:
        self.client.close()

    def list_files(self, page: str | None) -> FileList:
        found = objects_in(self.client.get("/api/log-files"), "files")
        return FileList(
            [
                StoredFile(str(each["name"]), str(each.get("mtime")), 0, parse_time(each.get("mtime")))
                for each in found
                if str(each.get("name", "")).endswith(_ENDINGS)
            ]
        )

    def download(self, file: StoredFile, out: TemporaryFile) -> None:
        name = path_part(file.name)
        size = self.client.get(f"/api/log-size/{name}")
        if not isinstance(size, int):
            raise DocumentProblem("The server does not say how long the log is.")
        if size > settings.MAX_UNPACKED_BYTES:
            most = settings.MAX_UNPACKED_BYTES // 2**20
            raise DocumentProblem(
                f"The log has more than {most} MB; raise TOUCHSTONE_MAX_UNPACKED_MB to read it."
            )
        part = min(_PART, settings.MAX_RECORD_BYTES)
        for start in range(0, size, part):
            end = min(start + part, size)
            body = self.client.call(
                "GET", f"/api/log-bytes/{name}", query={"start": start, "end": end - 1}
            ).body
            if len(body) != end - start:
                raise DocumentProblem(
                    "The server sent another number of bytes of the log than was asked for."
                )
            out.write(body)


class InspectFolder(FileStore):
    """Of the machine of the worker. Links that lead out of the folder are not followed."""

    def __init__(self, context: SourceContext, folder: Path) -> None:
        super().__init__(context)
        self.format, self._folder = "inspect", folder

    def close(self) -> None:
        pass

    def list_files(self, page: str | None) -> FileList:
        if not self._folder.is_dir():
            raise DomainError(
                f"The folder {self.context.option('folder')} of {SETTING} is not on the machine of the worker."
            )
        files: list[StoredFile] = []
        for path in sorted(self._folder.rglob("*")):
            if path.suffix in _ENDINGS and self._is_inside(path):
                about = path.stat()
                modified = datetime.fromtimestamp(about.st_mtime, UTC)
                name = path.relative_to(self._folder).as_posix()
                files.append(
                    StoredFile(name, f"{about.st_mtime_ns}-{about.st_size}", about.st_size, modified)
                )
            if len(files) > _MOST_FILES:
                raise DomainError(
                    f"The folder has over {_MOST_FILES:,} logs. List a folder below it instead."
                )
        return FileList(files)

    def download(self, file: StoredFile, out: TemporaryFile) -> None:
        path = self._folder / file.name
        if not self._is_inside(path):
            raise DocumentProblem("The log is no longer a file in the folder.")
        try:
            with path.open("rb") as stream:
                while piece := stream.read(_PART):
                    out.write(piece)
        except OSError as error:
            raise DocumentProblem(f"The log cannot be read: {error.strerror}.") from None

    def _is_inside(self, path: Path) -> bool:
        return path.is_file() and path.resolve().is_relative_to(self._folder)


def open_inspect(context: SourceContext) -> Source:
    name, address = context.option("folder"), context.connector.address
    if bool(name) == bool(address):
        raise DomainError("Enter either the address of a server of inspect view, or the name of a folder.")
    if address:
        return InspectView(context)
    folders = settings.IMPORT_DIRS
    if name not in folders:
        known = ", ".join(sorted(folders)) or "none; the operator can add some as NAME=/PATH"
        raise DomainError(
            f"{name!r} is not the name of a folder. {SETTING} lists {known}.", pointer="/options/folder"
        )
    return InspectFolder(context, Path(folders[name]).resolve())


KIND = SourceKind(
    name="inspect",
    title="Inspect logs",
    lead="Evaluation logs of Inspect (.eval and .json), from a server of inspect view or a folder of the workers.",
    open=open_inspect,
    address_help="Address of inspect view, such as https://logs.example.org. Leave it empty for a folder.",
    address_required=False,
    key_label="Authorization",
    key_help="Value of --authorization of inspect view, if it was started with one.",
    options=(
        SourceOption(
            "folder",
            "Folder",
            f"Name of a folder that the operator listed in {SETTING}, instead of an address.",
        ),
    ),
    has_traces=False,
    environment={},
)
