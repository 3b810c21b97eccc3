"""What workers do for notifications."""

from apps.core.jobs.celery_app import shared_task
from apps.inbox.mail import send_due_mail


@shared_task
def mail_notifications() -> None:
    """Send the mail that is due."""
    send_due_mail()
