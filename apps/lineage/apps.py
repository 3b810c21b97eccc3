from django.apps import AppConfig


class LineageConfig(AppConfig):
    name = "apps.lineage"
    label = "lineage"

    def register(self) -> None:
        from apps.core.jobs import job_queue
        from apps.lineage.models import Tracing
        from apps.lineage.tracing import ADVANCE_TRACINGS

        job_queue.register(Tracing, ADVANCE_TRACINGS)
