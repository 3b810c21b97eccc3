from django.apps import AppConfig


class TrajectoriesConfig(AppConfig):
    name = "apps.trajectories"
    label = "trajectories"

    def register(self) -> None:
        from apps.accounts import leaving
        from apps.core.jobs import job_queue, periodic
        from apps.inbox import job_notices
        from apps.trajectories import traces, uploads
        from apps.trajectories.comments import erase_comments
        from apps.trajectories.job_notices import import_notice
        from apps.trajectories.models import Import

        job_notices.register(Import, import_notice)
        job_queue.register(Import, uploads.ADVANCE_IMPORTS)
        leaving.register("trajectories", deleting=erase_comments)
        periodic.register("assemble traces", traces.EVERY_SECONDS, traces.collect)
        periodic.register("delete old traces", 3600.0, traces.sweep)
