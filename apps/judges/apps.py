from django.apps import AppConfig


class JudgesConfig(AppConfig):
    name = "apps.judges"
    label = "judges"

    def ready(self) -> None:
        from apps.core.jobs import job_queue
        from apps.judges.models import JudgeRun
        from apps.judges.services.judge_runs import ADVANCE

        job_queue.register(JudgeRun, ADVANCE)
