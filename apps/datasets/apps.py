from django.apps import AppConfig

REMOVE_EVERY_SECONDS = 600


class DatasetsConfig(AppConfig):
    name = "apps.datasets"
    label = "datasets"

    def register(self) -> None:
        from apps.accounts import leaving
        from apps.core.jobs import job_queue, periodic
        from apps.datasets.erasure import remove_withdrawn
        from apps.datasets.export_jobs import ADVANCE_EXPORTS, remove_old_exports
        from apps.datasets.job_notices import dataset_version_notice, deletion_notice, export_notice
        from apps.datasets.models import DatasetVersion, Export, TrajectoryDeletion
        from apps.datasets.person_deletion import withdraw_named
        from apps.datasets.services import ADVANCE_DATASET_VERSIONS
        from apps.datasets.trajectory_deletion import ADVANCE_DELETIONS
        from apps.inbox import job_notices

        leaving.register("datasets", deleting=withdraw_named)
        job_notices.register(DatasetVersion, dataset_version_notice)
        job_notices.register(Export, export_notice)
        job_notices.register(TrajectoryDeletion, deletion_notice)
        job_queue.register(DatasetVersion, ADVANCE_DATASET_VERSIONS)
        job_queue.register(Export, ADVANCE_EXPORTS)
        job_queue.register(TrajectoryDeletion, ADVANCE_DELETIONS)
        periodic.register("remove old exports", REMOVE_EVERY_SECONDS, remove_old_exports)
        periodic.register("remove withdrawn datasets", REMOVE_EVERY_SECONDS, remove_withdrawn)
