"""What workers do for snapshots and exports."""

import logging

from celery import shared_task

from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.datasets.exporting import build_export
from apps.datasets.freezing import build_snapshot
from apps.datasets.models import Export, Snapshot

log = logging.getLogger(__name__)


@shared_task
def advance_exports() -> None:
    """Write every export that waits."""
    job_queue.work_off(Export, build_export)


@shared_task
def advance_snapshots() -> None:
    """Build every snapshot that waits."""
    job_queue.work_off(Snapshot, build)


def build(snapshot: Snapshot) -> None:
    try:
        build_snapshot(snapshot)
    except DomainError as error:
        log.info("%s was not frozen: %s", snapshot, error.message)  # the row says so too
