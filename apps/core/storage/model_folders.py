"""Folders of pretrained models: those of TOUCHSTONE_MODEL_DIRS, each under the name that the operator gave it.

Pages, recipes and the API name one by that name and never by a path, so that no one can have a file read, or learn
whether there is one, that the operator did not list. Paths are made of names only where a model is about to be read.
"""

import os
from pathlib import Path

from django.conf import settings

from apps.core.errors import DomainError
from apps.core.storage.artifacts import store_folder

SETTING = "TOUCHSTONE_MODEL_DIRS"
NEEDED = ("config.json", "tokenizer.json")
WEIGHTS = ".safetensors"
_INSIDE = ("0_Transformer",)  # where earlier versions of sentence-transformers keep the encoder
_MOST_FILES = 1000  # of a folder: one that holds more is not the folder of one model


def listed_names() -> list[str]:
    return sorted(settings.MODEL_DIRS)


def known_names() -> str:
    """For errors and help: what may be named."""
    return f"{SETTING} lists {', '.join(listed_names()) or 'none; the operator can add some as NAME=/PATH'}"


def check_listed(name: str, *, pointer: str) -> str:
    """`name`, which someone gave. Raises DomainError for one that is not listed, whatever it may be besides."""
    if name not in settings.MODEL_DIRS:
        raise DomainError(f"{name!r} is not the name of a model folder; {known_names()}.", pointer=pointer)
    return name


def name_of(stored: str) -> str:
    """The name of a folder that is stored by name, or as before by its path where exactly that path is listed."""
    return next((name for name, path in settings.MODEL_DIRS.items() if stored == path), stored)


def folder_of(stored: str) -> Path:
    """The folder of a name, or of a path stored before names were, to be read now. Raises DomainError."""
    name = name_of(stored)
    if name not in settings.MODEL_DIRS:
        raise DomainError(
            f"{stored!r} is not the name of a model folder; {known_names()}. A path is not taken any more: have the "
            f"operator add it to {SETTING}, and name it by its name there."
        )
    return _checked(name, Path(settings.MODEL_DIRS[name]).resolve())


def tokenizer_folder(name: str) -> Path:
    """The folder of a name, of which only the tokenizer is read. Raises DomainError for one that is not listed."""
    check_listed(name, pointer="")
    return Path(settings.MODEL_DIRS[name]).resolve()


def without_paths(text: str) -> str:
    """A text of a child process with the names of listed folders instead of their paths, and no path of ours."""
    for name, path in settings.MODEL_DIRS.items():
        for written in (str(Path(path).resolve()), path):
            text = text.replace(written, name)
    return text.replace(f"{Path(settings.HOME)}{os.sep}", "")


def _checked(name: str, folder: Path) -> Path:
    if any(folder.is_relative_to(each) for each in _own_folders()):
        raise _unusable(name, "lies below the home or the artifact store, where models of projects are")
    if not folder.is_dir():
        raise _unusable(name, "is not on this machine")
    files = sorted(folder.rglob("*"))
    if len(files) > _MOST_FILES:
        raise _unusable(name, f"holds over {_MOST_FILES} files, so it is not the folder of one model")
    if any(path.is_symlink() and not path.resolve().is_relative_to(folder) for path in files):
        raise _unusable(name, "holds links that lead out of it; copy the files themselves into it")
    missing = [
        file
        for file in NEEDED
        if not any((folder / each).is_file() for each in (file, *(f"{inside}/{file}" for inside in _INSIDE)))
    ]
    if not any(path.suffix == WEIGHTS for path in files):
        missing.append(f"*{WEIGHTS}")
    if missing:
        raise _unusable(name, f"has no {', '.join(missing)}; save_pretrained writes what is needed")
    return folder


def _own_folders() -> list[Path]:
    found = [Path(settings.HOME).resolve()]
    if (store := store_folder()) is not None:
        found.append(store.resolve())
    return found


def _unusable(name: str, why: str) -> DomainError:
    return DomainError(f"The model folder {name!r} of {SETTING} {why}. Have the operator correct it.")
