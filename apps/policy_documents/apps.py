from django.apps import AppConfig


class PolicyDocumentsConfig(AppConfig):
    name = "apps.policy_documents"
    label = "policy_documents"

    def ready(self) -> None:
        from apps.core.jobs import job_queue
        from apps.inbox import job_notices
        from apps.policy_documents.job_notices import split_notice
        from apps.policy_documents.models import PolicySplit
        from apps.policy_documents.services import ADVANCE

        job_queue.register(PolicySplit, ADVANCE)
        job_notices.register(PolicySplit, split_notice)
