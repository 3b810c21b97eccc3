from django.apps import AppConfig


class SubgoalsConfig(AppConfig):
    name = "apps.subgoals"
    label = "subgoals"

    def register(self) -> None:
        from apps.core.jobs import job_queue
        from apps.inbox import job_notices
        from apps.subgoals.job_notices import proposal_notice
        from apps.subgoals.kind import SUBGOALS
        from apps.subgoals.models import SubgoalProposal

        job_queue.register(SubgoalProposal, SUBGOALS.advance)
        job_notices.register(SubgoalProposal, proposal_notice)
