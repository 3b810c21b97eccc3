from django.apps import AppConfig


class MetricsConfig(AppConfig):
    name = "apps.metrics"
    label = "metrics"

    def ready(self) -> None:
        from apps.core import jobs
        from apps.metrics.models import Induction
        from apps.metrics.services import ADVANCE

        jobs.register(Induction, ADVANCE)
