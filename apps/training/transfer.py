"""Models from elsewhere: an artifact folder of configuration, safetensors and text, and nothing that could be run."""

import json
import uuid
from pathlib import Path
from typing import Any

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.storage.artifacts import delete_tree, store_tree
from apps.core.storage.storage_names import storage_name
from apps.core.version_names import check_slug
from apps.training import services
from apps.training.models import RewardModel

MANIFEST = "touchstone.json"
_ALLOWED = {".safetensors", ".json", ".txt", ".jinja", ".md"}
_POINTING = {"adapter_config.json"}  # transformers would load the base model that it names
_REQUIRED = ("schema_version", "objective", "backbone")


def import_model(*, project: Project, folder: Path, name: str, by: services.By) -> RewardModel:
    """Check an artifact folder, store it, register it as the next version of `name`."""
    manifest = check_artifact(folder)
    check_slug(name, what="model")
    artifact = storage_name("models", f"import-{uuid.uuid4().hex}")
    store_tree(folder, artifact)
    try:
        return services.adopt_model(project=project, name=name, artifact=artifact, manifest=manifest, by=by)
    except BaseException:
        delete_tree(artifact)
        raise


def check_artifact(folder: Path) -> dict[str, Any]:
    """The manifest of an artifact folder that holds nothing but what it may. Raises DomainError naming the file."""
    if not folder.is_dir():
        raise DomainError(f"{folder} is not a folder.")
    files = [path for path in sorted(folder.rglob("*")) if not path.is_dir() or path.is_symlink()]
    for path in files:
        inside = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file():
            raise DomainError(f"{inside} is not a regular file; a model may contain regular files only.")
        if path.name in _POINTING:
            raise DomainError(
                f"{inside} may not be part of a model: it refers to another folder; merge the adapter first."
            )
        if path.suffix not in _ALLOWED:
            raise DomainError(
                f"{inside} may not be part of a model: only {', '.join(sorted(_ALLOWED))} files are accepted, "
                "because others can contain code."
            )
    if not any(path.suffix == ".safetensors" for path in files):
        raise DomainError(
            f"{folder} contains no .safetensors file and so no weights; export the model again."
        )
    return _manifest(folder)


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise DomainError(f"{folder} has no {MANIFEST}; only models that Touchstone made can be imported.")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DomainError(f"{MANIFEST} is not valid JSON: {error}.") from error
    missing = [key for key in _REQUIRED if not isinstance(manifest, dict) or key not in manifest]
    if missing:
        raise DomainError(
            f"{MANIFEST} lacks {', '.join(missing)}; export the model again.", pointer=f"/{missing[0]}"
        )
    return manifest
