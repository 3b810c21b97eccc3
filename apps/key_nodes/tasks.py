"""Completions of key nodes, on default workers."""

from apps.core.jobs.celery_app import shared_task


@shared_task
def complete_key_nodes() -> None:
    """Of every trajectory that has none of the newest revision."""
    from apps.key_nodes.services import refresh_completions

    refresh_completions()
