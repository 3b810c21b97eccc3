"""What people hear of the jobs of this app when they end."""

from django.urls import reverse

from apps.inbox.job_notices import JobNotice
from apps.trajectories.models import Import


def import_notice(upload: Import) -> JobNotice:
    path = reverse("trajectories:import-detail", args=[upload.project.slug, upload.pk])
    return JobNotice(upload.project, upload.uploaded_by, f"The import of {upload.filename}", path)
