"""What workers do for snapshots."""

import logging
import secrets

from celery import shared_task

from apps.core.errors import DomainError
from apps.core.jobs import ClaimLost, JobState, claim_next, finish
from apps.datasets.freezing import build_snapshot
from apps.datasets.models import Snapshot

log = logging.getLogger(__name__)


@shared_task
def advance_snapshots() -> None:
    """Build every snapshot that waits."""
    while (snapshot := claim_next(Snapshot)) is not None:
        build(snapshot)


def build(snapshot: Snapshot) -> None:
    try:
        build_snapshot(snapshot)
    except DomainError as error:
        log.info("%s was not frozen: %s", snapshot, error.message)  # the row says so too
    except ClaimLost:
        log.warning("%s went to another worker", snapshot)
    except Exception:
        # A bug must not leave the row to be tried for ever; the log has the traceback.
        reference = secrets.token_hex(4)
        log.exception("%s failed, reference %s", snapshot, reference)
        finish(
            snapshot,
            JobState.FAILED,
            error=f"Something went wrong on our side; the log has it under {reference}.",
        )
