from django.apps import AppConfig


class SubgoalsConfig(AppConfig):
    name = "apps.subgoals"
    label = "subgoals"

    def register(self) -> None:
        from apps.core.jobs import job_queue
        from apps.inbox import job_notices
        from apps.subgoals.job_notices import proposal_notice
        from apps.subgoals.models import SubgoalProposal
        from apps.subgoals.services import ADVANCE

        job_queue.register(SubgoalProposal, ADVANCE)
        job_notices.register(SubgoalProposal, proposal_notice)
