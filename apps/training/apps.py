from django.apps import AppConfig


class TrainingConfig(AppConfig):
    name = "apps.training"
    label = "training"

    def ready(self) -> None:
        from apps.core.jobs import job_queue
        from apps.training.models import TrainingRun
        from apps.training.services import ADVANCE, announce_end

        job_queue.register(TrainingRun, ADVANCE, announce_end)
