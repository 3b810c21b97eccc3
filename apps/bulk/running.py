"""What a worker does for bulk jobs: one after another, the one that was served longest ago first."""

import logging
import secrets

from django.db.models.functions import Now

from apps.bulk.endpoint_scoring import score_chunks
from apps.bulk.engine_process import EngineProcess
from apps.bulk.judging import judge_chunks
from apps.bulk.models import BulkJob
from apps.bulk.selectors import next_bulk_job
from apps.bulk.services import fail_bulk_job
from apps.bulk.turns import WorkerTurn, other_jobs_wait
from apps.core.database.outage import is_outage, renew_connections
from apps.core.errors import DomainError
from apps.core.jobs import shutdown
from apps.core.logs import context

log = logging.getLogger(__name__)


def work_on_chunks() -> None:
    """Until no chunk waits, this worker is to stop, or work of other kinds waits for it."""
    try:
        while not shutdown.is_asked() and (job := next_bulk_job()) is not None:
            BulkJob.objects.filter(pk=job.pk).update(served_at=Now())
            with context(job=f"bulkjob-{job.pk}"):
                serve_bulk_job(job)
            if other_jobs_wait():
                return
    except Exception as error:
        if not is_outage(error):
            raise
        log.warning("the database is away or takes no changes; chunks wait: %s", error)
        renew_connections(error)


def serve_bulk_job(job: BulkJob) -> None:
    """Work on its chunks for a turn. Whatever goes wrong fails the job, but for an outage of the database."""
    try:
        if job.work == BulkJob.Work.JUDGE:
            judge_chunks(job, WorkerTurn(job))
        elif job.work == BulkJob.Work.ENDPOINT:
            score_chunks(job, WorkerTurn(job))
        else:
            EngineProcess(job, WorkerTurn(job)).run()
    except DomainError as error:
        fail_bulk_job(job, error.message)
    except Exception as error:
        if is_outage(error):
            raise
        # Chunks that are given back would be claimed again, and the model loaded for them, for ever.
        reference = secrets.token_hex(4)
        log.exception("%s failed, reference %s", job, reference)
        fail_bulk_job(
            job,
            f"Something went wrong on our side; the log has it under {reference}. Resume the job to try again.",
        )
