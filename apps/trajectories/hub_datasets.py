"""Data sets of the Hugging Face hub, read by `datasets` with their revision pinned: hf://datasets/ORG/NAME@REVISION.

A part of a split is streamed into a file of Arrow, which imports read like any other. No code of the data set runs,
and its card may name only files of its own repository: others would be fetched from anywhere, or from this machine.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from apps.core.errors import DomainError
from workers.schema.patterns import TextPattern

PREFIX = "hf://datasets/"
_NAME = TextPattern(r"[\w.-]{1,96}/[\w.-]{1,96}")
_REVISION = TextPattern(r"[\w./-]{1,100}")
_ROWS = 64  # in a batch of Arrow
_OVERRIDES = ".huggingface.yaml"  # `datasets` reads files from where it says, before they can be looked at
_UNREACHABLE = {  # errors of the libraries below `datasets`, by name: which library it is differs between versions
    *("ConnectionError", "ConnectError", "TimeoutException", "NetworkError", "OSError", "HfHubHTTPError"),
    *("OfflineModeIsEnabled", "LocalEntryNotFoundError"),
}
_MISSING = "Reading the hub needs `datasets`: `pip install datasets` where the import runs."


@dataclass(frozen=True, slots=True)
class HubName:
    """hf://datasets/ORG/NAME[@REVISION]. revision: a branch, tag or commit."""

    repository: str
    revision: str = "main"

    @classmethod
    def parse(cls, text: str) -> "HubName":
        """With or without the prefix. Raises DomainError."""
        repository, _, revision = text.removeprefix(PREFIX).partition("@")
        revision = revision or "main"
        if not _NAME.fullmatch(repository) or not _REVISION.fullmatch(revision) or ".." in text:
            raise DomainError(
                f"{text[:120]!r} names no data set of the hub. Write {PREFIX}ORG/NAME or {PREFIX}ORG/NAME@REVISION."
            )
        return cls(repository, revision)


@dataclass(frozen=True, slots=True)
class HubPart:
    """A shard of a split. name: unique within the revision."""

    name: str
    config: str
    split: str
    index: int
    count: int


class HubDataset:
    """A data set at one commit. config, split: empty for all of them. Raises DomainError where it cannot be read."""

    def __init__(
        self, name: HubName, *, token: str | Literal[False] = "", config: str = "", split: str = ""
    ) -> None:
        """token: empty for that of the machine, which is for commands of the operator only; False for none."""
        self._datasets, self._hub = _libraries()
        self.name, self._token = name, False if token is False else token or None
        self._config, self._split = config, split
        self.commit = self._pin()

    def parts(self) -> Iterator[HubPart]:
        for config in [self._config] if self._config else self._configs():
            for split in self._splits(self._builder(config), config):
                count = self._shards(config, split)
                for index in range(count):
                    yield HubPart(f"{config}/{split}/{index + 1} of {count}", config, split, index, count)

    def _shards(self, config: str, split: str) -> int:
        return int(self._call(lambda: self._stream(config, split).num_shards))

    def write(self, part: HubPart, out: Any, pause: Callable[[], object] = lambda: None) -> int:
        """The rows of a part as a stream of Arrow, and how many there are. pause: called now and then."""
        import pyarrow

        shard = self._call(lambda: self._stream(part.config, part.split).shard(part.count, part.index))
        tables = iter(shard.with_format("arrow").iter(batch_size=_ROWS))
        first = self._call(lambda: next(tables, None))
        if first is None:
            return 0
        rows = first.num_rows
        with pyarrow.ipc.new_stream(out, first.schema) as writer:
            writer.write_table(first)
            while (table := self._call(lambda: next(tables, None))) is not None:
                pause()
                writer.write_table(table.cast(first.schema))
                rows += table.num_rows
        return rows

    def _pin(self) -> str:
        """The commit of the revision, once the files that the card names are of the repository."""
        api = self._hub.HfApi(token=self._token)
        found = self._call(lambda: api.dataset_info(self.name.repository, revision=self.name.revision))
        if any(each.rfilename == _OVERRIDES for each in found.siblings or ()):
            raise DomainError(
                f"{self.name.repository} has a file {_OVERRIDES}, which may name files outside of the repository. "
                "Download the data set and import its files."
            )
        card = found.card_data.to_dict() if found.card_data is not None else {}
        if any(_leads_out(place) for place in _texts(card.get("configs"))):
            raise DomainError(
                f"{self.name.repository} names files outside of its repository, which are not read. Download them and "
                "import the files."
            )
        return str(found.sha)

    def _configs(self) -> list[str]:
        names: list[str] = self._call(
            lambda: self._datasets.get_dataset_config_names(
                self.name.repository, revision=self.commit, token=self._token
            )
        )
        return names

    def _splits(self, builder: Any, config: str) -> list[str]:
        names = [str(name) for name in (builder.config.data_files or builder.info.splits or {})]
        if self._split and self._split not in names:
            raise DomainError(
                f"{self.name.repository} ({config}) has no split {self._split!r}; it has {', '.join(names)}.",
                pointer="/options/split",
            )
        return [self._split] if self._split else names

    def _builder(self, config: str) -> Any:
        builder = self._call(
            lambda: self._datasets.load_dataset_builder(
                self.name.repository, config, revision=self.commit, token=self._token
            )
        )
        own = f"hf://datasets/{self.name.repository}@{self.commit}/"
        for files in (builder.config.data_files or {}).values():
            if any(not str(file).startswith(own) for file in files):
                raise DomainError(f"{self.name.repository} names files outside of its repository.")
        return builder

    def _stream(self, config: str, split: str) -> Any:
        found = self._datasets.load_dataset(
            self.name.repository,
            config,
            split=split,
            revision=self.commit,
            token=self._token,
            streaming=True,
        )
        return found.decode(False)

    def _call(self, function: Any) -> Any:
        """What a call of the libraries gives. Raises DomainError in words."""
        try:
            return function()
        except DomainError:
            raise
        except Exception as error:
            raise DomainError(self._reason(error), status=502) from error

    def _reason(self, error: Exception) -> str:
        place = f"{PREFIX}{self.name.repository}@{self.name.revision}"
        first = " ".join(str(error).split())[:300]
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & {"RepositoryNotFoundError", "DatasetNotFoundError", "GatedRepoError"}:
            return f"{place} is not on the hub, or needs a token (HF_TOKEN, or the key of the connector)."
        if "RevisionNotFoundError" in names:
            return f"{self.name.repository} has no revision {self.name.revision!r} on the hub."
        if names & _UNREACHABLE and "FileNotFoundError" not in names:
            host = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
            return (
                f"{place} cannot be read: the hub at {host} is not reachable ({first or type(error).__name__}). Check "
                "the network of the machine, or download the data set elsewhere and import its files."
            )
        return f"{place} cannot be read by `datasets`: {type(error).__name__}: {first}"


def _libraries() -> tuple[Any, Any]:
    try:
        import datasets
        import huggingface_hub
    except ImportError:
        raise DomainError(_MISSING) from None
    return datasets, huggingface_hub


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _leads_out(place: str) -> bool:
    return "://" in place or "::" in place or place.startswith(("/", "~")) or ".." in place.split("/")
