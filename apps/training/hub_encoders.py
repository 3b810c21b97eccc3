"""Encoders of the hub, at a commit: hf://ORG/NAME@COMMIT. A worker downloads one into the directory of its run.

Fetched are the safetensors and JSON of sentence-transformers' modules and of the encoder; no code, no pickles.
"""

import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from apps.core.errors import DomainError
from apps.training.hub_models import PREFIX, HubModel, HubModelName, is_model_file
from workers.schema.patterns import TextPattern

_COMMIT = TextPattern(r"[0-9a-f]{40}")
_LISTS = ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json")
_OF_MODULE = ("config.json", "model.safetensors", *_LISTS)
_MODULE = TextPattern(r"[0-9]{1,2}_\w{1,40}")  # the folder of a module, as sentence-transformers names it
_SOURCE = "source.txt"  # written last


def is_hub_encoder(name: str) -> bool:
    return name.startswith(PREFIX)


def check_hub_encoder(name: str) -> str:
    """Raises DomainError for one that is not pinned: another run would begin with other weights."""
    model = HubModelName.parse(name, pointer="/encoder")
    if not _COMMIT.fullmatch(model.revision):
        raise DomainError(
            f"encoder = {name!r} is not pinned to a commit; write {model}@COMMIT, with the 40 characters that the hub "
            "shows for a revision.",
            pointer="/encoder",
        )
    return name


def download_encoder(name: str, folder: Path, *, check: Callable[[], None] = lambda: None) -> Path:
    """Its folder, which is not downloaded again once it is whole. Raises DomainError where it cannot be read."""
    source = folder / _SOURCE
    if source.is_file() and source.read_text(encoding="utf-8") == name:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    model = HubModel(HubModelName.parse(check_hub_encoder(name)), is_wanted=_is_wanted)
    model.download(folder, check=check)
    source.write_text(name, encoding="utf-8")
    return folder


def _is_wanted(name: str) -> bool:
    path = PurePosixPath(name)
    if len(path.parts) == 2:
        return bool(_MODULE.fullmatch(path.parts[0])) and path.name in _OF_MODULE
    return name in _LISTS or is_model_file(name)
