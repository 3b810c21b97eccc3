from django.apps import AppConfig


class LineageConfig(AppConfig):
    name = "apps.lineage"
    label = "lineage"

    def ready(self) -> None:
        from apps.core import jobs
        from apps.lineage.models import Tracing
        from apps.lineage.tracing import TRACE

        jobs.register(Tracing, TRACE)
