from django.apps import AppConfig


class TrajectoriesConfig(AppConfig):
    name = "apps.trajectories"
    label = "trajectories"

    def ready(self) -> None:
        from apps.core.jobs import job_queue, periodic
        from apps.trajectories import tasks, traces, uploads
        from apps.trajectories.models import Import

        assert tasks.advance_imports.name == uploads.ADVANCE_IMPORTS
        job_queue.register(Import, uploads.ADVANCE_IMPORTS)
        periodic.register("assemble traces", traces.EVERY_SECONDS, traces.collect)
        periodic.register("delete old traces", 3600.0, traces.sweep)
