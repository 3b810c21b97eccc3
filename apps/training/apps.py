from django.apps import AppConfig


class TrainingConfig(AppConfig):
    name = "apps.training"
    label = "training"

    def ready(self) -> None:
        from apps.core import jobs
        from apps.training.models import Run
        from apps.training.services import ADVANCE, announce_end

        jobs.register(Run, ADVANCE, announce_end)
