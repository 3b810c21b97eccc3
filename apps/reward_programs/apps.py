from django.apps import AppConfig


class RewardProgramsConfig(AppConfig):
    name = "apps.reward_programs"
    label = "reward_programs"

    def register(self) -> None:
        from apps.core.jobs import job_queue
        from apps.inbox import job_notices
        from apps.reward_programs.job_notices import reward_program_notice
        from apps.reward_programs.models import RewardProgramJob
        from apps.reward_programs.services import ADVANCE

        job_queue.register(RewardProgramJob, ADVANCE)
        job_notices.register(RewardProgramJob, reward_program_notice)
