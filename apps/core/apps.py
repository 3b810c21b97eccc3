from django.apps import AppConfig

FORGET_EVERY_SECONDS = 600.0


class CoreConfig(AppConfig):
    name = "apps.core"
    label = "core"
    default_auto_field = "django.db.models.BigAutoField"

    def register(self) -> None:
        from apps.core.jobs import periodic
        from apps.core.processes.heartbeats import delete_stale

        periodic.register("forget processes that are gone", FORGET_EVERY_SECONDS, delete_stale)
