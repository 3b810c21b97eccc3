"""What people hear of the jobs of this app when they end."""

from django.urls import reverse

from apps.connectors.models import ConnectorRun
from apps.inbox.job_notices import JobNotice


def connector_run_notice(connector_run: ConnectorRun) -> JobNotice:
    """Of a scheduled run no person hears; its connector's page shows it."""
    connector = connector_run.connector
    path = reverse("connectors:run-detail", args=[connector.project.slug, connector.pk, connector_run.pk])
    return JobNotice(connector.project, connector_run.started_by, f"The run of {connector.name}", path)
