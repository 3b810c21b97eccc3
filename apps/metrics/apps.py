from django.apps import AppConfig


class MetricsConfig(AppConfig):
    name = "apps.metrics"
    label = "metrics"

    def ready(self) -> None:
        from apps.annotation.feedback import exports
        from apps.core.jobs import job_queue
        from apps.datasets import derived_records
        from apps.metrics.derived import SOURCES
        from apps.metrics.guidelines import DESCRIPTION, export_guidelines
        from apps.metrics.models import Induction
        from apps.metrics.services.inductions import ADVANCE

        job_queue.register(Induction, ADVANCE)
        exports.register("guidelines", export_guidelines, DESCRIPTION, ending="md")
        for source in SOURCES:
            derived_records.register(source)
