"""Public reward models: recognised, converted to artifacts and calibrated in a child process, then registered."""

import json
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from apps.accounts.models import Project
from apps.core.distributions import installed_version
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import (
    Cancelled,
    JobHeartbeat,
    JobState,
    finish,
    keep_heartbeat,
    renew_heartbeat,
)
from apps.core.processes import core_subprocess
from apps.core.storage.artifacts import delete_tree, store_tree
from apps.core.storage.model_folders import folder_of, without_paths
from apps.core.storage.storage_names import home_path, storage_name
from apps.core.version_names import check_slug
from apps.datasets.selectors import data_folder, find_dataset_version
from apps.training import services
from apps.training.hub_models import PREFIX as HUB
from apps.training.hub_models import HubModel, HubModelName
from apps.training.models import ModelImport, RewardModel
from apps.training.transfer import MANIFEST, check_artifact
from apps.trajectories.attachments import noting_digests, write_pictures
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import narrowed, stream_trajectories
from workers.schema import write_trajectories
from workers.schema.import_options import OWN_TRAJECTORIES, ImportOptions

CHILD = "workers.importing"
_MOST_TRAJECTORIES = 2000
Check = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicCheckpoint:
    """A folder on this machine, and where it came from: source, revision."""

    folder: Path
    source: str
    revision: str = ""


def is_artifact(folder: Path) -> bool:
    """Whether a folder is a model that Touchstone made."""
    return (folder / MANIFEST).is_file()


def execute(model_import: ModelImport) -> None:
    """Recognise the model, and import it unless only that was asked for. Raises ClaimLost, Interrupted."""
    with keep_heartbeat(model_import) as heartbeat:
        try:
            with _checkpoint(model_import, heartbeat) as checkpoint:
                _execute(model_import, checkpoint, heartbeat)
        except DomainError as error:
            finish(model_import, JobState.FAILED, error=without_paths(error.message))
        except Cancelled:
            finish(model_import, JobState.CANCELLED)


def _execute(model_import: ModelImport, checkpoint: PublicCheckpoint, heartbeat: JobHeartbeat) -> None:
    options = ImportOptions.parse(model_import.options)
    heartbeat.progress = {"done": 0, "total": None, "note": "Looking at the model"}
    found = recognise_checkpoint(checkpoint, options, check=heartbeat.check)
    renew_heartbeat(model_import, recognised=found)
    if model_import.dry_run:
        finish(model_import, JobState.SUCCEEDED, progress={})
        return
    heartbeat.progress = {"done": 0, "total": None, "note": "Converting the model"}
    import_public_model(
        project=model_import.project,
        checkpoint=checkpoint,
        options=options,
        name=model_import.model_name,
        calibration=model_import.calibration,
        by=model_import.started_by,
        check=heartbeat.check,
        on_adopted=lambda model: finish(
            model_import,
            JobState.SUCCEEDED,
            progress={},
            model=model,
            recognised=model.manifest["imported"],
        ),
    )


@contextmanager
def _checkpoint(model_import: ModelImport, heartbeat: JobHeartbeat) -> Iterator[PublicCheckpoint]:
    source = model_import.source
    if not source.startswith(HUB):
        yield PublicCheckpoint(folder=folder_of(source), source=source)
        return
    heartbeat.progress = {"done": 0, "total": None, "note": "Asking the hub"}
    model = HubModel(HubModelName.parse(source))
    heartbeat.progress = {"done": 0, "total": None, "note": f"Downloading {model.bytes / 1e9:.2f} GB"}
    with downloaded(model, check=heartbeat.check) as checkpoint:
        yield checkpoint


@contextmanager
def downloaded(model: HubModel, *, check: Check = lambda: None) -> Iterator[PublicCheckpoint]:
    """A model of the hub in a folder that is removed afterwards."""
    with _scratch() as folder:
        model.download(folder, check=check)
        yield PublicCheckpoint(folder=folder, source=str(model.name), revision=model.commit)


def recognise_checkpoint(
    checkpoint: PublicCheckpoint, options: ImportOptions, *, check: Check = lambda: None
) -> dict[str, Any]:
    """What it is, without converting it. Raises DomainError where it is no reward model that can be imported."""
    with _scratch() as folder:
        _run(folder, checkpoint, options, None, check, dry_run=True)
        return _recognised(folder)


def import_public_model(
    *,
    project: Project,
    checkpoint: PublicCheckpoint,
    options: ImportOptions,
    name: str,
    by: services.By,
    calibration: str = "",
    calibration_file: Path | None = None,
    check: Check = lambda: None,
    on_adopted: Callable[[RewardModel], None] = lambda model: None,
) -> RewardModel:
    """Convert a checkpoint, and register the artifact as the next version of `name`.

    calibration: `trajectories` or a dataset version, empty for none. calibration_file: JSON lines, of the command line.
    on_adopted: called in the transaction that registers the model, which is undone where it raises.
    """
    check_slug(name, what="model")
    with _scratch() as folder:
        if calibration and calibration_file is None:
            calibration_file = _calibration_file(project, calibration, folder, check)
        _run(folder, checkpoint, options, calibration_file, check, dry_run=False)
        manifest = check_artifact(folder / "model")
        artifact = storage_name("models", f"import-{uuid.uuid4().hex}")
        store_tree(folder / "model", artifact)
    try:
        with transaction.atomic():
            model = services.adopt_model(
                project=project, name=name, artifact=artifact, manifest=manifest, by=by
            )
            on_adopted(model)
    except BaseException:
        delete_tree(artifact)
        raise
    return model


def _run(
    folder: Path,
    checkpoint: PublicCheckpoint,
    options: ImportOptions,
    calibration: Path | None,
    check: Check,
    *,
    dry_run: bool,
) -> None:
    request = {
        "checkpoint": str(checkpoint.folder),
        "options": options.given(),
        "source": {"source": checkpoint.source, "revision": checkpoint.revision},
        "calibration": None if calibration is None else str(calibration),
        "dry_run": dry_run,
        "device": settings.TRAINING_DEVICE,
        "code_version": installed_version(),
    }
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    what = f"The import of {checkpoint.source}"
    core_subprocess.run_to_end(CHILD, [str(folder)], folder=folder, what=what, check=check)


def _recognised(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "recognised.json").read_text(encoding="utf-8"))
    return found


def _calibration_file(project: Project, calibration: str, folder: Path, check: Check) -> Path:
    """Trajectories, and next to them the archive of their pictures."""
    if calibration == OWN_TRAJECTORIES:
        rows, _ = narrowed(Trajectory.objects.filter(project=project), _MOST_TRAJECTORIES)
        path = folder / "calibration.jsonl.zst"
        digests: set[str] = set()
        found = stream_trajectories(rows.values_list("pk", flat=True))
        write_trajectories(path, noting_digests(found, digests))
        write_pictures(project, digests, folder, check=check)
        return path
    dataset_version = find_dataset_version(calibration, project=project)
    return data_folder(dataset_version) / "train.jsonl.zst"


@contextmanager
def _scratch() -> Iterator[Path]:
    root = home_path("imports")  # weights may be too large for the machine's temporary files
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="import-", dir=root) as scratch:
        yield Path(scratch)
