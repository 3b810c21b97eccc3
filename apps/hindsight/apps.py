from django.apps import AppConfig


class HindsightAppConfig(AppConfig):
    name = "apps.hindsight"
    label = "hindsight"

    def register(self) -> None:
        from apps.core.jobs import job_queue
        from apps.datasets import derived_records
        from apps.hindsight.derived import SOURCE
        from apps.hindsight.job_notices import hindsight_notice
        from apps.hindsight.kind import HINDSIGHT
        from apps.hindsight.models import HindsightProposal
        from apps.inbox import job_notices

        job_queue.register(HindsightProposal, HINDSIGHT.advance)
        job_notices.register(HindsightProposal, hindsight_notice)
        derived_records.register(SOURCE)
