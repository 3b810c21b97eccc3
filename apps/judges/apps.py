from django.apps import AppConfig


class JudgesConfig(AppConfig):
    name = "apps.judges"
    label = "judges"

    def register(self) -> None:
        from apps.core.jobs import job_queue
        from apps.datasets import derived_records
        from apps.inbox import job_notices
        from apps.judges.derived import SOURCES
        from apps.judges.job_notices import judge_run_notice
        from apps.judges.models import JudgeRun
        from apps.judges.services.judge_runs import ADVANCE

        job_notices.register(JudgeRun, judge_run_notice)
        job_queue.register(JudgeRun, ADVANCE)
        for source in SOURCES:
            derived_records.register(source)
