"""What people hear of the jobs of this app when they end."""

from django.urls import reverse

from apps.inbox.job_notices import JobNotice
from apps.training.models import ModelExport, ModelImport, TrainingRun


def training_run_notice(training_run: TrainingRun) -> JobNotice:
    path = reverse("training:run-detail", args=[training_run.project.slug, training_run.pk])
    name = f"The training of {training_run.model_name} on {training_run.dataset_version.name}"
    return JobNotice(training_run.project, training_run.started_by, name, path)


def model_import_notice(model_import: ModelImport) -> JobNotice:
    path = reverse("training:model-import-detail", args=[model_import.project.slug, model_import.pk])
    return JobNotice(
        model_import.project, model_import.started_by, f"The import of {model_import.model_name}", path
    )


def model_export_notice(model_export: ModelExport) -> JobNotice:
    model = model_export.model
    path = reverse("training:model-export-list", args=[model.project.slug, model.pk])
    return JobNotice(model.project, model_export.created_by, f"The export of {model}", path)
