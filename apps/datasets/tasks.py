"""Celery tasks of dataset versions, exports and deletions."""

import logging

from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task
from apps.datasets.export_jobs import build_export
from apps.datasets.models import DatasetVersion, Export, TrajectoryDeletion
from apps.datasets.trajectory_deletion import run_deletion
from apps.datasets.version_builder import build_dataset_version

log = logging.getLogger(__name__)


@shared_task
def advance_exports() -> None:
    """Write every export that waits."""
    job_queue.drain_queue(Export, build_export)


@shared_task
def advance_deletions() -> None:
    """Delete the trajectories of every deletion that waits."""
    job_queue.drain_queue(TrajectoryDeletion, run_deletion)


@shared_task
def advance_dataset_versions() -> None:
    """Build every dataset version that waits."""
    job_queue.drain_queue(DatasetVersion, build)


def build(dataset_version: DatasetVersion) -> None:
    try:
        build_dataset_version(dataset_version)
    except DomainError as error:
        log.info("%s was not frozen: %s", dataset_version, error.message)  # the row says so too
