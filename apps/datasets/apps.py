from django.apps import AppConfig

REMOVE_EVERY_SECONDS = 600


class DatasetsConfig(AppConfig):
    name = "apps.datasets"
    label = "datasets"

    def ready(self) -> None:
        from apps.core import jobs, periodic
        from apps.datasets.erasure import remove_withdrawn
        from apps.datasets.models import Snapshot
        from apps.datasets.services import ADVANCE

        jobs.register(Snapshot, ADVANCE)
        periodic.register("remove withdrawn datasets", REMOVE_EVERY_SECONDS, remove_withdrawn)
