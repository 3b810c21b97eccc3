from django.apps import AppConfig


class TrajectoriesConfig(AppConfig):
    name = "apps.trajectories"
    label = "trajectories"

    def ready(self) -> None:
        from apps.core import jobs
        from apps.trajectories import tasks, uploads
        from apps.trajectories.models import Import

        assert tasks.advance_imports.name == uploads.TASK
        jobs.register(Import, uploads.TASK)
