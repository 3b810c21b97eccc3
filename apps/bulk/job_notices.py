"""What people hear of the jobs of this app when they end."""

from django.urls import reverse

from apps.bulk.models import BulkJob
from apps.inbox.job_notices import EndedJob, JobNotice, report


def bulk_job_notice(bulk_job: BulkJob) -> JobNotice:
    path = reverse("bulk:bulk-job-detail", args=[bulk_job.project.slug, bulk_job.pk])
    return JobNotice(bulk_job.project, bulk_job.created_by, f"Bulk job {bulk_job.pk}", path)


def report_bulk_job(bulk_job: BulkJob) -> None:
    """Within the transaction that ends it."""
    succeeded = bulk_job.state == BulkJob.State.SUCCEEDED
    key = f"bulk.bulkjob:{bulk_job.pk}:{bulk_job.finished_at}"
    report(EndedJob(bulk_job_notice(bulk_job), key, succeeded, bulk_job.error))
