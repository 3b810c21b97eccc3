"""A data set of the Hugging Face hub, at the commit that its revision names when the run begins."""

from collections.abc import Iterator
from typing import Any

from apps.connectors.sources.file_store import FORMAT, FileList, FileStore, StoredFile
from apps.connectors.sources.source import DocumentPage, SourceContext, SourceKind, SourceOption
from apps.core.storage.temporary_files import TemporaryFile
from apps.trajectories.hub_datasets import HubDataset, HubName, HubPart


class HubStore(FileStore):
    """Its files are the parts of the splits: each is imported in one transaction."""

    def __init__(self, context: SourceContext) -> None:
        super().__init__(context)
        name = HubName.parse(context.option("dataset"))
        if context.option("revision"):
            name = HubName.parse(f"{name.repository}@{context.option('revision')}")
        context.pause(0)
        self._dataset = HubDataset(
            name,
            token=context.secret or False,
            config=context.option("config"),
            split=context.option("split"),
        )
        self._parts: dict[str, HubPart] = {}

    def close(self) -> None:
        pass

    def list_files(self, page: str | None) -> FileList:
        root = self._dataset.name.repository
        self._parts = {f"{root}/{part.name}": part for part in self._dataset.parts()}
        return FileList([StoredFile(name, self._dataset.commit, 0) for name in self._parts])

    def download(self, file: StoredFile, out: TemporaryFile) -> None:
        self._dataset.write(self._parts[file.name], out, pause=lambda: self.context.pause(0))

    def pages(self, cursor: dict[str, Any]) -> Iterator[DocumentPage]:
        for page in super().pages(cursor):
            yield DocumentPage(page.ids, page.cursor, page.versions, total=len(page.ids))


KIND = SourceKind(
    name="huggingface",
    title="Hugging Face dataset",
    lead="Rows of a dataset on the Hugging Face hub, read by the library datasets.",
    open=HubStore,
    address="",
    key_label="Token",
    key_help="For a private or gated dataset; a token that may read it.",
    options=(
        SourceOption("dataset", "Dataset", "ORG/NAME, or hf://datasets/ORG/NAME@REVISION.", required=True),
        SourceOption(
            "revision", "Revision", "Branch, tag or commit; main if empty and the dataset names none."
        ),
        SourceOption("config", "Subset", "Name of a subset (config); empty for all of them."),
        SourceOption("split", "Split", "Such as train; empty for all of them."),
        FORMAT,
    ),
    has_traces=False,
    environment={"secret": ("HF_TOKEN",)},
)
