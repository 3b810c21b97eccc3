"""What GPU workers do: runs, one after the other."""

import logging
import secrets

from celery import shared_task
from django.db import Error as DatabaseError

from apps.core.jobs import ClaimLost, JobState, claim_next, finish
from apps.training import runner
from apps.training.models import Run

log = logging.getLogger(__name__)


@shared_task
def advance_runs() -> None:
    """Execute every run that waits; a worker does one at a time."""
    while (run := claim_next(Run)) is not None:
        execute(run)


def execute(run: Run) -> None:
    try:
        runner.execute(run)
    except ClaimLost:
        log.warning("%s went to another worker; its process here was ended", run)
    except DatabaseError:
        raise  # the row keeps its claim until the heartbeat is stale; then the run is resumed from its checkpoint
    except Exception:
        # A bug must not leave the row to be tried for ever; the log has the traceback.
        reference = secrets.token_hex(4)
        log.exception("%s failed, reference %s", run, reference)
        finish(
            run, JobState.FAILED, error=f"Something went wrong on our side; the log has it under {reference}."
        )
