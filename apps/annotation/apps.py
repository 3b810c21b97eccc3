from django.apps import AppConfig

from apps.core import periodic

EXPIRE_EVERY_SECONDS = 30


class AnnotationConfig(AppConfig):
    name = "apps.annotation"
    label = "annotation"

    def ready(self) -> None:
        from apps.annotation.services import expire_leases

        periodic.register("expire leases", EXPIRE_EVERY_SECONDS, expire_leases)
