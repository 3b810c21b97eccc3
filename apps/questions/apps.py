from django.apps import AppConfig


class QuestionsConfig(AppConfig):
    name = "apps.questions"
    label = "questions"

    def register(self) -> None:
        from apps.core.jobs import job_queue
        from apps.inbox import job_notices
        from apps.questions.job_notices import question_notice
        from apps.questions.models import TrajectoryQuestion
        from apps.questions.services import ADVANCE

        job_queue.register(TrajectoryQuestion, ADVANCE)
        job_notices.register(TrajectoryQuestion, question_notice)
