"""The pretrained weights that a recipe names: a folder that the operator lists, or a model of the project.

Stored and shown recipes have names; only the run directory of a child process has paths.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.storage import model_folders
from apps.core.storage.artifacts import stage
from apps.training.hub_encoders import check_hub_encoder, download_encoder, is_hub_encoder
from apps.training.models import RewardModel
from apps.training.selectors import model_named, models_of
from workers.errors import RewardError
from workers.schema.decoder_estimate import DecoderShape
from workers.schema.encoder_folder import TWO_SIDED_TYPES, EncoderDescription, read_encoder_folder
from workers.schema.encoder_recipes import encoder_defaults
from workers.schema.parents import DECODER_KINDS
from workers.schema.picture_encoders import vision_summary
from workers.schema.recipe import GENERATIVE, IMPLICIT

KEYS = {
    "encoder": "embedded",
    "image_encoder": "embedded",
    "decoder": "",
}  # with the value that names nothing
# By objective, the kinds of models that have what a decoder needs, which for these is an LM head.
_DECODERS = {GENERATIVE: (GENERATIVE,), IMPLICIT: (GENERATIVE, "implicit-process")}
_LOOKED_AT, _LISTED = 100, 10  # models of the registry, for an error


def with_names(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A stored recipe. A path of an earlier version becomes a name, if exactly this path is listed now."""
    return dict(recipe) | {
        key: model_folders.name_of(recipe[key]) for key in KEYS if isinstance(recipe.get(key), str)
    }


def check_names(project: Project, recipe: Mapping[str, Any]) -> dict[str, str]:
    """By key the name in the recipe, of a model with its version. Raises DomainError for a name that is not allowed."""
    return {
        key: _PretrainedName(project, recipe, key, name).checked() for key, name in _named(recipe).items()
    }


def with_folders(
    project: Project, recipe: Mapping[str, Any], downloads: Path, *, check: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """The recipe for a child process: paths instead of names. downloads: where an encoder of the hub is put. check:
    called before each of its files. Raises DomainError for unreadable ones."""
    kept = with_names(recipe)
    folders = {
        key: download_encoder(name, downloads / "encoder", check=check)
        if key == "encoder" and is_hub_encoder(name)
        else _PretrainedName(project, kept, key, name).folder()
        for key, name in _named(kept).items()
    }
    return kept | {key: str(folder) for key, folder in folders.items()}


def with_encoder_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a recipe, with defaults that suit the size of an encoder that the operator lists; without them
    where its folder is not on this machine. Raises RewardError for an encoder that is not read."""
    name = values.get("encoder")
    if values.get("backbone", "step-encoder") not in ("step-encoder", "hybrid") or not isinstance(name, str):
        return dict(values)
    encoder = listed_encoder(name)
    return dict(values) if encoder is None else encoder_defaults(encoder, values) | dict(values)


def listed_encoder(name: str) -> EncoderDescription | None:
    """None for another name, and where the folder is not on this machine. Raises RewardError, by that name."""
    if name not in model_folders.listed_names():
        return None
    try:
        folder = model_folders.folder_of(name)
    except DomainError:
        return None  # the run itself says what is wrong with it
    try:
        return read_encoder_folder(folder)
    except RewardError as error:
        message = error.message.replace(f"folder {folder.name} ", f"folder {name!r} ", 1)
        raise RewardError(message, pointer=error.pointer) from None


@dataclass(frozen=True, slots=True)
class ListedFolder:
    """For the form of a run. key: of a recipe, `encoder`, `image_encoder` or `decoder`; empty for none."""

    name: str
    key: str
    summary: str


def listed_folders() -> list[ListedFolder]:
    """What was recognised in each folder that the operator lists."""
    return [_recognised(name) for name in model_folders.listed_names()]


def _recognised(name: str) -> ListedFolder:
    try:
        folder = model_folders.folder_of(name)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (DomainError, OSError, ValueError) as error:
        return ListedFolder(
            name, "", error.message if isinstance(error, DomainError) else "config.json is not JSON."
        )
    if (seen := vision_summary(config)) is not None:
        return ListedFolder(name, "image_encoder", seen)
    is_embedding = (folder / "modules.json").is_file()
    shape = DecoderShape.read(config) if isinstance(config, dict) else None
    if not is_embedding and shape is not None and config.get("model_type") not in TWO_SIDED_TYPES:
        kind = next(iter(config.get("architectures") or ()), config.get("model_type", "unknown"))
        return ListedFolder(name, "decoder", f"{kind}, {shape.weights / 1e9:.1f} B parameters.")
    try:
        return ListedFolder(name, "encoder", read_encoder_folder(folder).summary)
    except RewardError as error:
        return ListedFolder(name, "", error.message.replace(f"folder {folder.name} ", f"folder {name!r} ", 1))


def _named(recipe: Mapping[str, Any]) -> dict[str, str]:
    return {key: recipe[key] for key, none in KEYS.items() if recipe.get(key, none) not in (none, "")}


@dataclass(frozen=True, slots=True)
class _PretrainedName:
    """The value of one key of a recipe."""

    project: Project
    recipe: Mapping[str, Any]
    key: str
    name: str

    def checked(self) -> str:
        if self.name in model_folders.listed_names():
            return self.name
        if self.key == "encoder" and is_hub_encoder(self.name):
            return check_hub_encoder(self.name)
        if not self._is_of_registry:
            raise self._unknown()
        return str(self._model())

    def folder(self) -> Path:
        return stage(self._model().artifact) if self._is_of_registry else model_folders.folder_of(self.name)

    @property
    def _is_of_registry(self) -> bool:
        """`project/name@version` or `name@version`, not a single word or a path."""
        return not self.name.startswith("/") and ("/" in self.name or "@" in self.name)

    def _model(self) -> RewardModel:
        try:
            model = model_named(self.name, project=self.project)
        except DomainError:
            raise self._unknown() from None
        if model.deleted_at is not None or not self._fits(model):
            raise self._unknown()
        return model

    def _fits(self, model: RewardModel) -> bool:
        """Whether the model has the part that the key needs; some objectives need an LM head."""
        backbone = model.manifest.get("backbone")
        if not isinstance(backbone, dict):
            return False
        if self.key in ("encoder", "image_encoder"):
            return backbone.get(self.key) == "own"
        return backbone.get("kind") in _DECODERS.get(
            str(self.recipe.get("objective")), (*DECODER_KINDS, GENERATIVE)
        )

    def _unknown(self) -> DomainError:
        """The same message for every name that is not allowed, so that it reveals nothing."""
        own = [str(model) for model in models_of(self.project)[:_LOOKED_AT] if self._fits(model)][:_LISTED]
        ours = f"models of this project are {', '.join(own)}" if own else "this project has no such model"
        path = (
            " Paths are not accepted: ask the operator to list the folder."
            if self.name.startswith("/")
            else ""
        )
        return DomainError(
            f"{self.key} = {self.name!r} is not an available {self.key}: {model_folders.known_names()}; "
            f"{ours}.{path}",
            pointer=f"/{self.key}",
        )
