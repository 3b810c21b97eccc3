"""What people hear of lists of rules when they end."""

from django.urls import reverse

from apps.inbox.job_notices import JobNotice
from apps.policy_documents.models import PolicySplit


def split_notice(split: PolicySplit) -> JobNotice:
    path = reverse("policy_documents:document-detail", args=[split.project.slug, split.version.document_id])
    return JobNotice(split.project, split.created_by, split.title, path)
