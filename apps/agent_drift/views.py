"""The page of scores by agent version."""

from django.http import HttpResponseBase
from django.views.decorators.http import require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.agent_drift.selectors import LEAST_REFERENCE, version_scores
from apps.agent_drift.services import describe_drift
from apps.agent_drift.tables import VersionScoreTable


@require_safe
@project_view(Role.RESEARCHER)
def version_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    rows = version_scores(project)
    table = VersionScoreTable(request, rows, project=project)
    context = {
        "project": project,
        "drifted": [describe_drift(row) for row in rows if row.has_drifted],
        "least_reference": LEAST_REFERENCE,
    }
    return table.response("agent_drift/version_list.html", context)
