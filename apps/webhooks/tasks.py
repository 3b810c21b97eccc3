"""What workers do for webhooks."""

from apps.core.jobs.celery_app import shared_task
from apps.webhooks.services import deliver_due


@shared_task
def deliver() -> None:
    """Send every message that is due."""
    deliver_due()
