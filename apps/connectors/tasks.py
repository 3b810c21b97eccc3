"""What the default worker does for connectors."""

from apps.connectors import services
from apps.connectors.executor import execute
from apps.connectors.models import ConnectorRun
from apps.core.jobs import job_queue
from apps.core.jobs.celery_app import shared_task


@shared_task(name=services.ADVANCE_RUNS)
def advance_connector_runs() -> None:
    """Execute every run of a connector that waits."""
    job_queue.drain_queue(ConnectorRun, execute)
