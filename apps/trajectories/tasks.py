"""What the default worker does for trajectories."""

import logging
import secrets

from celery import shared_task
from django.db import Error as DatabaseError

from apps.core import jobs
from apps.trajectories import uploads
from apps.trajectories.models import Import

log = logging.getLogger(__name__)


@shared_task(name=uploads.TASK)
def advance_imports() -> None:
    """Run every import that waits."""
    while (job := jobs.claim_next(Import)) is not None:
        execute(job)


def execute(job: Import) -> None:
    try:
        uploads.run_import(job)
    except jobs.ClaimLost:
        log.warning("%s went to another worker; nothing of it was written here", job)
    except DatabaseError:
        raise  # the row keeps its claim until the heartbeat is stale; then the import begins anew
    except Exception:
        # A bug must not leave the row to be tried for ever; the log has the traceback.
        reference = secrets.token_hex(4)
        log.exception("%s failed, reference %s", job, reference)
        error = f"Something went wrong on our side; the log has it under {reference}."
        jobs.finish(job, jobs.JobState.FAILED, error=error)
