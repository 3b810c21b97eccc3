"""What people hear of the jobs of this app when they end."""

from django.urls import reverse

from apps.inbox.job_notices import JobNotice
from apps.metrics.models import Induction


def induction_notice(induction: Induction) -> JobNotice:
    path = reverse("metrics:induction-detail", args=[induction.project.slug, induction.pk])
    of = f" of {induction.campaign.name}" if induction.campaign else ""
    return JobNotice(induction.project, induction.created_by, f"The induction of metrics{of}", path)
