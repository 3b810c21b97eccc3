"""What people hear of reward studies when they end."""

from django.urls import reverse

from apps.inbox.job_notices import JobNotice
from apps.reward_studies.models import RewardStudy


def reward_study_notice(study: RewardStudy) -> JobNotice:
    path = reverse("reward_studies:study-detail", args=[study.project.slug, study.pk])
    return JobNotice(study.project, study.created_by, study.title, path)
