from django.apps import AppConfig


class JudgesConfig(AppConfig):
    name = "apps.judges"
    label = "judges"

    def ready(self) -> None:
        from apps.core import jobs
        from apps.judges.models import Judging
        from apps.judges.services.judgings import ADVANCE

        jobs.register(Judging, ADVANCE)
