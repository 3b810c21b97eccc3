from django.apps import AppConfig

REMOVE_EVERY_SECONDS = 600


class DatasetsConfig(AppConfig):
    name = "apps.datasets"
    label = "datasets"

    def ready(self) -> None:
        from apps.accounts import leaving
        from apps.core.jobs import job_queue, periodic
        from apps.datasets.erasure import remove_withdrawn
        from apps.datasets.exporting import ADVANCE as ADVANCE_EXPORTS
        from apps.datasets.exporting import remove_old_exports
        from apps.datasets.leaving import withdraw_named
        from apps.datasets.models import DatasetVersion, Export
        from apps.datasets.services import ADVANCE

        leaving.register("datasets", deleting=withdraw_named)
        job_queue.register(DatasetVersion, ADVANCE)
        job_queue.register(Export, ADVANCE_EXPORTS)
        periodic.register("remove old exports", REMOVE_EVERY_SECONDS, remove_old_exports)
        periodic.register("remove withdrawn datasets", REMOVE_EVERY_SECONDS, remove_withdrawn)
