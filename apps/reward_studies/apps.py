from django.apps import AppConfig


class RewardStudiesConfig(AppConfig):
    name = "apps.reward_studies"
    label = "reward_studies"

    def register(self) -> None:
        from apps.core.jobs import job_queue
        from apps.inbox import job_notices
        from apps.reward_studies.job_notices import reward_study_notice
        from apps.reward_studies.models import RewardStudy
        from apps.reward_studies.services import ADVANCE

        job_queue.register(RewardStudy, ADVANCE)
        job_notices.register(RewardStudy, reward_study_notice)
