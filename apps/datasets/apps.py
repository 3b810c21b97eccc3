from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "apps.datasets"
    label = "datasets"

    def ready(self) -> None:
        from apps.core import jobs
        from apps.datasets.models import Snapshot
        from apps.datasets.services import ADVANCE

        jobs.register(Snapshot, ADVANCE)
