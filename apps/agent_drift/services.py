"""Alerts of agent versions that are worse than their reference."""

import logging

from django.db import transaction
from django.urls import reverse

from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.agent_drift.selectors import VERB, VersionScore, list_drift_alerts, version_scores
from apps.trajectories.models import Trajectory
from apps.webhooks import services as webhooks

logger = logging.getLogger(__name__)


def check_agents() -> None:
    """Look at every project in use that has an agent with a version."""
    projects = Project.objects.filter(archived_at=None)
    versions = Trajectory.objects.exclude(agent_version="").values("project")
    for project in projects.filter(pk__in=versions):
        try:
            raise_drift_alerts(project)
        except Exception:  # a project that cannot be read is no reason not to look at the others
            logger.exception("The agents of %s cannot be compared", project)


@transaction.atomic
def raise_drift_alerts(project: Project) -> list[VersionScore]:
    """Those that were raised now: once for each score of a version against a reference, as the audit trail has it."""
    Project.objects.select_for_update().get(pk=project.pk)  # two looks at a time would raise an alert twice
    drifted = [row for row in version_scores(project) if row.has_drifted]
    if not drifted:
        return []
    fields = ("data__version", "data__score", "data__reference_version")
    raised = set(list_drift_alerts(project).values_list(*fields))
    new = [row for row in drifted if (row.name, row.score, row.reference_version) not in raised]
    for row in new:
        _raise_alert(project, row)
    return new


def describe_drift(row: VersionScore) -> str:
    share, before = 100 * (row.count.share or 0.0), 100 * (row.reference.share or 0.0)
    return (
        f"{row.name} is worse than version {row.reference_version or 'without a name'} in {row.score}: "
        f"{share:.1f} % of {row.count.trials:,} trajectories are bad, "
        f"{before:.1f} % of {row.reference.trials:,} before."
    )


def _raise_alert(project: Project, row: VersionScore) -> None:
    detail = describe_drift(row)
    data = {
        "version": row.name,
        "score": row.score,
        "share": row.count.share,
        "trajectories": row.count.trials,
        "reference_version": row.reference_version,
        "reference_share": row.reference.share,
        "log_e_value": row.log_e_value,
    }
    record_audit(project=project, actor=None, verb=VERB, target=row.name[:200], data=data)
    path = reverse("agent_drift:version-list", args=[project.slug])
    webhooks.alert(project, name=VERB, detail=detail, path=path, **data)
