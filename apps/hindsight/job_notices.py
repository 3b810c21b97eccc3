"""What people hear of proposals of hindsight tasks when they end."""

from django.urls import reverse

from apps.hindsight.models import HindsightProposal
from apps.inbox.job_notices import JobNotice


def hindsight_notice(proposal: HindsightProposal) -> JobNotice:
    path = reverse("hindsight:proposal-detail", args=[proposal.project.slug, proposal.pk])
    return JobNotice(proposal.project, proposal.created_by, proposal.title, path)
