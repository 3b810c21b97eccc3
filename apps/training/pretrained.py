"""What a recipe begins with: a folder of the operator's list, or a model of the project's own registry, by its name.

The names stay in the recipe wherever it is kept or shown; paths stand in the run directory alone, for the child.
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

KEYS = {"encoder": "embedded", "decoder": ""}  # and what stands there where nothing is named
_LOOKED_AT, _LISTED = 100, 10  # models of the registry, for an error


def with_names(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe that was kept: a path of before, where exactly that is listed now, becomes its name."""
    return dict(recipe) | {
        key: model_folders.name_of(recipe[key]) for key in KEYS if isinstance(recipe.get(key), str)
    }


def check_names(project: Project, recipe: Mapping[str, Any]) -> dict[str, str]:
    """By key what the recipe names, a model with its version. Raises DomainError for what may not be named."""
    return {key: _Place(project, recipe, key, name).checked() for key, name in _named(recipe).items()}


def with_folders(project: Project, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe as a child reads it: paths for names. Raises DomainError for what cannot be read."""
    kept = with_names(recipe)
    return kept | {key: str(_Place(project, kept, key, name).folder()) for key, name in _named(kept).items()}


def _named(recipe: Mapping[str, Any]) -> dict[str, str]:
    return {key: recipe[key] for key, none in KEYS.items() if recipe.get(key, none) not in (none, "")}


@dataclass(frozen=True, slots=True)
class _Place:
    """One key of a recipe, and what it names."""

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
        """`project/name@version` or `name@version`; a bare word, and a path, is none."""
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
        """Whether it has what is begun with: for a model that writes, one that wrote."""
        backbone = model.manifest.get("backbone")
        if not isinstance(backbone, dict):
            return False
        if self.key == "encoder":
            return backbone.get("encoder") == "own"
        kinds = (GENERATIVE,) if self.recipe.get("objective") == GENERATIVE else ("decoder", GENERATIVE)
        return backbone.get("kind") in kinds

    def _unknown(self) -> DomainError:
        """The same whatever it is that may not be named, so that it tells nothing."""
        own = [str(model) for model in models_of(self.project)[:_LOOKED_AT] if self._fits(model)][:_LISTED]
        ours = f"models of this project are {', '.join(own)}" if own else "this project has no such model"
        path = " A path is not taken: have the operator list it." if self.name.startswith("/") else ""
        return DomainError(
            f"{self.key} = {self.name!r} names no {self.key} that may be used: {model_folders.known_names()}; "
            f"{ours}.{path}",
            pointer=f"/{self.key}",
        )
