from django.apps import AppConfig

LOOK_EVERY_SECONDS = 20.0
FORGET_EVERY_SECONDS = 600.0


class MonitoringConfig(AppConfig):
    name = "apps.monitoring"
    label = "monitoring"

    def ready(self) -> None:
        from apps.core import periodic
        from apps.monitoring.services import forget_old, look

        periodic.register("look at what endpoints score", LOOK_EVERY_SECONDS, look)
        periodic.register("forget old readings", FORGET_EVERY_SECONDS, forget_old)
