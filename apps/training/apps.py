from django.apps import AppConfig

REMOVE_EVERY_SECONDS = 600


class TrainingConfig(AppConfig):
    name = "apps.training"
    label = "training"

    def register(self) -> None:
        from apps.core import health
        from apps.core.jobs import job_queue, periodic
        from apps.datasets import erased_words
        from apps.inbox import job_notices
        from apps.training.erased_names import rename_in_reports
        from apps.training.import_services import ADVANCE as ADVANCE_IMPORTS
        from apps.training.job_notices import model_export_notice, model_import_notice, training_run_notice
        from apps.training.launching.launchers import check_launchers
        from apps.training.launching.left_jobs import EVERY_SECONDS, nudge_for_left_jobs
        from apps.training.model_export_jobs import ADVANCE_MODEL_EXPORTS, remove_old_model_exports
        from apps.training.models import ON_CLUSTERS, ON_WORKERS, ModelExport, ModelImport, TrainingRun
        from apps.training.services import ADVANCE, FOLLOW, announce_end

        job_notices.register(TrainingRun, training_run_notice)
        job_notices.register(ModelImport, model_import_notice)
        job_notices.register(ModelExport, model_export_notice)
        job_queue.register(TrainingRun, ADVANCE, announce_end, among=ON_WORKERS)
        job_queue.register(TrainingRun, FOLLOW, among=ON_CLUSTERS)
        job_queue.register(ModelImport, ADVANCE_IMPORTS)
        periodic.register("end jobs of ended runs", EVERY_SECONDS, nudge_for_left_jobs)
        job_queue.register(ModelExport, ADVANCE_MODEL_EXPORTS)
        periodic.register("remove old exports of models", REMOVE_EVERY_SECONDS, remove_old_model_exports)
        health.register(
            "clusters",
            check_launchers,
            "Correct the settings of the launcher that is named: docs/clusters.md. The machine of the worker counts.",
        )
        erased_words.register("training", rename_in_reports)
