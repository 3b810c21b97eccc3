"""The pretrained weights that a recipe names: a folder that the operator lists, or a model of the project.

Stored and shown recipes have names; only the run directory of a child process has paths.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.storage import model_folders
from apps.core.storage.artifacts import stage
from apps.training.models import RewardModel
from apps.training.selectors import model_named, models_of
from workers.schema.recipe import GENERATIVE

KEYS = {"encoder": "embedded", "decoder": ""}  # with the value that names nothing
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


def with_folders(project: Project, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe for a child process: paths instead of names. Raises DomainError for unreadable ones."""
    kept = with_names(recipe)
    return kept | {
        key: str(_PretrainedName(project, kept, key, name).folder()) for key, name in _named(kept).items()
    }


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
        """Whether the model has the part that the key needs; a generative recipe needs a generative model."""
        backbone = model.manifest.get("backbone")
        if not isinstance(backbone, dict):
            return False
        if self.key == "encoder":
            return backbone.get("encoder") == "own"
        kinds = (GENERATIVE,) if self.recipe.get("objective") == GENERATIVE else ("decoder", GENERATIVE)
        return backbone.get("kind") in kinds

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
