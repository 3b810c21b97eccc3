"""Models of the Hugging Face hub, their revision pinned to a commit: hf://ORG/NAME@REVISION.

Only files that hold weights as safetensors, configurations, tokenizers and the card are fetched: no code, no pickles.
"""

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from django.conf import settings

from apps.core.errors import DomainError
from workers.schema.patterns import TextPattern

PREFIX = "hf://"
T = TypeVar("T")
_NAME = TextPattern(r"[\w.-]{1,96}/[\w.-]{1,96}")
_REVISION = TextPattern(r"[\w./-]{1,100}")
_WEIGHTS = ".safetensors"
MOST_TEXT, MOST_TOKENIZER = (
    16 * 2**20,
    128 * 2**20,
)  # bytes of a file that holds no weights; of tokenizer.json
_FILES = {
    *("config.json", "README.md", "model.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("chat_template.jinja", "chat_template.json"),
}
_UNREACHABLE = {  # errors of the libraries below huggingface_hub, by name
    *("ConnectionError", "ConnectError", "TimeoutException", "NetworkError", "OSError", "HfHubHTTPError"),
    *("OfflineModeIsEnabled", "LocalEntryNotFoundError"),
}


@dataclass(frozen=True, slots=True)
class HubModelName:
    """hf://ORG/NAME[@REVISION]. revision: a branch, tag or commit."""

    repository: str
    revision: str = "main"

    @classmethod
    def parse(cls, text: str, *, pointer: str | None = None) -> "HubModelName":
        """Raises DomainError."""
        repository, _, revision = text.removeprefix(PREFIX).partition("@")
        revision = revision or "main"
        if not _NAME.fullmatch(repository) or not _REVISION.fullmatch(revision) or ".." in text:
            raise DomainError(
                f"{text[:120]!r} names no model of the hub. Write {PREFIX}ORG/NAME or {PREFIX}ORG/NAME@REVISION.",
                pointer=pointer,
            )
        return cls(repository, revision)

    def __str__(self) -> str:
        return f"{PREFIX}{self.repository}"


class HubModel:
    """A model at one commit. Raises DomainError where it cannot be read.

    files: names and sizes in bytes of what is fetched.
    """

    def __init__(
        self,
        name: HubModelName,
        *,
        token: str | Literal[False] = False,
        is_wanted: Callable[[str], bool] | None = None,
    ) -> None:
        """token: empty for that of the machine, which is for commands of the operator only; False for none. is_wanted:
        by the name of a file, whether it is fetched; by default, those of a reward model."""
        import huggingface_hub

        self._hub = huggingface_hub
        self.name, self._token = name, False if token is False else token or None
        api = huggingface_hub.HfApi(token=self._token)
        self._endpoint = api.endpoint
        info = self._call(
            lambda: api.model_info(name.repository, revision=name.revision, files_metadata=True)
        )
        self.commit = str(info.sha)
        self.files = {
            str(each.rfilename): int(each.size or 0)
            for each in info.siblings or ()
            if (is_wanted or is_model_file)(str(each.rfilename))
        }
        if not any(file.endswith(_WEIGHTS) for file in self.files):
            raise DomainError(
                f"{name} has no {_WEIGHTS} files at {self.commit[:12]}; only these are fetched. Another revision may "
                "have them, or convert the model on a machine where you trust its files."
            )
        self._require_sizes()

    @property
    def bytes(self) -> int:
        return sum(self.files.values())

    def download(self, folder: Path, *, check: Callable[[], None] = lambda: None) -> None:
        """Into a folder, file by file. check: called before each. Raises DomainError, where the disk has no room for
        all of them before the first."""
        there = next(place for place in (folder, *folder.parents) if place.exists())
        free = shutil.disk_usage(there).free
        if self.bytes > free:
            raise DomainError(
                f"{self.name} has {self.bytes / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free on the disk that it is "
                "downloaded to. Free some space.",
                status=507,
            )
        for file in sorted(self.files, key=lambda file: self.files[file]):
            check()
            self._call(
                lambda file=file: self._hub.hf_hub_download(  # type: ignore[misc]
                    self.name.repository,
                    file,
                    revision=self.commit,
                    token=self._token,
                    endpoint=self._endpoint,
                    local_dir=str(folder),
                )
            )

    def _require_sizes(self) -> None:
        """Raises DomainError."""
        if self.bytes > settings.MAX_HUB_BYTES:
            raise DomainError(
                f"{self.name} has {self.bytes / 1e9:.1f} GB, and at most {settings.MAX_HUB_BYTES / 1e9:.0f} GB are "
                "downloaded from the hub. Name a smaller model, or have the operator raise TOUCHSTONE_MAX_HUB_GB."
            )
        for file, size in self.files.items():
            most = MOST_TOKENIZER if PurePosixPath(file).name == "tokenizer.json" else MOST_TEXT
            if not file.endswith(_WEIGHTS) and size > most:
                raise DomainError(
                    f"{file} of {self.name} has {size / 1e6:.0f} MB; a file without weights has at most "
                    f"{most // 2**20} MB."
                )

    def _call(self, function: Callable[[], T]) -> T:
        """What a call of the library gives. Raises DomainError in words."""
        try:
            return function()
        except Exception as error:
            raise DomainError(self._reason(error), status=502) from error

    def _reason(self, error: Exception) -> str:
        place = f"{self.name}@{self.name.revision}"
        first = " ".join(str(error).split())[:300]
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"{place} cannot be downloaded: the disk of this machine is full. Free some space."
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & {"RepositoryNotFoundError", "GatedRepoError"}:
            return (
                f"{place} is not on the hub, or needs a token: set HF_TOKEN, and import it with the command "
                "import_model."
            )
        if "RevisionNotFoundError" in names:
            return f"{self.name} has no revision {self.name.revision!r} on the hub."
        is_absent = "FileNotFoundError" in names and "LocalEntryNotFoundError" not in names
        if names & _UNREACHABLE and not is_absent:
            host = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
            return (
                f"{place} cannot be read: the hub at {host} is not reachable ({first or type(error).__name__}). Check "
                "the network of the machine, or download the model elsewhere and import its folder."
            )
        return f"{place} cannot be read from the hub: {type(error).__name__}: {first}"


def is_model_file(name: str) -> bool:
    """Of the top folder only: others hold the same weights in other forms."""
    path: Any = PurePosixPath(name)
    return len(path.parts) == 1 and (name in _FILES or path.suffix == _WEIGHTS)
