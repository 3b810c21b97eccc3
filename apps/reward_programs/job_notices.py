"""What people hear of dry runs and drafts when they end."""

from django.urls import reverse

from apps.inbox.job_notices import JobNotice
from apps.reward_programs.models import RewardProgramJob


def reward_program_notice(job: RewardProgramJob) -> JobNotice:
    path = reverse("reward_programs:job-detail", args=[job.project.slug, job.pk])
    return JobNotice(job.project, job.created_by, job.title, path)
