from django.apps import AppConfig

REMOVE_EVERY_SECONDS = 600


class DatasetsConfig(AppConfig):
    name = "apps.datasets"
    label = "datasets"

    def ready(self) -> None:
        from apps.accounts import leaving
        from apps.core.jobs import job_queue, periodic
        from apps.datasets.erasure import remove_withdrawn
        from apps.datasets.export_jobs import ADVANCE_EXPORTS, remove_old_exports
        from apps.datasets.models import DatasetVersion, Export
        from apps.datasets.person_deletion import withdraw_named
        from apps.datasets.services import ADVANCE_DATASET_VERSIONS

        leaving.register("datasets", deleting=withdraw_named)
        job_queue.register(DatasetVersion, ADVANCE_DATASET_VERSIONS)
        job_queue.register(Export, ADVANCE_EXPORTS)
        periodic.register("remove old exports", REMOVE_EVERY_SECONDS, remove_old_exports)
        periodic.register("remove withdrawn datasets", REMOVE_EVERY_SECONDS, remove_withdrawn)
