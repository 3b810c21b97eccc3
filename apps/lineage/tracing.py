"""Influence of feedback records on a served reward, computed by a child process from the model and its data."""

import json
import tempfile
from pathlib import Path

from django.conf import settings
from django.db import transaction

from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import Cancelled, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.core.storage.artifacts import stage
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import data_folder
from apps.lineage.models import Tracing
from apps.rewards.models import ScoreSample
from apps.training.models import RewardModel, TrainingRun
from apps.training.recipes import trained_recipe
from workers.schema.picture_archive import PICTURES

ADVANCE_TRACINGS = "apps.lineage.tasks.advance_tracings"
CHILD = "workers.influence"


@transaction.atomic
def start_tracing(*, sample: ScoreSample, model: RewardModel) -> Tracing:
    """Queue the computation. A finished tracing is kept, a failed one is tried again. Raises DomainError."""
    require_traceable(model)
    Tracing.objects.filter(
        sample=sample, model=model, state__in=[JobState.FAILED, JobState.CANCELLED]
    ).delete()
    tracing, is_new = Tracing.objects.get_or_create(sample=sample, model=model)
    if is_new:
        job_queue.nudge_on_commit(ADVANCE_TRACINGS)
    return tracing


def require_traceable(model: RewardModel) -> tuple[TrainingRun, DatasetVersion]:
    """Raises DomainError with the reason why the influence of its training data cannot be computed."""
    if model.training_run is None:
        raise DomainError(
            f"{model} was trained outside this installation, so its training data is not available."
        )
    if model.deleted_at is not None:
        raise DomainError(f"{model} has been deleted.")
    dataset_version = model.training_run.dataset_version
    if dataset_version.withdrawn_at is not None:
        raise DomainError(
            f"{dataset_version}, which {model} was trained on, was withdrawn: {dataset_version.withdrawn_because}."
        )
    return model.training_run, dataset_version


def execute(tracing: Tracing) -> None:
    """Run a claimed tracing until it ends. Raises ClaimLost, Interrupted."""
    with keep_heartbeat(tracing) as heartbeat, tempfile.TemporaryDirectory(prefix="influence-") as scratch:
        folder = Path(scratch)
        try:
            _prepare(folder, tracing)
            name = f"The tracing of sample {tracing.sample_id}"
            core_subprocess.run_to_end(CHILD, [str(folder)], folder=folder, what=name, check=heartbeat.check)
        except DomainError as error:
            finish(tracing, JobState.FAILED, error=error.message)
            return
        except Cancelled:
            finish(tracing, JobState.CANCELLED)
            return
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    finish(tracing, JobState.SUCCEEDED, result=result)


def _prepare(folder: Path, tracing: Tracing) -> None:
    run, dataset_version = require_traceable(tracing.model)
    (folder / "parent").mkdir()
    (folder / "parent" / "model").symlink_to(stage(tracing.model.artifact))
    (folder / "data").mkdir()
    (folder / "data" / "train.jsonl.zst").symlink_to(data_folder(dataset_version) / "train.jsonl.zst")
    pictures = data_folder(dataset_version) / PICTURES
    if pictures.is_file():
        (folder / "data" / PICTURES).symlink_to(pictures)
    config = {"recipe": trained_recipe(run), "seed": run.seed, "device": settings.TRAINING_DEVICE}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "item.json").write_text(json.dumps(tracing.sample.item))
