"""Celery tasks of dataset versions and exports."""

import logging

from celery import shared_task

from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.datasets.export_jobs import build_export
from apps.datasets.models import DatasetVersion, Export
from apps.datasets.version_builder import build_dataset_version

log = logging.getLogger(__name__)


@shared_task
def advance_exports() -> None:
    """Write every export that waits."""
    job_queue.drain_queue(Export, build_export)


@shared_task
def advance_dataset_versions() -> None:
    """Build every dataset version that waits."""
    job_queue.drain_queue(DatasetVersion, build)


def build(dataset_version: DatasetVersion) -> None:
    try:
        build_dataset_version(dataset_version)
    except DomainError as error:
        log.info("%s was not frozen: %s", dataset_version, error.message)  # the row says so too
