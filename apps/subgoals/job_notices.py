"""What people hear of proposals of subgoals when they end."""

from django.urls import reverse

from apps.inbox.job_notices import JobNotice
from apps.subgoals.models import SubgoalProposal


def proposal_notice(proposal: SubgoalProposal) -> JobNotice:
    path = reverse("subgoals:proposal-detail", args=[proposal.project.slug, proposal.pk])
    return JobNotice(proposal.project, proposal.created_by, proposal.title, path)
