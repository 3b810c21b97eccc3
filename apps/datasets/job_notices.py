"""What people hear of the jobs of this app when they end."""

from django.urls import reverse

from apps.datasets.models import DatasetVersion, Export, TrajectoryDeletion
from apps.inbox.job_notices import JobNotice


def dataset_version_notice(dataset_version: DatasetVersion) -> JobNotice:
    project = dataset_version.project
    path = reverse("datasets:dataset-version-detail", args=[project.slug, dataset_version.pk])
    name = f"The freeze of {dataset_version.name}@{dataset_version.version}"
    return JobNotice(project, dataset_version.created_by, name, path)


def export_notice(export: Export) -> JobNotice:
    path = reverse("datasets:export-list", args=[export.project.slug])
    of = export.dataset_version or "the project's data"
    return JobNotice(export.project, export.created_by, f"The export of {of}", path)


def deletion_notice(deletion: TrajectoryDeletion) -> JobNotice:
    path = reverse("datasets:deletion-detail", args=[deletion.project.slug, deletion.pk])
    name = f"The deletion of {deletion.item_count:,} trajectories"
    return JobNotice(deletion.project, deletion.created_by, name, path)
