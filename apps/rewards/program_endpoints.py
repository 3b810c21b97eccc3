"""Endpoints that serve a version of a reward program."""

from django.db.models import F, Q

from apps.reward_programs.models import RewardProgramVersion
from apps.rewards.models import EndpointRevision


def endpoints_with_program(program: RewardProgramVersion) -> list[str]:
    """Those with it in their active revision, one on standby, or the candidate of an open release. Earlier revisions
    have its code, and can be rolled back to without it."""
    rows = EndpointRevision.objects.filter(
        endpoint__project=program.project_id, spec__contains={"components": [{"program": str(program)}]}
    )
    serving = rows.filter(
        Q(pk=F("endpoint__active"))
        | Q(pk=F("endpoint__standby"))
        | Q(releases__ended_at=None, releases__pk__gt=0)
    )
    return sorted(set(serving.values_list("endpoint__name", flat=True)))
