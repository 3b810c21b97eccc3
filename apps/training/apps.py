from django.apps import AppConfig


class TrainingConfig(AppConfig):
    name = "apps.training"
    label = "training"

    def ready(self) -> None:
        from apps.core.jobs import job_queue
        from apps.datasets import erased_words
        from apps.training.erased_names import rename_in_reports
        from apps.training.models import TrainingRun
        from apps.training.services import ADVANCE, announce_end

        job_queue.register(TrainingRun, ADVANCE, announce_end)
        erased_words.register("training", rename_in_reports)
